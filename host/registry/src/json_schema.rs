//! The schema table as JSON Schema, draft 7, which editors know.

use super::schema::{Block, FILE, Format, Value};
use nx_vulkan_abi::{DType, DTypeSet, Features};
use serde_json::{Map, Value as Json, json};

/// The JSON Schema of `registry.toml`, for editors; `docs/registry.schema.json` is a copy.
pub fn json_schema() -> String {
    let mut schema = block(&FILE);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "nx_vulkan registry.toml".into();
    schema["description"] =
        "Which kernel packs are loaded, and in which order they are asked.".into();
    format!("{schema:#}\n")
}

fn block(block: &Block) -> Json {
    let properties: Map<String, Json> = block
        .keys
        .iter()
        .map(|key| {
            let mut schema = value(&key.value);
            schema["description"] = key.about.into();
            if let Ok(Json::Object(mut default)) = toml::from_str(&format!("it = {}", key.default))
            {
                schema["default"] = default.remove("it").unwrap_or_default();
            }
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = block
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn value(kind: &Value) -> Json {
    match kind {
        Value::Integer(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Value::Boolean => json!({"type": "boolean"}),
        Value::Text(format) => text(*format),
        Value::Word(words) => json!({"type": "string", "enum": words}),
        Value::List(least, of) => json!({"type": "array", "items": value(of), "minItems": least}),
        Value::Table(of) => block(of),
        Value::Named(names, of) => json!({
            "type": "object",
            "propertyNames": text(*names),
            "additionalProperties": block(of),
        }),
        Value::Pins => json!({"anyOf": [
            text(Format::Sha256),
            {"type": "object", "additionalProperties": text(Format::Sha256)},
        ]}),
        Value::Entries => json!({"type": "object"}),
        Value::Any => json!({}),
    }
}

/// Names where there is a list of them, so that an editor can complete them, else a pattern where one says it.
fn text(format: Format) -> Json {
    let pattern = |pattern: &str| json!({"type": "string", "pattern": pattern});
    match format {
        Format::Any | Format::Printable | Format::Version | Format::VersionRange => {
            json!({"type": "string", "minLength": 1})
        }
        Format::PackId => pattern("^(?!host$)[A-Za-z0-9._-]{1,128}$"),
        Format::Sha256 => pattern("^[0-9A-Fa-f]{64}$"),
        Format::TrustedKey => pattern("^RW[A-Za-z0-9+/]{54}$"),
        Format::OpPattern => json!({"anyOf": [
            {"type": "string", "enum": nx_vulkan_ops::ops().map(|op| op.name).collect::<Vec<_>>()},
            {"type": "string", "pattern": "^[A-Za-z0-9_.*]+$"},
        ]}),
        Format::TypeSet | Format::Types => {
            let types = DTypeSet::NAMED
                .iter()
                .map(|set| set.0)
                .chain(DType::all().map(DType::name));
            let types: Vec<&str> = types.collect();
            json!({"anyOf": [{"type": "string", "enum": types}, {"type": "string", "pattern": "->"}]})
        }
        Format::Condition => pattern("(==|!=|<|>)"),
        Format::Feature => json!({"type": "string", "enum": Features(u64::MAX).names()}),
        Format::Use => pattern("^(\\*|[A-Za-z0-9._-]+(/.+)?)$"),
        Format::DriverRange => {
            pattern("^\\s*(<=|>=|<|>|=)\\s*[0-9.]+(\\s*,\\s*(<=|>=|<|>|=)\\s*[0-9.]+)*\\s*$")
        }
    }
}
