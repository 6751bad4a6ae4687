//! Epilogues: what becomes of each sum of a product, as straight-line code over elementwise ops. It computes nothing.
//!
//! The text is the attribute `epilogue` of a request: calls separated by `;`, the last of which gives the result.
//!
//! ```text
//! add(x, i2); multiply(%0, 0.5); erf(%1)
//! ```
//!
//! `x` is the sum, `i2` an element of the request's operand 2, `%0` what the first call gave. The rest are numbers: those of
//! Rust, with `inf` and `nan`.

use crate::{
    DType, Refusal, Request, TensorDesc,
    code::{self, Written},
};
use std::{fmt, str::FromStr};

/// Name of the attribute.
pub const ATTRIBUTE: &str = "epilogue";
/// Operands of the product itself.
pub const FACTORS: usize = 2;
/// Most calls of an epilogue.
pub const MOST_CALLS: usize = 64;

/// An epilogue: calls, each of what came before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Epilogue {
    /// At least one; the last one gives the result.
    pub calls: Vec<Call>,
}

/// A call of an elementwise op.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the op, as in `docs/ops.md`.
    pub op: String,
    /// What it is called with.
    pub terms: Vec<Term>,
}

/// What an op is called with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Term {
    /// The sum.
    Sum,
    /// An element of the request's operand of that number, of those behind the product's own.
    Operand(usize),
    /// What the call of that number gave.
    Made(usize),
    /// A number.
    Number(f64),
}

/// Types of a request with an epilogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types {
    /// Of the sums: that of the product without an epilogue. f32 at least, or an integer of at least 32 bits.
    pub sum: DType,
    /// In which the epilogue is computed: f32, f64, or an integer of at least 32 bits.
    pub compute: DType,
}

impl Epilogue {
    /// The epilogue of a request; `None` where it has none.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] where the text is none.
    pub fn of(request: &Request<'_>) -> Result<Option<Epilogue>, Refusal> {
        let text = request.text(ATTRIBUTE);
        let bad = |why| Refusal::BadRequest(format!("attribute {ATTRIBUTE}: {why}"));
        text.map(|text| text.parse().map_err(bad)).transpose()
    }

    fn check(&self) -> Result<(), String> {
        let made = |call: &Call| {
            let made = call.terms.iter().filter_map(|term| match term {
                Term::Made(made) => Some(*made),
                Term::Sum | Term::Operand(_) | Term::Number(_) => None,
            });
            (call.to_string(), made.collect())
        };
        let last = self.calls.len().checked_sub(1);
        let uses: Vec<_> = self.calls.iter().map(made).collect();
        code::check_made(&uses, last.as_slice())?;
        let mut terms = self.calls.iter().flat_map(|call| &call.terms);
        match terms.any(|term| *term == Term::Sum) {
            true => Ok(()),
            false => Err("it does not use x, the sum".to_owned()),
        }
    }

    /// Fails unless the further operands are those that the epilogue uses: `operands` is how many the request has.
    ///
    /// # Errors
    /// The first that is missing or unused.
    pub fn check_operands(&self, operands: usize) -> Result<(), String> {
        self.check_further(FACTORS, operands)
    }

    /// The same of a request whose operands from `first` on are the further ones.
    ///
    /// # Errors
    /// The first that is missing or unused.
    pub fn check_further(&self, first: usize, operands: usize) -> Result<(), String> {
        let terms = || self.calls.iter().flat_map(|call| &call.terms);
        let missing = terms().find_map(|term| match term {
            Term::Operand(index) if !(first..operands).contains(index) => Some(index),
            _ => None,
        });
        if let Some(index) = missing {
            let known = match operands.saturating_sub(first) {
                0 => "the request has no operands but the product's own".to_owned(),
                1 => format!("the request has only i{first} for it"),
                _ => format!("the request has i{first} to i{} for it", operands - 1),
            };
            return Err(format!("it uses i{index}, and {known}"));
        }
        let is_used = |index: &usize| terms().any(|term| *term == Term::Operand(*index));
        match (first..operands).find(|index| !is_used(index)) {
            Some(unused) => Err(format!("nothing uses i{unused}")),
            None => Ok(()),
        }
    }
}

impl Types {
    /// Types of a request with operands and a result of these; `None` where one of them is complex, or unknown.
    ///
    /// The operands of the product merge, with the result where both are floats or both integers, and widen to 32 bits. The
    /// further operands merge with that, and with a result that is a float, and widen again. `floats` tells of a product
    /// whose sums are floats whatever its operands are.
    pub fn of(inputs: &[DType], result: DType, floats: bool) -> Option<Types> {
        let mut all = inputs.iter().chain([&result]);
        if inputs.len() < FACTORS || all.any(|dtype| dtype.is_complex() || !dtype.is_known()) {
            return None;
        }
        let (factors, further) = inputs.split_at(FACTORS);
        let mut sum = factors[0].merge(factors[1]);
        if floats && sum.is_integer() {
            sum = DType::F32;
        }
        if sum.is_integer() == result.is_integer() {
            sum = sum.merge(result);
        }
        let sum = widened(sum);
        let with_result = further
            .iter()
            .copied()
            .chain(result.is_float().then_some(result));
        let compute = widened(with_result.fold(sum, DType::merge));
        Some(Types { sum, compute })
    }

    /// Types of a request; `None` as [`Types::of`].
    pub fn of_request(request: &Request<'_>) -> Option<Types> {
        let inputs: Vec<DType> = request.inputs.iter().map(|input| input.dtype).collect();
        let result = request
            .outputs
            .first()
            .map(|output: &TensorDesc<'_>| output.dtype)?;
        Types::of(&inputs, result, request.op.as_str() == "conv")
    }
}

fn widened(dtype: DType) -> DType {
    let least = match () {
        () if dtype.is_float() => DType::F32,
        () if dtype.is_signed() => DType::S32,
        () => DType::U32,
    };
    if dtype.size() < least.size() {
        least
    } else {
        dtype
    }
}

impl FromStr for Epilogue {
    type Err = String;

    fn from_str(text: &str) -> Result<Epilogue, String> {
        let calls = code::calls(text, MOST_CALLS, EXAMPLE)?
            .into_iter()
            .map(call);
        let calls = calls.collect::<Result<Vec<Call>, String>>()?;
        let epilogue = Epilogue { calls };
        epilogue.check()?;
        Ok(epilogue)
    }
}

/// How a call looks.
const EXAMPLE: &str = "add(x, i2)";

fn call(written: Written<'_>) -> Result<Call, String> {
    let terms = written.terms().map(term).collect::<Result<_, _>>()?;
    match written.rest {
        "" => Ok(Call {
            op: written.op.to_owned(),
            terms,
        }),
        _ => Err(format!(
            "expected a call such as `{EXAMPLE}`, got: `{}`",
            written.text
        )),
    }
}

fn term(text: &str) -> Result<Term, String> {
    let found = match text {
        "x" => Some(Term::Sum),
        _ => code::index(text, "i")
            .map(Term::Operand)
            .or_else(|| code::index(text, "%").map(Term::Made))
            .or_else(|| code::float(text).map(Term::Number)),
    };
    found.ok_or_else(|| {
        format!("expected x, an operand (i2), a call (%0) or a number, got: `{text}`")
    })
}

/// The text that it is read from.
impl fmt::Display for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<String> = self.calls.iter().map(Call::to_string).collect();
        f.write_str(&calls.join("; "))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.terms.iter().map(Term::to_string).collect();
        write!(f, "{}({})", self.op, terms.join(", "))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Sum => f.write_str("x"),
            Term::Operand(index) => write!(f, "i{index}"),
            Term::Made(index) => write!(f, "%{index}"),
            Term::Number(number) => f.write_str(&code::written(*number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Epilogue>().unwrap_err()
    }

    #[test]
    fn text_and_value_are_the_same() {
        let text = "add(x, i2); multiply(%0, 0.5); erf(%1); max(%2, -inf); multiply(%3, -1e-7)";
        let epilogue: Epilogue = text.parse().unwrap();
        assert_eq!(epilogue.to_string(), text);
        assert_eq!(epilogue.calls[1].terms, [Term::Made(0), Term::Number(0.5)]);
        assert_eq!(epilogue.to_string().parse(), Ok(epilogue));
        let spaced: Epilogue = " exp( x ) ;negate(%0)".parse().unwrap();
        assert_eq!(spaced.to_string(), "exp(x); negate(%0)");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, told) in [
            ("", "expected a call"),
            ("x", "expected a call such as"),
            ("add(x, i2", "expected a call such as"),
            ("Add(x)", "expected a call such as"),
            ("exp(x);", "got: ``"),
            (
                "exp()",
                "expected x, an operand (i2), a call (%0) or a number, got: ``",
            ),
            ("exp(y)", "got: `y`"),
            ("exp(i+2)", "got: `i+2`"),
            ("exp(1e999)", "got: `1e999`"),
            ("exp(add(x, 1))", "got: `add(x`"),
            (
                "exp(%0)",
                "`exp(%0)` uses %0, which no call before it makes",
            ),
            ("exp(x); exp(x)", "nothing uses %0, `exp(x)`"),
            ("exp(i2)", "it does not use x"),
        ] {
            let error = error(text);
            assert!(error.contains(told), "{text}: {error}");
        }
        let long = vec!["exp(x)"; MOST_CALLS + 1].join(";");
        assert!(error(&long).contains("more than 64 calls"));
    }

    #[test]
    fn operands_are_used_and_there() {
        let epilogue: Epilogue = "add(x, i3)".parse().unwrap();
        let told = |operands| epilogue.check_operands(operands).unwrap_err();
        assert!(told(2).contains("i3, and the request has no operands but"));
        assert!(told(3).contains("i3, and the request has only i2"));
        assert!(told(4).contains("nothing uses i2"));
        let own: Epilogue = "add(x, i0)".parse().unwrap();
        assert!(own.check_operands(4).unwrap_err().contains("i2 to i3"));
    }

    #[test]
    fn types_are_wide_and_merged() {
        use DType as D;
        for (inputs, result, floats, types) in [
            (&[D::F16, D::F16][..], D::F16, false, Some((D::F32, D::F32))),
            (
                &[D::BF16, D::BF16, D::F32],
                D::BF16,
                false,
                Some((D::F32, D::F32)),
            ),
            (
                &[D::F32, D::F32, D::F64],
                D::F32,
                false,
                Some((D::F32, D::F64)),
            ),
            (&[D::F32, D::F32], D::F64, false, Some((D::F64, D::F64))),
            (
                &[D::S8, D::S8, D::F32],
                D::S8,
                false,
                Some((D::S32, D::F32)),
            ),
            (
                &[D::S8, D::S8, D::F16],
                D::F16,
                false,
                Some((D::S32, D::F32)),
            ),
            (&[D::U8, D::U8, D::U8], D::U8, false, Some((D::U32, D::U32))),
            (&[D::S8, D::S8], D::S64, false, Some((D::S64, D::S64))),
            (&[D::F16, D::F16], D::S8, false, Some((D::F32, D::F32))),
            (&[D::S8, D::S8], D::F16, true, Some((D::F32, D::F32))),
            (&[D::C64, D::F32], D::C64, false, None),
            (&[D::F32], D::F32, false, None),
        ] {
            let of = Types::of(inputs, result, floats);
            let expected = types.map(|(sum, compute)| Types { sum, compute });
            assert_eq!(of, expected, "{inputs:?} {result}");
        }
    }
}
