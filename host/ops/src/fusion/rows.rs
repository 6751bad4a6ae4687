//! Rows: reductions of the last axis, what they are of, and what is made of them are one request. A softmax or a normalization is
//! one dispatch then, and what it reads is read once.

use super::{
    Facts, Input, Making, append, follow::expression_of, group::MOST_BOUND, operand_of, renumbered,
    shapes,
};
use crate::{
    Attr, DType, Program, Request, Result, Spec, Step, Value,
    attrs::ints,
    contracts::broadcast,
    expression::{ROWS, partial_call},
};
use nx_vulkan_abi::expression::{ATTRIBUTE, Call, Expression, REDUCTIONS, Term};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Elements of a row: a workgroup holds no more than so many.
const LENGTHS: std::ops::RangeInclusive<u64> = 1..=8192;
/// What bounds the code of a shader, each reduction's once more.
const MOST_CALLS: usize = 48;
const MOST_REDUCTIONS: usize = 4;
/// Results, which a shader has to keep in registers.
const MOST_RESULTS: usize = 4;

/// Steps over rows of one shape, ascending.
#[derive(Debug, Clone)]
struct Rows {
    places: Vec<usize>,
    /// Of the elements; values of rows have one in place of the last extent.
    shape: Vec<u64>,
}

/// The program in which reductions of rows of floats are one request each with the elementwise ops before and after them. It gives
/// the same bits, but for the order in which a row is summed.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn rows(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let mut groups = Vec::new();
    let mut open: Vec<Rows> = Vec::new();
    for (place, step) in program.steps().iter().enumerate() {
        let reads = |group: &mut Rows| {
            let mut makers = step.inputs().iter().filter_map(|value| facts.maker(*value));
            makers.any(|maker| group.places.binary_search(&maker).is_ok())
        };
        let read: Vec<Rows> = open.extract_if(.., reads).collect();
        let found = member(step, &shapes, &facts, &read);
        let Some(mut group) = found.map(|shape| Rows {
            places: vec![place],
            shape,
        }) else {
            groups.extend(read);
            continue;
        };
        for other in read.into_iter().rev() {
            let mut both = group.clone();
            both.places.extend(&other.places);
            both.places.sort_unstable();
            match both.shape == other.shape && both.request(&program, &facts, &shapes).is_some() {
                true => group = both,
                false => groups.push(other),
            }
        }
        open.push(group);
    }
    groups.extend(open);

    let reduces = |place: &usize| reduction(&program.steps()[*place], &shapes).is_some();
    let mut steps: Vec<Option<Making>> = Vec::new();
    for (place, step) in program.steps().iter().enumerate() {
        let made = (facts.first[place]..).take(step.made()).collect();
        steps.push(Some((step.clone(), made, program.stands_for(place))));
    }
    for group in groups {
        let is_one = group.places.len() > 1 && group.places.iter().any(reduces);
        let (Some((request, made)), Some((last, others))) = (
            group.request(&program, &facts, &shapes),
            group.places.split_last(),
        ) else {
            continue;
        };
        if is_one {
            let mut own = SmallVec::new();
            others.iter().for_each(|&other| {
                own.extend(steps[other].take().into_iter().flat_map(|(_, _, own)| own));
            });
            own.extend(program.stands_for(*last));
            steps[*last] = Some((request.into(), made, own));
        }
    }
    renumbered(&program, steps)
}

/// What a step reduces along the last axis, and its shape, where the result keeps that axis.
fn reduction<'a>(step: &Step<'_>, shapes: &'a [Vec<u64>]) -> Option<&'a Vec<u64>> {
    let (shape, out) = reduced_by(step, shapes)?;
    (*out == reduced(shape)).then_some(shape)
}

/// The shape of what a step reduces along the last axis, of rows that are not too long, and that of its result.
pub(super) fn reduced_by<'a, 's>(
    step: &'s Step<'_>,
    shapes: &'a [Vec<u64>],
) -> Option<(&'a Vec<u64>, &'s Vec<u64>)> {
    let Step::Request(request) = step else {
        return None;
    };
    let (&[value], [(_, out)]) = (&*request.inputs, &*request.outputs) else {
        return None;
    };
    let shape = &shapes[value as usize];
    let along = [shape.len() as i64 - 1];
    let is_one = REDUCTIONS.contains(&&*request.op)
        && request.attrs.len() == 1
        && ints(&request.attrs, "axes") == along
        && LENGTHS.contains(shape.last()?);
    is_one.then_some((shape, out))
}

pub(super) fn reduced(shape: &[u64]) -> Vec<u64> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = 1;
    }
    shape
}

/// The shape of the rows that a step may be one of, where it reads values of the groups `read`.
fn member(
    step: &Step<'static>,
    shapes: &[Vec<u64>],
    facts: &Facts,
    read: &[Rows],
) -> Option<Vec<u64>> {
    if let Some(shape) = reduction(step, shapes) {
        return Some(shape.clone());
    }
    let Step::Request(request) = step else {
        return None;
    };
    expression_of(request, facts)?;
    let shape = &request.outputs.first()?.1;
    let is_row = |shape: &&Vec<u64>| shape.last().is_some_and(|last| LENGTHS.contains(last));
    // What has one value for each row is of the rows that it comes from.
    let mut of_rows = read.iter().rev().map(|group| &group.shape);
    let of_rows = of_rows.find(|rows| reduced(rows) == *shape);
    of_rows.or_else(|| Some(shape).filter(is_row)).cloned()
}

impl Rows {
    /// The request for all of it, and the values that its results are; `None` where that is too large for one.
    fn request(
        &self,
        program: &Program<'static>,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<(Request<'static, Value>, Vec<Value>)> {
        let mut operands: Vec<Value> = Vec::new();
        let mut calls: Vec<Call> = Vec::new();
        let mut made: HashMap<Value, usize> = HashMap::new();
        let mut reads: HashMap<Value, usize> = HashMap::new();
        for &place in &self.places {
            let Step::Request(request) = &program.steps()[place] else {
                return None;
            };
            let own = own_expression(request, facts)?;
            let first = append(&mut calls, &own.calls, |index| {
                let value = request.inputs[index];
                match made.get(&value) {
                    Some(call) => Term::Made(*call),
                    None => Term::Operand(operand_of(&mut operands, value)),
                }
            });
            for &value in request.inputs.iter() {
                *reads.entry(value).or_default() += 1;
            }
            for (value, call) in (facts.first[place]..).zip(&own.results) {
                made.insert(value, first + call);
            }
        }
        let is_read = |value: &Value| {
            let own = reads.get(value).copied().unwrap_or(0);
            facts.uses[*value as usize] > own
        };
        let mut values: Vec<Value> = made.keys().copied().filter(is_read).collect();
        values.sort_unstable();
        let expression = Expression {
            results: values.iter().map(|value| made[value]).collect(),
            calls,
        };
        let dtypes: Vec<DType> = operands
            .iter()
            .map(|value| facts.dtypes[*value as usize])
            .collect();
        let spec = |value: &Value| {
            (
                facts.dtypes[*value as usize],
                shapes[*value as usize].clone(),
            )
        };
        let outputs: Vec<Spec> = values.iter().map(spec).collect();
        let specs: Vec<Spec> = operands.iter().map(spec).collect();
        let all = expression.calls.iter();
        let is_whole =
            |call: &Call| call.reduces() || partial_call(&expression, call, &dtypes).is_none();
        // What operands broadcast to are the rows that the request is of.
        let fits = broadcast(&specs).is_ok_and(|shape| shape == self.shape)
            && expression.calls.len() <= MOST_CALLS
            && all.clone().filter(|call| call.reduces()).count() <= MOST_REDUCTIONS
            && all.clone().all(is_whole)
            && (1..=MOST_RESULTS).contains(&outputs.len())
            && !operands.is_empty()
            && operands.len() + outputs.len() <= MOST_BOUND;
        let attrs = vec![Attr::text(ATTRIBUTE, &expression.to_string())];
        let request = Request::new(ROWS, operands, outputs, attrs);
        (fits && request.over(specs).check().is_ok()).then_some((request, values))
    }
}

/// What a step of a group computes: an elementwise one, or a reduction.
fn own_expression(request: &Request<'static, Value>, facts: &Facts) -> Option<Expression> {
    if !REDUCTIONS.contains(&&*request.op) {
        return expression_of(request, facts);
    }
    let call = Call {
        op: request.op.to_string(),
        terms: vec![Term::Operand(0)],
        dtype: request.outputs[0].0,
    };
    Some(Expression {
        calls: vec![call],
        results: vec![0],
    })
}
