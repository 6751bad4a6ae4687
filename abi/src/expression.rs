//! Expressions: what is computed of an element of each operand, as straight-line code over elementwise ops, each call in
//! types of its own. It computes nothing.
//!
//! The text is the attribute `expression` of a request: calls separated by `;`, the last of which gives the result. Where a
//! list of calls stands behind them, these give the results.
//!
//! ```text
//! multiply(i0, 2:s32):f32; greater(%0, i1):u8; select(%1, %0, i1):f32
//! add(i0, i1):u32; bitwise_xor(%0, 7:u32):u32; (%0, %1)
//! ```
//!
//! `i0` is an element of the request's operand 0, in its type, and `%0` what the first call gave, in the type behind its
//! parentheses. A number is followed by its type, which holds it. Each call means what a request of that op means whose
//! operands are scalars of these types.

use crate::{
    DType, Refusal, Request,
    code::{self, Written},
    dtype::Class,
};
use std::{fmt, str::FromStr};

/// Name of the attribute.
pub const ATTRIBUTE: &str = "expression";
/// Most calls of an expression.
pub const MOST_CALLS: usize = 256;

/// Ops that `fused_rows` may call beside the elementwise ones: they make one value of all elements of a row.
pub const REDUCTIONS: [&str; 3] = ["sum", "reduce_max", "reduce_min"];

/// An expression: calls, each of what came before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// At least one.
    pub calls: Vec<Call>,
    /// The numbers of those that give the results, at least one.
    pub results: Vec<usize>,
}

/// A call of an elementwise op.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the op, as in `docs/ops.md`.
    pub op: String,
    /// What it is called with.
    pub terms: Vec<Term>,
    /// Type of what it gives.
    pub dtype: DType,
}

/// What an op is called with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// An element of the request's operand of that number.
    Operand(usize),
    /// What the call of that number gave.
    Made(usize),
    /// A number of that type.
    Number(Number, DType),
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of a type of integers, which holds it.
    Integer(i128),
    /// Of a type of floats.
    Float(f64),
}

impl Call {
    /// Whether it makes one value of all elements of a row.
    pub fn reduces(&self) -> bool {
        REDUCTIONS.contains(&self.op.as_str())
    }
}

impl Expression {
    /// By call whether it has one value for each row, where `operands` says it of the operands.
    pub fn per_row(&self, operands: &[bool]) -> Vec<bool> {
        let mut calls: Vec<bool> = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let mut terms = call.terms.iter().map(|term| match *term {
                Term::Operand(index) => operands.get(index).copied().unwrap_or(false),
                Term::Made(index) => calls.get(index).copied().unwrap_or(false),
                Term::Number(..) => true,
            });
            let is_per_row = call.reduces() || terms.all(|term| term);
            calls.push(is_per_row);
        }
        calls
    }

    /// The expression of a request.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] where there is none, or the text is none.
    pub fn of(request: &Request<'_>) -> Result<Expression, Refusal> {
        let bad = |why| Refusal::BadRequest(format!("attribute {ATTRIBUTE}: {why}"));
        let text = request.text(ATTRIBUTE);
        let text = text.ok_or_else(|| bad("expected text".to_owned()))?;
        text.parse().map_err(bad)
    }

    /// Types of the results.
    pub fn gives(&self) -> impl ExactSizeIterator<Item = DType> {
        self.results.iter().map(|&call| self.calls[call].dtype)
    }

    /// Type of a term where the operands have these types; `None` for one that is not there.
    pub fn dtype(&self, term: &Term, operands: &[DType]) -> Option<DType> {
        match *term {
            Term::Operand(index) => operands.get(index).copied(),
            Term::Made(index) => self.calls.get(index).map(|call| call.dtype),
            Term::Number(_, dtype) => Some(dtype),
        }
    }

    /// Types of what a call is called with.
    ///
    /// # Errors
    /// The first operand that is missing.
    pub fn dtypes(&self, call: &Call, operands: &[DType]) -> Result<Vec<DType>, String> {
        let dtype = |term: &Term| {
            let missing = || {
                let (call, count) = (call.to_string(), operands.len());
                let call = code::shown(&call);
                format!("`{call}` uses {term}, and there are {count} operands")
            };
            self.dtype(term, operands).ok_or_else(missing)
        };
        call.terms.iter().map(dtype).collect()
    }

    fn check(&self) -> Result<(), String> {
        let made = |call: &Call| {
            let made = call.terms.iter().filter_map(|term| match term {
                Term::Made(made) => Some(*made),
                Term::Operand(_) | Term::Number(..) => None,
            });
            (call.to_string(), made.collect())
        };
        let uses: Vec<_> = self.calls.iter().map(made).collect();
        if let Some(missing) = self.results.iter().find(|call| **call >= uses.len()) {
            return Err(format!("%{missing} is a result, and no call makes it"));
        }
        code::check_made(&uses, &self.results)
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Expression, String> {
        let (text, listed) = match text.rsplit_once(';') {
            Some((calls, last)) if last.trim_start().starts_with('(') => (calls, Some(last.trim())),
            Some(_) | None => (text, None),
        };
        let calls = code::calls(text, MOST_CALLS, EXAMPLE)?
            .into_iter()
            .map(call);
        let calls = calls.collect::<Result<Vec<Call>, String>>()?;
        let results = match listed {
            Some(listed) => results(listed)?,
            None => vec![calls.len().saturating_sub(1)],
        };
        let expression = Expression { calls, results };
        expression.check()?;
        Ok(expression)
    }
}

/// How a call looks.
const EXAMPLE: &str = "add(i0, i1):f32";

fn call(written: Written<'_>) -> Result<Call, String> {
    let expected = || {
        format!(
            "expected a call such as `{EXAMPLE}`, got: `{}`",
            code::shown(written.text)
        )
    };
    let dtype = written.rest.strip_prefix(':').ok_or_else(expected)?;
    Ok(Call {
        op: written.op.to_owned(),
        terms: written.terms().map(term).collect::<Result<_, _>>()?,
        dtype: DType::from_name(dtype.trim()).ok_or_else(expected)?,
    })
}

fn results(text: &str) -> Result<Vec<usize>, String> {
    let listed = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let calls = listed.map(|listed| {
        let calls = listed.split(',').map(|call| code::index(call.trim(), "%"));
        calls.collect::<Option<Vec<usize>>>()
    });
    calls.flatten().ok_or_else(|| {
        let text = code::shown(text);
        format!("expected results such as `(%0, %2)`, got: `{text}`")
    })
}

fn term(text: &str) -> Result<Term, String> {
    let found = code::index(text, "i")
        .map(Term::Operand)
        .or_else(|| code::index(text, "%").map(Term::Made));
    found.or_else(|| number(text)).ok_or_else(|| {
        format!(
            "expected an operand (i0), a call (%0) or a number of a type (2:s32), got: `{}`",
            code::shown(text)
        )
    })
}

fn number(text: &str) -> Option<Term> {
    let (number, name) = text.split_once(':')?;
    let dtype = DType::from_name(name)?;
    let number = match dtype.class()? {
        Class::Float => Number::Float(code::float(number)?),
        Class::Unsigned | Class::Signed => {
            let whole = number.parse().ok().filter(|whole| holds(dtype, *whole));
            Number::Integer(whole?)
        }
        Class::Complex => return None,
    };
    Some(Term::Number(number, dtype))
}

/// Whether a type of integers holds a number.
pub fn holds(dtype: DType, whole: i128) -> bool {
    dtype.row().is_some_and(|row| {
        let lowest = if dtype.is_signed() {
            -(1 << row.digits)
        } else {
            0
        };
        (lowest..1 << row.digits).contains(&whole)
    })
}

/// The text that it is read from.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<String> = self.calls.iter().map(Call::to_string).collect();
        f.write_str(&calls.join("; "))?;
        if self.results == [self.calls.len().saturating_sub(1)] {
            return Ok(());
        }
        let results: Vec<String> = self.results.iter().map(|call| format!("%{call}")).collect();
        write!(f, "; ({})", results.join(", "))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.terms.iter().map(Term::to_string).collect();
        write!(f, "{}({}):{}", self.op, terms.join(", "), self.dtype)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Operand(index) => write!(f, "i{index}"),
            Term::Made(index) => write!(f, "%{index}"),
            Term::Number(Number::Integer(number), dtype) => write!(f, "{number}:{dtype}"),
            Term::Number(Number::Float(number), dtype) => {
                write!(f, "{}:{dtype}", code::written(*number))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_are_the_same() {
        let text = "multiply(i0, 2:s32):f32; greater(%0, -inf:f64):u8; select(%1, %0, i1):f32; \
                    add(%2, -1e-7:f32):f32; remainder(%3, 18446744073709551615:u64):f32";
        let expression: Expression = text.parse().unwrap();
        assert_eq!(expression.to_string(), text);
        let two = Term::Number(Number::Integer(2), DType::S32);
        assert_eq!(expression.calls[0].terms, [Term::Operand(0), two]);
        assert_eq!(expression.gives().collect::<Vec<_>>(), [DType::F32]);
        let select = &expression.calls[2];
        assert_eq!(
            expression.dtypes(select, &[DType::BF16, DType::S8]),
            Ok(vec![DType::U8, DType::F32, DType::S8])
        );
        let missing = expression.dtypes(select, &[DType::F32]).unwrap_err();
        assert!(
            missing.ends_with("uses i1, and there are 1 operands"),
            "{missing}"
        );
        assert_eq!(expression.to_string().parse(), Ok(expression));
        let spaced: Expression = " exp( i0 ) : f32 ;negate(%0):f32".parse().unwrap();
        assert_eq!(spaced.to_string(), "exp(i0):f32; negate(%0):f32");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, told) in [
            ("", "expected a call"),
            ("i0", "expected a call such as"),
            ("add(i0, i1", "expected a call such as"),
            ("add(i0, i1)", "expected a call such as"),
            ("add(i0, i1):f99", "expected a call such as"),
            ("add(i0, x):f32", "got: `x`"),
            ("add(i0, 2):f32", "got: `2`"),
            ("add(i0, 256:u8):f32", "got: `256:u8`"),
            ("add(i0, -1:u8):f32", "got: `-1:u8`"),
            ("add(i0, 2:u2):f32; add(%0, 4:u2):f32", "got: `4:u2`"),
            ("add(i0, -129:s8):f32", "got: `-129:s8`"),
            ("add(i0, 1.5:s8):f32", "got: `1.5:s8`"),
            ("add(i0, 1:c64):f32", "got: `1:c64`"),
            ("exp(%0):f32", "uses %0, which no call before it makes"),
            ("exp(i0):f32; exp(i0):f32", "nothing uses %0, `exp(i0):f32`"),
        ] {
            let error = text.parse::<Expression>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        for text in ["add(-128:s8, 127:s8):s8", "add(0:u8, 255:u8):u8"] {
            assert!(text.parse::<Expression>().is_ok(), "{text}");
        }
        let long = vec!["exp(i0):f32"; MOST_CALLS + 1].join(";");
        let error = long.parse::<Expression>().unwrap_err();
        assert!(error.contains("more than 256 calls"));
        let error = "x".repeat(1 << 20).parse::<Expression>().unwrap_err();
        assert!(error.len() < 200 && error.ends_with("xx…`"), "{error}");
    }

    #[test]
    fn several_calls_may_be_results() {
        let text = "add(i0, i1):u32; bitwise_xor(%0, 7:u32):s64; (%1, %0)";
        let expression: Expression = text.parse().unwrap();
        assert_eq!(expression.results, [1, 0]);
        let gives: Vec<DType> = expression.gives().collect();
        assert_eq!(gives, [DType::S64, DType::U32]);
        assert_eq!(expression.to_string(), text);
        let one: Expression = "exp(i0):f32;( %0 )".parse().unwrap();
        assert_eq!(one.to_string(), "exp(i0):f32");
        for (text, told) in [
            ("exp(i0):f32; ()", "got: `()`"),
            ("exp(i0):f32; (%0", "got: `(%0`"),
            ("exp(i0):f32; (i0)", "got: `(i0)`"),
            ("exp(i0):f32; (%1)", "%1 is a result, and no call makes it"),
            ("exp(i0):f32; exp(i0):f32; (%0)", "nothing uses %1"),
            ("(%0); exp(i0):f32", "expected a call"),
            ("(%0)", "expected a call"),
        ] {
            let error = text.parse::<Expression>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
