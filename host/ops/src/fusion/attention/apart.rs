//! Rows of which a softmax is one result: that alone, and a request for the others, such as a bias that later layers read too.

use crate::{
    Attr, Request, Spec, Value,
    expression::{self, FUSED, ROWS},
    fusion::{append, operand_of},
};
use nx_vulkan_abi::expression::{ATTRIBUTE, Call, Expression, Term};

/// A request, and the values that its results are.
pub(super) type Made = (Request<'static, Value>, Vec<Value>);

/// The result `weights` of rows by itself, with the other results as further operands, and what makes these. `None` where they are
/// made of the scores, or by a reduction.
pub(super) fn apart(
    rows: &Request<'static, Value>,
    (made, weights): (&[Value], Value),
    scores: Value,
    spec: impl Fn(Value) -> Spec,
) -> Option<(Request<'static, Value>, Option<Made>)> {
    if let [_] = made {
        return Some((rows.clone(), None));
    }
    let expression = expression::of(&rows.attrs).ok();
    let expression = expression.filter(|_| rows.op == ROWS)?;
    let results = expression.results.iter().zip(made);
    let (own, others): (Vec<_>, Vec<_>) = results.partition(|(_, value)| **value == weights);
    let (calls, values): (Vec<usize>, Vec<Value>) = others.into_iter().unzip();
    let &[(&own, _)] = &own[..] else {
        return None;
    };

    let before = part(&expression, &calls, |_| None);
    let is_scores =
        |term: &Term| matches!(*term, Term::Operand(index) if rows.inputs[index] == scores);
    let mut all = before.calls.iter();
    if all.any(|call| call.reduces() || call.terms.iter().any(is_scores)) {
        return None;
    }
    let mut operands = Vec::new();
    let mut own_calls = Vec::new();
    append(&mut own_calls, &before.calls, |index| {
        Term::Operand(operand_of(&mut operands, rows.inputs[index]))
    });
    let text = Expression {
        calls: own_calls,
        ..before
    };
    let specs: Vec<Spec> = operands.iter().map(|&value| spec(value)).collect();
    let outputs = values.iter().map(|&value| spec(value)).collect::<Vec<_>>();
    let attrs = vec![Attr::text(ATTRIBUTE, &text.to_string())];
    let request = Request::new(FUSED, operands, outputs, attrs);
    request.over(specs).check().ok()?;

    let first = rows.inputs.len();
    let softmax = part(&expression, &[own], |call| {
        let other = calls.iter().position(|other| *other == call)?;
        Some(Term::Operand(first + other))
    });
    let inputs = [&rows.inputs, &values[..]].concat();
    let outputs = vec![spec(weights)];
    let attrs = vec![Attr::text(ATTRIBUTE, &softmax.to_string())];
    let alone = Request::new(ROWS, inputs, outputs, attrs);
    Some((alone, Some((request, values))))
}

/// What these calls of an expression are made of, where some calls are other terms.
fn part(
    expression: &Expression,
    results: &[usize],
    known: impl Fn(usize) -> Option<Term>,
) -> Expression {
    let all = &expression.calls;
    let mut is_needed = vec![false; all.len()];
    results.iter().for_each(|&call| is_needed[call] = true);
    for (index, call) in all.iter().enumerate().rev() {
        is_needed[index] &= known(index).is_none();
        for term in &call.terms {
            if let Term::Made(made) = *term {
                is_needed[made] |= is_needed[index];
            }
        }
    }
    let place = |call: usize| is_needed[..call].iter().filter(|own| **own).count();
    let renamed = |term: &Term| match *term {
        Term::Made(call) => known(call).unwrap_or_else(|| Term::Made(place(call))),
        operand_or_number => operand_or_number,
    };
    let needed = all.iter().zip(&is_needed).filter(|(_, own)| **own);
    let calls = needed.map(|(call, _)| Call {
        terms: call.terms.iter().map(renamed).collect(),
        ..call.clone()
    });
    Expression {
        calls: calls.collect(),
        results: results.iter().map(|&call| place(call)).collect(),
    }
}
