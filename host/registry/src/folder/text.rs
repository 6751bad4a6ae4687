//! Texts of `pack.toml` with expressions and element types in braces: `{elems}`, `{a.storage}`; `{{` is a brace.

use crate::expression::{Expression, Mistake, Names, Tensor, desc, tensor};
use nx_vulkan_abi::{Request, glsl};

/// A text with holes.
#[derive(Debug, Clone)]
pub(super) struct Text(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    Plain(String),
    Number(Expression),
    Type(Tensor, Form),
}

/// How an element type is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `f16`
    Name,
    /// In memory: `uint16_t`
    Storage,
    /// In registers: `float`
    Value,
}

impl Text {
    pub(super) fn parse(text: &str, names: &Names) -> Result<Text, Mistake> {
        let wrong = |at: usize, message: &str| Mistake {
            span: at..text.len(),
            message: message.to_owned(),
        };
        let (mut parts, mut plain, mut at) = (Vec::new(), String::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            let next = at + c.len_utf8();
            if matches!(c, '{' | '}') && text[next..].starts_with(c) {
                plain.push(c);
                at = next + 1;
            } else if c == '{' {
                let length = text[next..]
                    .find('}')
                    .ok_or_else(|| wrong(at, "this brace is not closed; a plain one is `{{`"))?;
                parts.push(Part::Plain(std::mem::take(&mut plain)));
                parts.push(hole(&text[next..next + length], next, names)?);
                at = next + length + 1;
            } else if c == '}' {
                return Err(wrong(at, "this brace closes nothing; a plain one is `}}`"));
            } else if c.is_control() {
                return Err(wrong(at, "a define is one line without control characters"));
            } else {
                plain.push(c);
                at = next;
            }
        }
        parts.push(Part::Plain(plain));
        Ok(Text(parts))
    }

    /// A text that is one number.
    pub(super) fn number(expression: Expression) -> Text {
        Text(vec![Part::Number(expression)])
    }

    /// The text for `request`.
    pub(super) fn fill(&self, request: &Request<'_>) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Plain(plain) => text.push_str(plain),
                Part::Number(expression) => text += &expression.evaluate(request)?.to_string(),
                Part::Type(tensor, form) => {
                    let dtype = desc(*tensor, request)?.dtype;
                    let types =
                        glsl::types(dtype).ok_or_else(|| format!("{dtype} has no GLSL type"));
                    text += match form {
                        Form::Name => dtype.name(),
                        Form::Storage => types?.0,
                        Form::Value => types?.1,
                    };
                }
            }
        }
        Ok(text)
    }

    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter().filter_map(|part| match part {
            Part::Number(expression) => Some(expression),
            _ => None,
        })
    }
}

fn hole(inner: &str, at: usize, names: &Names) -> Result<Part, Mistake> {
    let typed = inner.trim().split_once('.').and_then(|(name, form)| {
        let form = match form {
            "type" => Form::Name,
            "storage" => Form::Storage,
            "value" => Form::Value,
            _ => return None,
        };
        Some(Part::Type(tensor(name)?, form))
    });
    if let Some(typed) = typed {
        return Ok(typed);
    }
    let number = Expression::parse_with(inner, names).map_err(|wrong| Mistake {
        span: wrong.span.start + at..wrong.span.end + at,
        ..wrong
    })?;
    Ok(Part::Number(number))
}
