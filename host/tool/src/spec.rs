//! What the words of a command line stand for: `f32[512,512]`, `axes=0,1`, an op, a filter of ops, seconds.

use nx_vulkan_host::{Attr, AttrValue, DType};
use nx_vulkan_ops::{Op, Spec};
use nx_vulkan_registry::did_you_mean;
use std::{fmt, str::FromStr, time::Duration};

/// Longest time that an option can name, in seconds.
const LONGEST: f64 = 1e6;

/// Reads a type and a shape; the message says what is wrong.
pub(crate) fn spec(text: &str) -> Result<Spec, String> {
    let expected = || format!("expected a type and a shape such as f32[2,3], got: {text}");
    let (name, rest) = text.split_once('[').ok_or_else(expected)?;
    let inner = rest.strip_suffix(']').ok_or_else(expected)?;
    let dtype = DType::from_name(name).ok_or_else(|| {
        format!(
            "there is no type `{name}`{}",
            did_you_mean(name, DType::all().map(DType::name))
        )
    })?;
    let extent = |part: &str| part.trim().parse().map_err(|_| expected());
    let shape = match inner.trim() {
        "" => Vec::new(),
        inner => inner.split(',').map(extent).collect::<Result<_, _>>()?,
    };
    Ok((dtype, shape))
}

/// Reads an attribute; a list of numbers may have brackets. The message says what is wrong.
pub(crate) fn attr(text: &str) -> Result<Attr, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected name=value, got: {text}"))?;
    let value = value.trim();
    let inner = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let parts = || {
        inner
            .unwrap_or(value)
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

/// An operand or an attribute, as they stand beside each other.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Operand(Spec),
    Attr(Attr),
}

/// Reads an operand, or where it has a sign of equality an attribute.
pub(crate) fn word(text: &str) -> Result<Word, String> {
    match text.contains('=') {
        true => attr(text).map(Word::Attr),
        false => spec(text).map(Word::Operand),
    }
}

/// The op of that name; the message names a similar one.
pub(crate) fn op(name: &str) -> Result<&'static Op, String> {
    let found = nx_vulkan_ops::ops().find(|op| op.name == name);
    found.ok_or_else(|| {
        format!(
            "there is no op `{name}`{}",
            did_you_mean(name, nx_vulkan_ops::ops().map(|op| op.name))
        )
    })
}

/// A filter of ops: the name of one, or with a trailing `*` how they begin.
#[derive(Debug, Clone)]
pub(crate) struct Filter(String);

impl Filter {
    pub(crate) fn admits(&self, op: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => op.starts_with(start),
            None => op == self.0,
        }
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        if !text.ends_with('*') {
            op(text)?;
        }
        Ok(Filter(text.to_owned()))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ops that the filter admits; without one, all.
pub(crate) fn ops(filter: Option<&Filter>) -> Vec<&'static Op> {
    let admitted = |op: &&Op| filter.is_none_or(|filter| filter.admits(op.name));
    nx_vulkan_ops::ops().filter(admitted).collect()
}

/// Reads a time.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "expected seconds above 0, up to {LONGEST}, got: {text}"
        )),
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
            ("fp32[2]", "did you mean `f32`?"),
        ] {
            assert!(spec(text).unwrap_err().contains(message), "{text}");
        }
    }

    #[test]
    fn attributes_are_integers_floats_or_text() {
        assert_eq!(attr("axes=0,1"), Ok(Attr::ints("axes", [0, 1])));
        assert_eq!(attr("axes=[0,1]"), Ok(Attr::ints("axes", [0, 1])));
        assert_eq!(attr("axis="), Ok(Attr::ints("axis", [])));
        assert_eq!(attr("axis=[]"), Ok(Attr::ints("axis", [])));
        assert_eq!(attr("tie_break=high"), Ok(Attr::text("tie_break", "high")));
        assert_eq!(attr("x=0.5").unwrap().value, AttrValue::Floats(vec![0.5]));
        assert!(attr("axes").is_err());
    }

    #[test]
    fn ops_are_found_by_name_or_beginning() {
        assert!(op("summ").unwrap_err().contains("did you mean `sum`?"));
        let filter: Filter = "bitwise_*".parse().unwrap();
        assert_eq!(ops(Some(&filter)).len(), 4);
        assert!("nothing at all".parse::<Filter>().is_err());
    }

    #[test]
    fn times_are_positive_and_not_endless() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "nan", "inf", "1e7", "soon"] {
            assert!(seconds(text).unwrap_err().contains("above 0"), "{text}");
        }
    }
}
