//! Reductions of an expression: which part of it is computed for each, what is made of it once for a row, and what the parts after it
//! know.

use nx_vulkan_abi::{
    DType, Define, Expression, Refusal,
    expression::{Call, Term},
    glsl::{define, operand},
};
use nx_vulkan_pack_kit::expression::{Code, stored};

/// A reduction of the expression.
pub(super) struct Reduction {
    pub(super) dtype: DType,
    /// The number of its operand among those of the parts after it.
    pub(super) operand: usize,
    /// The call that it is of, where that is needed again, and the number of that operand.
    pub(super) kept: Option<(usize, usize)>,
    /// Statement that takes another value, with what rounding took from it where that `has_rest`.
    take: &'static str,
    has_rest: bool,
    start: &'static str,
    /// Statements that make its term of an element, and the term.
    code: Code,
    term: String,
    /// What is made of it and of those before it, once for a row: types and operands, and the code of them all.
    pub(super) row: Vec<(DType, usize)>,
    row_code: Option<Code>,
}

impl Reduction {
    pub(super) fn of(
        call: &Call,
        (code, term): (Code, String),
        kept: Option<(usize, usize)>,
        operand: usize,
    ) -> Result<Reduction, Refusal> {
        // Infinities by their bits.
        let has_rest = call.op == "sum" && call.dtype == DType::F32;
        let (take, start) = match call.op.as_str() {
            "sum" if has_rest => ("add(a, a_rest, b, b_rest)", "0"),
            "sum" => ("a += b", "0"),
            "reduce_max" => ("a = greater(a, b)", "uintBitsToFloat(0xff800000u)"),
            "reduce_min" => ("a = less(a, b)", "uintBitsToFloat(0x7f800000u)"),
            other => return Err(Refusal::BadRequest(format!("{other} reduces no rows"))),
        };
        Ok(Reduction {
            dtype: call.dtype,
            operand,
            kept,
            take,
            has_rest,
            start,
            code,
            term,
            row: Vec::new(),
            row_code: None,
        })
    }

    /// Has these operands computed once for a row, after the reduction.
    pub(super) fn make_once(&mut self, row: Vec<(DType, usize)>, code: Code) {
        (self.row, self.row_code) = (row, Some(code));
    }

    /// What the shader needs to know of reduction `k` of `all`.
    pub(super) fn define(
        &self,
        k: usize,
        all: &[Reduction],
        expression: &Expression,
        to: &mut Vec<Define>,
    ) {
        let name = format!("M{k}");
        let keeps = match self.kept {
            Some((call, _)) => {
                to.extend(operand(&format!("S{k}"), expression.calls[call].dtype));
                format!("element.s{k} = {}; ", self.term)
            }
            None => String::new(),
        };
        let whole = if self.has_rest { "whole(a, rest)" } else { "a" };
        let own = stored(&format!("nxv_to_{}(x)", self.dtype), self.dtype);
        to.extend(operand(&name, self.dtype));
        to.extend(self.code.defines());
        let mut once = String::new();
        if let Some(code) = &self.row_code {
            to.extend(code.defines());
            once += &code.body;
            for ((dtype, index), value) in self.row.iter().zip(&code.results) {
                to.extend(operand(&format!("W{index}"), *dtype));
                once += &format!("reduced.w{index} = {value}; ");
            }
        }
        to.extend([
            define(format!("{name}_ONCE"), format!("{}{once}", self.name(k))),
            define(format!("NAMES_BEFORE_{k}"), names(&all[..k])),
            define(format!("{name}_TAKE(a, a_rest, b, b_rest)"), self.take),
            define(format!("{name}_WHOLE(a, rest)"), whole),
            define(
                format!("{name}_HAS_REST"),
                if self.has_rest { "true" } else { "false" },
            ),
            define(format!("{name}_START"), self.start),
            define(
                format!("{name}_CODE"),
                format!("{}{keeps}return {};", self.code.body, self.term),
            ),
            define(format!("{name}_STORED(x)"), own),
        ]);
    }
}

impl Reduction {
    /// The name of its operand.
    fn name(&self, k: usize) -> String {
        format!("M{k}_VALUE i{} = reduced.m{k}; ", self.operand)
    }
}

/// Calls that a row needs once: of reductions and of operands that have one element for a row, as `is_one` tells. Given are those that
/// something else needs.
pub(super) fn once(
    expression: &Expression,
    known: &[Option<usize>],
    is_row: &[bool],
    is_one: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut made_once = vec![false; expression.calls.len()];
    for (place, call) in expression.calls.iter().enumerate() {
        let mut of_row = false;
        let all = call.terms.iter().all(|term| match *term {
            Term::Operand(index) => is_one(index),
            Term::Made(made) => {
                of_row |= is_row[made] || made_once[made];
                is_row[made] || made_once[made]
            }
            Term::Number(..) => true,
        });
        made_once[place] = known[place].is_none() && !call.reduces() && all && of_row;
    }
    let is_read = |place: usize| {
        let mut others = expression.calls.iter().zip(&made_once);
        let reads = |call: &Call| call.terms.contains(&Term::Made(place));
        expression.results.contains(&place) || others.any(|(call, own)| !own && reads(call))
    };
    (0..made_once.len())
        .filter(|place| made_once[*place] && is_read(*place))
        .collect()
}

/// Whether something beside reductions needs a call.
pub(super) fn is_needed(expression: &Expression, call: usize) -> bool {
    let reads = |other: &Call| !other.reduces() && other.terms.contains(&Term::Made(call));
    expression.results.contains(&call) || expression.calls.iter().any(reads)
}

/// The calls that `terms` need, of operands and of calls that are `known`, which are further operands.
pub(super) fn part(expression: &Expression, terms: &[Term], known: &[Option<usize>]) -> Expression {
    let mut needed = vec![false; expression.calls.len()];
    let mut next: Vec<usize> = terms.iter().filter_map(made).collect();
    while let Some(call) = next.pop() {
        if known[call].is_none() && !std::mem::replace(&mut needed[call], true) {
            next.extend(expression.calls[call].terms.iter().filter_map(made));
        }
    }
    let mut renamed: Vec<Term> = Vec::new();
    let mut calls = Vec::new();
    for ((call, needed), known) in expression.calls.iter().zip(needed).zip(known) {
        renamed.push(match known {
            Some(operand) => Term::Operand(*operand),
            None => Term::Made(calls.len()),
        });
        if needed {
            let terms = call.terms.iter().map(|term| match *term {
                Term::Made(made) => renamed[made],
                other => other,
            });
            calls.push(Call {
                terms: terms.collect(),
                ..call.clone()
            });
        }
    }
    // A result is a call, be it one that gives what is known.
    let mut results = Vec::new();
    for made in terms.iter().filter_map(made) {
        results.push(match renamed[made] {
            Term::Made(call) => call,
            known => {
                calls.push(Call {
                    op: "as_type".to_owned(),
                    terms: vec![known],
                    dtype: expression.calls[made].dtype,
                });
                calls.len() - 1
            }
        });
    }
    Expression { calls, results }
}

pub(super) fn made(term: &Term) -> Option<usize> {
    match *term {
        Term::Made(made) => Some(made),
        Term::Operand(_) | Term::Number(..) => None,
    }
}

/// Names of operands for what reductions give and keep.
pub(super) fn names(reductions: &[Reduction]) -> String {
    let mut all = String::new();
    for (k, reduction) in reductions.iter().enumerate() {
        if let Some((_, operand)) = reduction.kept {
            all += &format!("S{k}_VALUE i{operand} = element.s{k}; ");
        }
        all += &reduction.name(k);
        for (_, index) in &reduction.row {
            all += &format!("W{index}_VALUE i{index} = reduced.w{index}; ");
        }
    }
    all
}
