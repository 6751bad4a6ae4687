//! Reductions of an expression: which part of it is computed for each, what is made of it once for a row, and what the parts after it
//! know.

use nx_vulkan_abi::{
    DType, Define, DeviceInfo, Expression, Refusal, Request, TensorDesc,
    expression::{Call, Term},
    glsl::{define, operand},
};
use nx_vulkan_pack_kit::expression::{self, Code, stored};

/// A reduction of the expression.
pub(super) struct Reduction {
    pub(super) dtype: DType,
    /// The number of its operand among those of the parts after it.
    operand: usize,
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

/// What is known of an expression from some part on: operands of the parts after it, behind those of the request.
pub(super) struct Known {
    operands: Vec<DType>,
    /// By call the operand that it is.
    of: Vec<Option<usize>>,
    /// By call whether all elements of a row have the same.
    is_row: Vec<bool>,
    /// Whether calls of f32 may have the digits of narrower types.
    is_loose: bool,
}

impl Known {
    fn next(&mut self, call: usize, expression: &Expression) -> usize {
        self.operands.push(expression.calls[call].dtype);
        self.of[call] = Some(self.operands.len() - 1);
        self.operands.len() - 1
    }

    /// The code of what `terms` need beside that.
    pub(super) fn code(
        &self,
        expression: &Expression,
        terms: &[Term],
        device: &DeviceInfo<'_>,
    ) -> Result<Code, Refusal> {
        let part = part(expression, terms, &self.of);
        Code::within(&part, &self.operands, device, self.is_loose)
    }
}

impl Reduction {
    /// The reductions of a request's expression, in their order, and what is known after them.
    pub(super) fn all(
        request: &Request<'_>,
        expression: &Expression,
    ) -> Result<(Vec<Reduction>, Known), Refusal> {
        let inputs = request.inputs.as_slice();
        let mut known = Known {
            operands: inputs.iter().map(|input| input.dtype).collect(),
            of: vec![None; expression.calls.len()],
            is_row: vec![false; expression.calls.len()],
            is_loose: expression::is_loose(request),
        };
        let is_one = |k: usize| {
            let is_one = |input: &TensorDesc<'_>| input.shape.last().is_none_or(|last| *last == 1);
            inputs.get(k).is_some_and(is_one)
        };
        let reductions = expression.calls.iter().enumerate();
        let reductions = reductions.filter(|(_, call)| call.reduces());
        let all = reductions.map(|(place, call)| {
            let code = known.code(expression, &call.terms, request.device)?;
            let term = match call.terms[..] {
                [Term::Operand(index)] => format!("i{index}"),
                [Term::Made(made)] if known.of[made].is_some() => {
                    format!("i{}", known.of[made].unwrap_or_default())
                }
                _ => code.results.first().cloned().unwrap_or_default(),
            };
            let mut kept = call.terms.iter().find_map(made);
            kept = kept.filter(|made| known.of[*made].is_none() && is_needed(expression, *made));
            let kept = kept.map(|made| (made, known.next(made, expression)));
            known.is_row[place] = true;
            let own = known.next(place, expression);
            let mut reduction = Reduction::of(call, (code, term), kept, own, known.is_loose)?;
            let once = once(expression, &known, is_one);
            if !once.is_empty() {
                let terms: Vec<Term> = once.iter().copied().map(Term::Made).collect();
                let code = known.code(expression, &terms, request.device)?;
                let row = once.into_iter().map(|made| {
                    known.is_row[made] = true;
                    let operand = known.next(made, expression);
                    (expression.calls[made].dtype, operand)
                });
                reduction.row = row.collect();
                reduction.row_code = Some(code);
            }
            Ok(reduction)
        });
        let all = all.collect::<Result<Vec<Reduction>, Refusal>>()?;
        Ok((all, known))
    }

    fn of(
        call: &Call,
        (code, term): (Code, String),
        kept: Option<(usize, usize)>,
        operand: usize,
        is_loose: bool,
    ) -> Result<Reduction, Refusal> {
        // Infinities by their bits.
        let has_rest = call.op == "sum" && call.dtype == DType::F32 && !is_loose;
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
fn once(expression: &Expression, known: &Known, is_one: impl Fn(usize) -> bool) -> Vec<usize> {
    let Known { of, is_row, .. } = known;
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
        made_once[place] = of[place].is_none() && !call.reduces() && all && of_row;
    }
    let is_read = |place: usize| {
        let reads = |call: &Call| call.terms.contains(&Term::Made(place));
        let mut others = expression.calls.iter().zip(of).zip(&made_once);
        expression.results.contains(&place)
            || others.any(|((call, known), own)| known.is_none() && !own && reads(call))
    };
    (0..made_once.len())
        .filter(|place| made_once[*place] && is_read(*place))
        .collect()
}

/// Whether something beside reductions needs a call.
fn is_needed(expression: &Expression, call: usize) -> bool {
    let reads = |other: &Call| !other.reduces() && other.terms.contains(&Term::Made(call));
    expression.results.contains(&call) || expression.calls.iter().any(reads)
}

/// The calls that `terms` need, of operands and of calls that are `known`, which are further operands.
fn part(expression: &Expression, terms: &[Term], known: &[Option<usize>]) -> Expression {
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

fn made(term: &Term) -> Option<usize> {
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
