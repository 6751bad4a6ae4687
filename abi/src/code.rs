//! Straight-line code as text: calls separated by `;`. It knows how calls are written, not what they are called with.

/// Most calls of a text.
pub(crate) const MOST_CALLS: usize = 64;

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

/// The calls of `text`; `example` is how one looks.
pub(crate) fn calls<'a>(text: &'a str, example: &str) -> Result<Vec<Written<'a>>, String> {
    let parts = text.split(';').map(str::trim);
    let calls = parts.take(MOST_CALLS + 1).map(|part| call(part, example));
    let calls = calls.collect::<Result<Vec<_>, String>>()?;
    match calls.len() > MOST_CALLS {
        true => Err(format!("it has more than {MOST_CALLS} calls")),
        false => Ok(calls),
    }
}

fn call<'a>(text: &'a str, example: &str) -> Result<Written<'a>, String> {
    let expected = || format!("expected a call such as `{example}`, got: `{text}`");
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

/// Fails unless each call uses what calls before it made, and every one but the last is used. `uses` are, for each, the call
/// and the numbers of those.
pub(crate) fn check_made(uses: &[(String, Vec<usize>)]) -> Result<(), String> {
    for (index, (call, made)) in uses.iter().enumerate() {
        if let Some(late) = made.iter().find(|made| **made >= index) {
            return Err(format!(
                "`{call}` uses %{late}, which no call before it makes"
            ));
        }
    }
    let is_used = |index: &usize| uses.iter().any(|(_, made)| made.contains(index));
    match (0..uses.len().saturating_sub(1)).find(|index| !is_used(index)) {
        Some(unused) => Err(format!("nothing uses %{unused}, `{}`", uses[unused].0)),
        None => Ok(()),
    }
}
