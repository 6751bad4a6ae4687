//! What broadcasts is computed where it is read: a few ops for each element cost less than a dispatch that waits for another one.

use super::{
    Facts, Input, append, follow::expression_of, follow::is_light, group::MOST_BOUND, operand_of,
    rebuilt,
};
use crate::{Attr, Program, Request, Result, Step, Value, expression::FUSED};
use nx_vulkan_abi::expression::{ATTRIBUTE, Call, Expression, Term};

/// Elements up to which an op's operands are computed for each of them.
const MOST_ELEMENTS: u64 = 1 << 20;
/// Calls of a request that are left short enough.
const MOST_CALLS: usize = 32;

/// The program in which light elementwise ops of floats, whose results one elementwise request of another shape reads alone, are
/// part of that. It gives the same bits.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn inline(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let mut uses = facts.uses.clone();
    let mut steps: Vec<Option<Step<'static>>> = program.steps().iter().cloned().map(Some).collect();
    let mut places: Vec<_> = (0..steps.len())
        .map(|step| program.stands_for(step))
        .collect();
    for place in 0..steps.len() {
        while let Some((other, both)) = joined(&steps, place, &facts, &uses) {
            let before = [other, place].map(|at| steps[at].as_ref().map_or(&[][..], Step::inputs));
            before
                .concat()
                .iter()
                .for_each(|value| uses[*value as usize] -= 1);
            both.inputs
                .iter()
                .for_each(|value| uses[*value as usize] += 1);
            steps[place] = Some(both.into());
            steps[other] = None;
            let own = std::mem::take(&mut places[other]);
            places[place].insert_many(0, own);
        }
    }

    let steps = steps.into_iter().zip(places);
    let steps = steps.map(|(step, places)| step.map(|step| (step, places)));
    rebuilt(&program, steps.collect())
}

/// A step that can be part of the one at `place`, which reads it, and both as one.
fn joined(
    steps: &[Option<Step<'static>>],
    place: usize,
    facts: &Facts,
    uses: &[usize],
) -> Option<(usize, Request<'static, Value>)> {
    let Some(Step::Request(reader)) = &steps[place] else {
        return None;
    };
    let makers = reader.inputs.iter().filter_map(|&value| facts.maker(value));
    makers.into_iter().find_map(|other| {
        let Some(Step::Request(maker)) = &steps[other] else {
            return None;
        };
        let own = facts.first[other]..facts.first[other] + maker.outputs.len() as Value;
        let is_alone = own.clone().all(|value| {
            let reads = reader.inputs.iter().filter(|read| **read == value);
            reads.count() == uses[value as usize]
        });
        let shape = &reader.outputs.first()?.1;
        let fits = is_alone
            && maker.outputs.first()?.1 != *shape
            && shape.iter().product::<u64>() <= MOST_ELEMENTS;
        fits.then(|| both(maker, own.start, reader, facts))
            .flatten()
            .map(|both| (other, both))
    })
}

/// Two requests as one; the first one's results are the values from `made` on.
fn both(
    maker: &Request<'static, Value>,
    made: Value,
    reader: &Request<'static, Value>,
    facts: &Facts,
) -> Option<Request<'static, Value>> {
    let (first, last) = (expression_of(maker, facts)?, expression_of(reader, facts)?);
    let is_float = |call: &Call| call.dtype.is_float();
    if !first.calls.iter().all(is_float) || !is_light(&first)? {
        return None;
    }
    let mut operands: Vec<Value> = Vec::new();
    let mut calls = Vec::new();
    append(&mut calls, &first.calls, |index| {
        Term::Operand(operand_of(&mut operands, maker.inputs[index]))
    });
    let own = append(&mut calls, &last.calls, |index| {
        let value = reader.inputs[index];
        let result = value.checked_sub(made).map(|result| result as usize);
        match result.and_then(|result| first.results.get(result)) {
            Some(call) => Term::Made(*call),
            None => Term::Operand(operand_of(&mut operands, value)),
        }
    });
    let results = last.results.iter().map(|call| call + own).collect();
    let fits = calls.len() <= MOST_CALLS
        && !operands.is_empty()
        && operands.len() + reader.outputs.len() <= MOST_BOUND;
    let text = Expression { calls, results }.to_string();
    let attrs = vec![Attr::text(ATTRIBUTE, &text)];
    fits.then(|| Request::new(FUSED, operands, reader.outputs.to_vec(), attrs))
}
