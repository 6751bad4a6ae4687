//! `docs/abi.md` lists what the sources declare, and every declaration says who owns what it points to.

mod table;

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::Path};

const SOURCES: [&str; 5] = [
    include_str!("../src/pack.rs"),
    include_str!("../src/request.rs"),
    include_str!("../src/plan.rs"),
    include_str!("../src/dtype.rs"),
    include_str!("../src/dtype/set.rs"),
];
const START: &str = "<!-- generated from the crate -->\n";

/// A struct of the contract as its source declares it.
#[derive(Debug, Default)]
struct Declared {
    doc: String,
    fields: Vec<Field>,
    /// Constants of an open integer: name, value, documentation.
    codes: Vec<(String, String, String)>,
    prefix: bool,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: String,
    doc: String,
}

impl Field {
    /// What the type says about ownership or threads.
    fn rule(&self) -> Option<&'static str> {
        let kind = self.kind.as_str();
        match kind {
            _ if kind.starts_with("extern \"C\" fn") => Some("thread"),
            _ if kind.contains("'static") => Some("static"),
            _ if kind.contains("'a") => Some("borrowed"),
            _ if ["RVec", "RString", "Plan"]
                .iter()
                .any(|owner| kind.starts_with(owner)) =>
            {
                Some("moved")
            }
            _ => None,
        }
    }
}

/// The `#[repr(C)]` and `#[repr(transparent)]` types of the sources, by name.
fn declared() -> BTreeMap<String, Declared> {
    let mut types: BTreeMap<String, Declared> = BTreeMap::new();
    for source in SOURCES {
        let (mut doc, mut marked, mut prefix, mut open) =
            (Vec::new(), false, false, None::<String>);
        for line in source.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("///") {
                doc.push(text.trim());
                continue;
            }
            let said = || doc.join(" ");
            marked |= matches!(line, "#[repr(C)]" | "#[repr(transparent)]");
            prefix |= line.contains("kind(Prefix");
            if line.starts_with("#[") {
                continue;
            }
            if let (true, Some(rest)) = (marked, line.strip_prefix("pub struct ")) {
                let name: String = rest
                    .chars()
                    .take_while(char::is_ascii_alphanumeric)
                    .collect();
                let declared = Declared {
                    doc: said(),
                    prefix,
                    ..Declared::default()
                };
                types.insert(name.clone(), declared);
                open = rest.ends_with('{').then_some(name);
                (marked, prefix) = (false, false);
            } else if let (Some(owner), Some(rest)) = (&open, line.strip_prefix("pub ")) {
                let (name, kind) = rest.split_once(": ").expect("a field has a type");
                let kind = kind.strip_suffix(',').expect("a field stands on one line");
                let field = Field {
                    name: name.into(),
                    kind: kind.into(),
                    doc: said(),
                };
                types.get_mut(owner).expect("it is open").fields.push(field);
            } else if let Some(rest) = line.strip_prefix("pub const ") {
                let code = rest.split_once(": ").and_then(|(name, rest)| {
                    let (owner, value) = rest.split_once(" = ")?;
                    let value = value
                        .strip_prefix(owner)?
                        .strip_prefix('(')?
                        .strip_suffix(");")?;
                    Some((
                        owner.to_owned(),
                        (name.to_owned(), value.to_owned(), said()),
                    ))
                });
                if let Some((owner, code)) = code {
                    types
                        .get_mut(&owner)
                        .expect("it is declared before")
                        .codes
                        .push(code);
                }
            } else if line == "}" {
                open = None;
            }
            doc.clear();
        }
    }
    types
}

#[test]
fn every_pointer_says_whose_it_is_and_every_function_who_may_call_it() {
    let types = declared();
    for (name, declared) in &types {
        for field in &declared.fields {
            let place = format!("{name}::{}: {}", field.name, field.kind);
            let tags = ["[static", "[borrowed", "[moved", "[thread-safe", "[once"];
            let doc = field.doc.replace('\\', "");
            let found: Vec<&str> = tags.into_iter().filter(|tag| doc.contains(tag)).collect();
            match field.rule() {
                Some("thread") => {
                    assert!(
                        matches!(found[..], ["[thread-safe"] | ["[once"]),
                        "{place}: {doc}"
                    );
                }
                Some(rule) => assert_eq!(found, [format!("[{rule}")], "{place}: {doc}"),
                None => assert_eq!(found, [""; 0], "{place}: {doc}"),
            }
            assert!(!field.doc.is_empty(), "{place} is not documented");
            assert!(
                !matches!(field.kind.as_str(), "bool" | "usize" | "char"),
                "{place}"
            );
        }
    }
    assert_eq!(types.values().filter(|declared| declared.prefix).count(), 3);
}

#[test]
fn the_page_lists_what_the_crate_declares() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/abi.md");
    let written = fs::read_to_string(&page).unwrap();
    let (head, listed) = written
        .split_once(START)
        .expect("the page marks where the tables start");
    let tables = tables();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, format!("{head}{START}{tables}")).unwrap();
        return;
    }
    assert!(
        listed == tables,
        "docs/abi.md is out of date; write it anew with UPDATE_DOCS=1 cargo test --release -p nx-vulkan-abi --test docs\n{tables}"
    );
}

fn tables() -> String {
    let types = declared();
    let mut text = String::new();
    let layouts = table::layouts();
    for (_, layout) in &layouts {
        let declared = &types[layout.name];
        let names: Vec<&str> = declared
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        let laid_out: Vec<&str> = layout.fields.iter().map(|field| field.0).collect();
        assert_eq!(names, laid_out, "{}", layout.name);
        let kind = if declared.prefix {
            "prefix type"
        } else {
            "value struct"
        };
        let _ = writeln!(text, "\n### {}", layout.name);
        let _ = writeln!(text, "{}\n", plain(&declared.doc));
        let _ = writeln!(
            text,
            "A {kind} of {} bytes, aligned to {}.\n",
            layout.size, layout.align
        );
        let _ = writeln!(
            text,
            "| offset | field | type | meaning |\n|--:|---|---|---|"
        );
        for (field, (_, offset)) in declared.fields.iter().zip(&layout.fields) {
            let Field { name, kind, doc } = field;
            let _ = writeln!(text, "| {offset} | `{name}` | `{kind}` | {} |", plain(doc));
        }
    }
    let structs: Vec<&str> = layouts.iter().map(|(_, layout)| layout.name).collect();
    for (name, declared) in types
        .iter()
        .filter(|(name, _)| !structs.contains(&name.as_str()))
    {
        assert!(
            declared.fields.is_empty(),
            "{name} has no row in tests/table"
        );
        let _ = writeln!(text, "\n### {name}\n{}\n", plain(&declared.doc));
        if declared.codes.is_empty() {
            continue;
        }
        let _ = writeln!(text, "| value | name | meaning |\n|--:|---|---|");
        for (code, value, doc) in &declared.codes {
            let _ = writeln!(text, "| {value} | `{code}` | {} |", plain(doc));
        }
    }
    text
}

/// Documentation without the links and escapes of rustdoc.
fn plain(doc: &str) -> String {
    doc.replace("\\[", "[")
        .replace("\\]", "]")
        .replace("[`crate::", "`")
        .replace("[`", "`")
        .replace("`]", "`")
}
