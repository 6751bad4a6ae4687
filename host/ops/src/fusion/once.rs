//! Rounding: what ops of f16 and bf16 make that nothing but others of them read keeps the bits of f32. To round each of them is
//! most of what a shader does for such ops, and costs digits.

use super::{Facts, Input, rebuilt};
use crate::{
    Attr, DType, Program, Request, Result, Step, Value,
    attrs::text,
    expression::{FUSED, ROWS},
};
use nx_vulkan_abi::{
    expression::{ATTRIBUTE, Call, Expression, MOST_CALLS, Number, Term},
    precision,
};

/// Ops whose results change a little where their operands do: what is cut off, counted or compared is so as it was.
const STEADY: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "divide",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "log",
    "log1p",
    "max",
    "min",
    "multiply",
    "negate",
    "pow",
    "reduce_max",
    "reduce_min",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "sum",
    "tan",
    "tanh",
];

/// The program in which requests of several ops round what has less than 32 bits where it leaves them, and what decides something,
/// since an op that is not steady reads it, for all who read it. A request that has wider floats of its own is left: what is permitted
/// for narrow ones would be for them.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn rounded_once(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let steps = program.steps().iter().enumerate().map(|(place, step)| {
        let other = match step {
            Step::Request(request) => rounding(request, &facts),
            Step::View(..) => None,
        };
        let step = other.map_or_else(|| step.clone(), Step::from);
        Some((step, program.stands_for(place)))
    });
    let steps = steps.collect();
    rebuilt(&program, steps)
}

fn rounding(request: &Request<'static, Value>, facts: &Facts) -> Option<Request<'static, Value>> {
    if request.op != FUSED && request.op != ROWS {
        return None;
    }
    let dtypes = request.inputs.iter();
    let dtypes: Vec<DType> = dtypes.map(|&value| facts.dtypes[value as usize]).collect();
    let expression: Expression = text(&request.attrs, ATTRIBUTE)?.parse().ok()?;
    let wide = Wide::of(&expression, &dtypes)?;
    let attrs = vec![
        Attr::text(ATTRIBUTE, &wide.to_string()),
        Attr::text(precision::ATTRIBUTE, "high"),
    ];
    Some(Request {
        attrs: attrs.into(),
        ..request.clone()
    })
}

fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// An expression as it is written anew.
struct Wide<'a> {
    from: &'a Expression,
    /// Of each call whether something hangs on the number that it gives.
    decides: Vec<bool>,
    calls: Vec<Call>,
    /// Of each call of the former one, what it is in f32, and in the type that it had.
    wide: Vec<Option<usize>>,
    own: Vec<Option<usize>>,
    /// Operands in f32.
    operands: Vec<Option<usize>>,
}

impl Wide<'_> {
    /// `None` where nothing is gained, or it would be too long.
    fn of(from: &Expression, operands: &[DType]) -> Option<Expression> {
        let widens: Vec<bool> = from
            .calls
            .iter()
            .map(|call| widens(from, call, operands))
            .collect();
        let is_wide = |term: &Term| matches!(*term, Term::Made(made) if widens[made]);
        let mut both = from.calls.iter().zip(&widens);
        let gains = both.any(|(call, &widens)| widens && call.terms.iter().any(is_wide));
        let has_others = from.calls.iter().any(|call| is_wider(call.dtype));
        if !gains || has_others {
            return None;
        }
        let mut own = Wide {
            from,
            decides: decides(from, &widens),
            calls: Vec::new(),
            wide: vec![None; from.calls.len()],
            own: vec![None; from.calls.len()],
            operands: vec![None; operands.len()],
        };
        for (place, call) in from.calls.iter().enumerate() {
            match widens[place] {
                true => own.widen(place, call),
                false => own.keep(place, call),
            }
        }
        let results: Vec<usize> = from.results.iter().map(|&call| own.rounded(call)).collect();
        (own.calls.len() <= MOST_CALLS).then_some(Expression {
            calls: own.calls,
            results,
        })
    }

    fn push(&mut self, op: &str, terms: Vec<Term>, dtype: DType) -> usize {
        self.calls.push(Call {
            op: op.to_owned(),
            terms,
            dtype,
        });
        self.calls.len() - 1
    }

    /// A call in f32.
    fn widen(&mut self, place: usize, call: &Call) {
        let is_choice = call.op == "select";
        let terms = call.terms.iter().enumerate();
        let mut terms: Vec<Term> = terms
            .map(|(index, &term)| match is_choice && index == 0 {
                true => self.as_it_was(term),
                false => self.in_f32(term),
            })
            .collect();
        let op = match (&*call.op, terms.get_mut(1)) {
            // It is rounded to fewer digits than the difference is in.
            ("divide", Some(Term::Number(Number::Float(by), _))) if has_reciprocal(*by) => {
                *by = f64::from(1.0 / *by as f32);
                "multiply"
            }
            (op, _) => op,
        };
        self.wide[place] = Some(self.push(op, terms, DType::F32));
        if self.decides[place] {
            self.rounded(place);
            // Who reads it reads that.
            self.wide[place] = None;
        }
    }

    /// A call as it was.
    fn keep(&mut self, place: usize, call: &Call) {
        let terms = call.terms.iter().map(|&term| self.as_it_was(term));
        let terms = terms.collect();
        self.own[place] = Some(self.push(&call.op, terms, call.dtype));
    }

    fn in_f32(&mut self, term: Term) -> Term {
        match term {
            Term::Number(Number::Integer(whole), _) => {
                Term::Number(Number::Float(whole as f64), DType::F32)
            }
            Term::Number(number, _) => Term::Number(number, DType::F32),
            Term::Operand(index) => {
                let known = self.operands[index];
                let call = known.unwrap_or_else(|| self.push("as_type", vec![term], DType::F32));
                self.operands[index] = Some(call);
                Term::Made(call)
            }
            Term::Made(place) => {
                let known = self.wide[place];
                let call = known.unwrap_or_else(|| {
                    let own = Term::Made(self.rounded(place));
                    self.push("as_type", vec![own], DType::F32)
                });
                self.wide[place] = Some(call);
                Term::Made(call)
            }
        }
    }

    fn as_it_was(&mut self, term: Term) -> Term {
        match term {
            Term::Made(place) => Term::Made(self.rounded(place)),
            Term::Operand(_) | Term::Number(..) => term,
        }
    }

    /// The call that has what one of the former expression gave, in its type.
    fn rounded(&mut self, place: usize) -> usize {
        let dtype = self.from.calls[place].dtype;
        let known = self.own[place];
        let call = known.unwrap_or_else(|| {
            let wide = self.wide[place].map(Term::Made);
            self.push("as_type", wide.into_iter().collect(), dtype)
        });
        self.own[place] = Some(call);
        call
    }
}

/// Whether a call is one of narrow floats that may be computed in f32.
fn widens(expression: &Expression, call: &Call, operands: &[DType]) -> bool {
    let choice = usize::from(call.op == "select");
    let mut terms = call.terms.iter().skip(choice);
    let is_narrow_term = |term: &Term| match *term {
        // Of at most 24 bits: a number of f32.
        Term::Number(Number::Integer(whole), _) => whole.unsigned_abs() < 1 << 24,
        _ => expression.dtype(term, operands).is_some_and(is_narrow),
    };
    is_narrow(call.dtype) && STEADY.contains(&&*call.op) && terms.all(is_narrow_term)
}

/// Of each call whether one reads it that stays as it was, or chooses by it.
fn decides(expression: &Expression, widens: &[bool]) -> Vec<bool> {
    let mut decides = vec![false; expression.calls.len()];
    for (call, &widens) in expression.calls.iter().zip(widens) {
        let choice = usize::from(call.op == "select");
        let terms = &call.terms[..if widens { choice } else { call.terms.len() }];
        for term in terms {
            if let Term::Made(place) = *term {
                decides[place] = true;
            }
        }
    }
    decides
}

fn is_wider(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

/// Whether a number has a reciprocal in f32 that is as exact as others.
fn has_reciprocal(number: f64) -> bool {
    (number as f32).is_normal() && (1.0 / number as f32).is_normal()
}
