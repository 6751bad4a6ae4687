//! Fusion: elementwise ops of one shape that follow from each other become one request, `fused`. It says what is one, not who
//! runs it.
//!
//! A group grows as long as nothing outside of it has read a value of it. So it runs where its last op stood: what it reads was
//! made before, and who reads it comes after.

mod attention;
mod follow;
mod group;
mod halves;
mod inline;
mod kept;
mod lasting;
mod once;
mod repeats;
mod rows;
mod split;
mod turned;

use crate::{DType, Program, Result, Spec, Step, Value, View, expression};
pub use attention::attention;
pub use follow::take_along;
use group::Group;
pub use halves::halves;
pub use inline::inline;
use kept::kept;
pub use lasting::{lasting, untold, weights};
use nx_vulkan_abi::expression::{Call, Number, Term};
pub use once::rounded_once;
pub use repeats::repeats;
pub use rows::rows;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
pub use turned::turned;

/// What is known of an input of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Type and shape.
    pub spec: Spec,
    /// The bytes of each of its elements, where all are the same in every run.
    pub element: Option<Vec<u8>>,
}

/// The program with its groups as one request each. It gives the same bits, but for which NaN it is, and the sign of a zero that
/// is the least or greatest of two.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn fuse(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let mut groups = groups(&program, &facts);
    share_texts(&mut groups, &program, &facts);
    // Where each group is emitted, and who is in one.
    let mut last: Vec<Option<&Group>> = vec![None; program.steps().len()];
    let mut is_member = vec![false; program.steps().len()];
    for group in groups.iter().filter(|group| group.places.len() > 1) {
        last[group.last()] = Some(group);
        group
            .places
            .iter()
            .for_each(|&place| is_member[place] = true);
    }
    let steps = program
        .steps()
        .iter()
        .enumerate()
        .map(|(place, step)| match last[place] {
            Some(group) => {
                let (request, made) = group.request(&program, &facts);
                Some((request.into(), made, group.places.clone()))
            }
            None if is_member[place] => None,
            None => {
                let made = (facts.first[place]..).take(step.made()).collect();
                Some((step.clone(), made, smallvec![place]))
            }
        });
    renumbered(&program, steps.collect())
}

/// What [`fuse`] gave as a GPU runs it, where a dispatch that waits for another one costs microseconds. What is of f16 and bf16 is
/// rounded less often than by ops one by one, so that its bits are others.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn with_few_dispatches(
    program: Program<'static>,
    inputs: &[Input],
) -> Result<Program<'static>> {
    let passes = [
        halves,
        take_along,
        repeats,
        inline,
        rows,
        attention,
        rounded_once,
        turned,
        lasting,
    ];
    let mut passes = passes.into_iter();
    passes.try_fold(program, |program, pass| pass(program, inputs))
}

/// What [`fuse`] gave as a CPU runs it, where what is too large for a cache costs its way through memory: rows are reduced together
/// with what they are of.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn within_cache(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    rows(kept(program, inputs)?, inputs)
}

/// A step on values of other numbers.
fn reading(step: Step<'static>, renamed: &[Value]) -> Step<'static> {
    let renamed = |value: &Value| renamed[*value as usize];
    match step {
        Step::Request(mut request) => {
            request.inputs = request.inputs.iter().map(renamed).collect();
            request.into()
        }
        Step::View(value, view) => Step::View(renamed(&value), view),
    }
}

/// A step, and the places of those that it stands for.
type Standing = (Step<'static>, SmallVec<[usize; 1]>);

/// The program with these in place of its steps; one that is none is part of another, and nobody else reads what it made.
fn rebuilt(program: &Program<'static>, steps: Vec<Option<Standing>>) -> Result<Program<'static>> {
    let mut next = program.inputs() as Value;
    let steps = steps
        .into_iter()
        .zip(program.steps())
        .map(|(step, before)| {
            let made: Vec<Value> = (next..).take(before.made()).collect();
            next += made.len() as Value;
            let (step, places) = step?;
            Some((step, made, places))
        });
    let steps = steps.collect();
    renumbered(program, steps)
}

/// A step, the values of the program that it makes, and the places of the steps that it stands for.
type Making = (Step<'static>, Vec<Value>, SmallVec<[usize; 1]>);

/// The program with these steps, on values of its own. What they make beside the program's values has numbers behind these.
fn renumbered(program: &Program<'static>, steps: Vec<Option<Making>>) -> Result<Program<'static>> {
    let made = steps.iter().flatten().flat_map(|(_, made, _)| made);
    let most = made.max().map_or(0, |&most| most as usize + 1);
    let mut renamed: Vec<Value> = (0..program.inputs() as Value).collect();
    renamed.resize(most.max(program.inputs()), Value::MAX);
    let (mut kept, mut places) = (Vec::new(), Vec::new());
    let mut next = program.inputs() as Value;
    for (step, made, own) in steps.into_iter().flatten() {
        kept.push(reading(step, &renamed));
        places.push(own);
        for value in made {
            renamed[value as usize] = next;
            next += 1;
        }
    }
    let results = program.results().iter();
    let results: Vec<Value> = results.map(|&value| renamed[value as usize]).collect();
    let program = Program::new(program.inputs(), kept, results)?;
    Ok(program.in_place_of(places))
}

/// Calls behind others, on operands of their own; gives where they begin.
fn append(calls: &mut Vec<Call>, own: &[Call], mut operand: impl FnMut(usize) -> Term) -> usize {
    let first = calls.len();
    for call in own {
        let terms = call.terms.iter().map(|term| match *term {
            Term::Made(call) => Term::Made(first + call),
            Term::Operand(index) => operand(index),
            number @ Term::Number(..) => number,
        });
        calls.push(Call {
            terms: terms.collect(),
            ..call.clone()
        });
    }
    first
}

/// Which operand a value is, the next one where it is none yet.
fn operand_of(operands: &mut Vec<Value>, value: Value) -> usize {
    let known = operands.iter().position(|known| *known == value);
    known.unwrap_or_else(|| {
        operands.push(value);
        operands.len() - 1
    })
}

/// Numbers by which alone the texts of groups differ become operands: each text is a shader, and a loop that is written out has
/// another number in each iteration.
fn share_texts(groups: &mut [Group], program: &Program<'_>, facts: &Facts) {
    let mut alike: HashMap<String, Vec<(usize, Vec<Number>)>> = HashMap::new();
    let fused = groups.iter().enumerate();
    for (index, group) in fused.filter(|(_, group)| group.places.len() > 1) {
        let (text, numbers) = group.text(program, facts);
        alike.entry(text).or_default().push((index, numbers));
    }
    for same in alike.values() {
        let first = &same[0].1;
        let differs = |place: &usize| same.iter().any(|(_, own)| own[*place] != first[*place]);
        let apart: Vec<usize> = (0..first.len()).filter(differs).collect();
        if apart.is_empty() {
            continue;
        }
        for (index, _) in same {
            if let Some(group) = groups[*index].reading(apart.clone(), program, facts) {
                groups[*index] = group;
            }
        }
    }
}

/// The groups of a program, of one op too.
fn groups(program: &Program<'_>, facts: &Facts) -> Vec<Group> {
    let mut closed = Vec::new();
    let mut open: Vec<Group> = Vec::new();
    for (place, step) in program.steps().iter().enumerate() {
        let reads = |group: &mut Group| {
            let mut values = step.inputs().iter();
            values.any(|value| facts.maker(*value).is_some_and(|maker| group.has(maker)))
        };
        let read: Vec<Group> = open.extract_if(.., reads).collect();
        let Some(mut group) = Group::of(place, program, facts) else {
            closed.extend(read);
            continue;
        };
        // The latest first: what was made last is still at hand.
        for other in read.into_iter().rev() {
            match group.with(&other, program, facts) {
                Some(both) => group = both,
                None => closed.push(other),
            }
        }
        open.push(group);
    }
    closed.extend(open);
    closed
}

/// The shape of each value.
fn shapes(program: &Program<'_>, inputs: &[Input]) -> Vec<Vec<u64>> {
    let mut shapes: Vec<Vec<u64>> = inputs.iter().map(|input| input.spec.1.clone()).collect();
    for step in program.steps() {
        match step {
            Step::Request(request) => {
                shapes.extend(request.outputs.iter().map(|output| output.1.clone()));
            }
            Step::View(value, view) => {
                let of = &shapes[*value as usize];
                shapes.push(match view {
                    View::Reshape(shape) | View::Broadcast(shape, _) | View::Slice(_, shape, _) => {
                        shape.clone()
                    }
                    View::Transpose(axes) => axes
                        .iter()
                        .filter_map(|&axis| of.get(axis))
                        .copied()
                        .collect(),
                    View::Squeeze(axes) => {
                        let kept = (0..of.len()).filter(|axis| !axes.contains(axis));
                        kept.map(|axis| of[axis]).collect()
                    }
                    View::Reverse(_) | View::Bitcast(_) => of.clone(),
                });
            }
        }
    }
    shapes
}

/// What is known of the values of a program.
struct Facts {
    inputs: usize,
    /// The first value that each step makes.
    first: Vec<Value>,
    /// The step that makes each value but the inputs.
    makers: Vec<usize>,
    dtypes: Vec<DType>,
    /// What each element of a value is, where all are the same.
    numbers: Vec<Option<Number>>,
    /// How often each value is read, by steps and as a result.
    uses: Vec<usize>,
}

impl Facts {
    fn of(program: &Program<'_>, inputs: &[Input]) -> Facts {
        let number = |input: &Input| expression::number(input.spec.0, input.element.as_ref()?);
        let mut facts = Facts {
            inputs: program.inputs(),
            first: Vec::new(),
            makers: Vec::new(),
            dtypes: inputs.iter().map(|input| input.spec.0).collect(),
            numbers: inputs.iter().map(number).collect(),
            uses: Vec::new(),
        };
        for (place, step) in program.steps().iter().enumerate() {
            facts.first.push(facts.dtypes.len() as Value);
            facts.makers.extend(vec![place; step.made()]);
            let viewed = |value: &Value| {
                (
                    facts.dtypes[*value as usize],
                    facts.numbers[*value as usize],
                )
            };
            match step {
                Step::Request(request) => {
                    facts
                        .dtypes
                        .extend(request.outputs.iter().map(|output| output.0));
                    facts.numbers.extend(vec![None; request.outputs.len()]);
                }
                Step::View(_, View::Bitcast(dtype)) => {
                    facts.dtypes.push(*dtype);
                    facts.numbers.push(None);
                }
                Step::View(value, _) => {
                    let (dtype, number) = viewed(value);
                    facts.dtypes.push(dtype);
                    facts.numbers.push(number);
                }
            }
        }
        facts.uses = vec![0; facts.dtypes.len()];
        let read = program.steps().iter().flat_map(Step::inputs);
        for &value in read.chain(program.results()) {
            facts.uses[value as usize] += 1;
        }
        facts
    }

    /// The place of the step that makes a value.
    fn maker(&self, value: Value) -> Option<usize> {
        let made = (value as usize).checked_sub(self.inputs)?;
        self.makers.get(made).copied()
    }
}
