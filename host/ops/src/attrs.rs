//! Attributes of an op request, owned by the host.

use std::fmt;

/// A named attribute. Requests keep their attributes sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Attr {
    /// Name, as in `docs/ops.md`.
    pub name: String,
    /// Value.
    pub value: AttrValue,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttrValue {
    /// A list of integers; one integer is a list of one.
    Ints(Vec<i64>),
    /// A list of floats.
    Floats(Vec<f64>),
    /// Text.
    Text(String),
}

/// `[0, 1]`, `0.5`, `"high"`: a list of one as its element, and text without control characters.
impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Ints(ints) => match ints[..] {
                [one] => write!(f, "{one}"),
                _ => write!(f, "{ints:?}"),
            },
            AttrValue::Floats(floats) => match floats[..] {
                [one] => write!(f, "{one:?}"),
                _ => write!(f, "{floats:?}"),
            },
            AttrValue::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Attr {
    /// An integer-list attribute.
    pub fn ints(name: &str, value: impl Into<Vec<i64>>) -> Attr {
        Attr {
            name: name.to_owned(),
            value: AttrValue::Ints(value.into()),
        }
    }

    /// An attribute that is one float.
    pub fn float(name: &str, value: f64) -> Attr {
        Attr {
            name: name.to_owned(),
            value: AttrValue::Floats(vec![value]),
        }
    }

    /// A text attribute.
    pub fn text(name: &str, value: &str) -> Attr {
        Attr {
            name: name.to_owned(),
            value: AttrValue::Text(value.to_owned()),
        }
    }
}

/// The integers of attribute `name`, or an empty slice when it is absent or not a list of integers.
pub fn ints<'a>(attrs: &'a [Attr], name: &str) -> &'a [i64] {
    attrs
        .iter()
        .find(|a| a.name == name)
        .map_or(&[], |a| match &a.value {
            AttrValue::Ints(ints) => ints,
            _ => &[],
        })
}

/// The number that attribute `name` is, or `None`.
pub fn number(attrs: &[Attr], name: &str) -> Option<f64> {
    let attr = attrs.iter().find(|attr| attr.name == name)?;
    match &attr.value {
        AttrValue::Floats(floats) => floats.first().copied(),
        AttrValue::Ints(ints) => ints.first().map(|&int| int as f64),
        AttrValue::Text(_) => None,
    }
}

/// The text of attribute `name`, or `None`.
pub fn text<'a>(attrs: &'a [Attr], name: &str) -> Option<&'a str> {
    attrs
        .iter()
        .find(|a| a.name == name)
        .and_then(|a| match &a.value {
            AttrValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
}
