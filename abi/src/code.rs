//! Straight-line code as text: calls separated by `;`. It knows how calls are written, not what they are called with.

use std::borrow::Cow;

/// Most letters of a text that an error shows.
const SHOWN: usize = 80;

/// A call as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'a> {
    /// All of it.
    pub(crate) text: &'a str,
    /// Name of the op.
    pub(crate) op: &'a str,
    /// What stands between the parentheses.
    terms: &'a str,
    /// What stands behind them.
    pub(crate) rest: &'a str,
}

impl<'a> Written<'a> {
    /// What it is called with.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &'a str> {
        self.terms.split(',').map(str::trim)
    }
}

/// The calls of `text`, at most so many; `example` is how one looks.
pub(crate) fn calls<'a>(
    text: &'a str,
    most: usize,
    example: &str,
) -> Result<Vec<Written<'a>>, String> {
    let parts = text.split(';').map(str::trim);
    let calls = parts.take(most + 1).map(|part| call(part, example));
    let calls = calls.collect::<Result<Vec<_>, String>>()?;
    match calls.len() > most {
        true => Err(format!("it has more than {most} calls")),
        false => Ok(calls),
    }
}

/// A text as an error shows it: its beginning, where it is long.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

fn call<'a>(text: &'a str, example: &str) -> Result<Written<'a>, String> {
    let expected = || {
        format!(
            "expected a call such as `{example}`, got: `{}`",
            shown(text)
        )
    };
    let (op, rest) = text.split_once('(').ok_or_else(expected)?;
    let (terms, rest) = rest.split_once(')').ok_or_else(expected)?;
    let op = op.trim();
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if op.is_empty() || !op.chars().all(is_letter) {
        return Err(expected());
    }
    Ok(Written {
        text,
        op,
        terms,
        rest: rest.trim(),
    })
}

/// The number behind `prefix`, of digits alone.
pub(crate) fn index(text: &str, prefix: &str) -> Option<usize> {
    let digits = text.strip_prefix(prefix)?;
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all)
}

/// A float: a finite number as Rust writes it, `inf`, `-inf` or `nan`.
pub(crate) fn float(text: &str) -> Option<f64> {
    match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            text.parse::<f64>().ok().filter(|value| value.is_finite())
        }
        _ => None,
    }
}

/// A float as [`float`] reads it.
pub(crate) fn written(number: f64) -> String {
    match number.is_nan() {
        true => "nan".to_owned(),
        false => format!("{number:?}"),
    }
}

/// Fails unless each call uses what calls before it made, and every one is used or a result. `uses` are, for each, the call
/// and the numbers of those.
pub(crate) fn check_made(uses: &[(String, Vec<usize>)], results: &[usize]) -> Result<(), String> {
    for (index, (call, made)) in uses.iter().enumerate() {
        if let Some(late) = made.iter().find(|made| **made >= index) {
            return Err(format!(
                "`{call}` uses %{late}, which no call before it makes"
            ));
        }
    }
    let mut is_used = vec![false; uses.len()];
    for &made in uses.iter().flat_map(|(_, made)| made).chain(results) {
        is_used[made] = true;
    }
    match is_used.iter().position(|is_used| !is_used) {
        Some(unused) => Err(format!("nothing uses %{unused}, `{}`", uses[unused].0)),
        None => Ok(()),
    }
}
