//! Reductions of an expression: which part of it is computed for each, and what the parts after it know.

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
        })
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
        to.extend([
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
        all += &format!("M{k}_VALUE i{} = reduced.m{k}; ", reduction.operand);
    }
    all
}
