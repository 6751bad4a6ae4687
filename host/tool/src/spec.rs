//! Operands and attributes as text: `f32[512,512]`, `axes=0,1`.

use crate::args::similar;
use nx_vulkan_host::{Attr, AttrValue, DType};
use nx_vulkan_ops::{Op, Spec};

/// Reads a type and a shape; the message says what is wrong.
pub(crate) fn spec(text: &str) -> Result<Spec, String> {
    let expected = || format!("expected a type and a shape such as f32[2,3], got: {text}");
    let (name, rest) = text.split_once('[').ok_or_else(expected)?;
    let inner = rest.strip_suffix(']').ok_or_else(expected)?;
    let dtype = DType::from_name(name).ok_or_else(|| {
        format!(
            "there is no type {name}{}",
            similar(name, DType::all().map(DType::name))
        )
    })?;
    let extent = |part: &str| part.trim().parse().map_err(|_| expected());
    let shape = match inner.trim() {
        "" => Vec::new(),
        inner => inner.split(',').map(extent).collect::<Result<_, _>>()?,
    };
    Ok((dtype, shape))
}

/// Reads an attribute; the message says what is wrong.
pub(crate) fn attr(text: &str) -> Result<Attr, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected name=value, got: {text}"))?;
    let value = value.trim();
    let parts = || {
        value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
    };
    let ints: Result<Vec<i64>, _> = parts().map(str::parse).collect();
    let floats: Result<Vec<f64>, _> = parts().map(str::parse).collect();
    let value = match (ints, floats) {
        (Ok(ints), _) => AttrValue::Ints(ints),
        (_, Ok(floats)) => AttrValue::Floats(floats),
        _ => AttrValue::Text(value.to_owned()),
    };
    Ok(Attr {
        name: name.to_owned(),
        value,
    })
}

/// The op of that name; the message names a similar one.
pub(crate) fn op(name: &str) -> Result<&'static Op, String> {
    let found = nx_vulkan_ops::ops().find(|op| op.name == name);
    found.ok_or_else(|| {
        format!(
            "there is no op named {name}{}",
            similar(name, nx_vulkan_ops::ops().map(|op| op.name))
        )
    })
}

/// The ops that a filter names: all of them, one, or with a trailing `*` those that begin so.
pub(crate) fn ops(filter: Option<&str>) -> Result<Vec<&'static Op>, String> {
    match filter.map(|text| (text, text.strip_suffix('*'))) {
        None => Ok(nx_vulkan_ops::ops().collect()),
        Some((_, Some(start))) => Ok(nx_vulkan_ops::ops()
            .filter(|op| op.name.starts_with(start))
            .collect()),
        Some((name, None)) => Ok(vec![op(name)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read_and_mistakes_named() {
        assert_eq!(spec("f32[512, 3]"), Ok((DType::F32, vec![512, 3])));
        assert_eq!(spec("s64[]"), Ok((DType::S64, vec![])));
        for (text, message) in [
            ("f32", "expected a type and a shape"),
            ("f32[2", "expected a type and a shape"),
            ("f32[-1]", "expected a type and a shape"),
            ("fp32[2]", "did you mean f32?"),
        ] {
            assert!(spec(text).unwrap_err().contains(message), "{text}");
        }
    }

    #[test]
    fn attributes_are_integers_floats_or_text() {
        assert_eq!(attr("axes=0,1"), Ok(Attr::ints("axes", [0, 1])));
        assert_eq!(attr("axis="), Ok(Attr::ints("axis", [])));
        assert_eq!(attr("tie_break=high"), Ok(Attr::text("tie_break", "high")));
        assert_eq!(attr("x=0.5").unwrap().value, AttrValue::Floats(vec![0.5]));
        assert!(attr("axes").is_err());
    }

    #[test]
    fn ops_are_found_by_name_or_beginning() {
        assert!(op("summ").unwrap_err().contains("did you mean sum?"));
        let found = ops(Some("bitwise_*")).unwrap();
        assert_eq!(found.len(), 4);
        assert!(ops(Some("nothing at all")).is_err());
    }
}
