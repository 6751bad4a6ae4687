//! Weights: the right operand of a product that is an input of the program, while the left one is computed, is likely the same in
//! many runs.

use super::{Facts, Input, rebuilt, renumbered};
use crate::{Attr, Program, Request, Result, Step, Value, attrs::ints};
use nx_vulkan_abi::lasting::ATTRIBUTE;

/// The program with products told which of their operands last.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn lasting(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let steps = program.steps().iter().enumerate().map(|(place, step)| {
        let told = match step {
            Step::Request(request) => told(&program, request, &facts),
            Step::View(..) => None,
        };
        Some((
            told.unwrap_or_else(|| step.clone()),
            program.stands_for(place),
        ))
    });
    let steps = steps.collect();
    rebuilt(&program, steps)
}

fn told(
    program: &Program<'static>,
    request: &Request<'static, Value>,
    facts: &Facts,
) -> Option<Step<'static>> {
    let &[left, right, ..] = &*request.inputs else {
        return None;
    };
    let is_product = request.op == "dot" && ints(&request.attrs, "batch_b").is_empty();
    let is_told = request.attrs.iter().any(|attr| attr.name == ATTRIBUTE);
    let lasts = is_product
        && !is_told
        && is_input(program, right, facts)
        && !is_input(program, left, facts);
    lasts.then(|| {
        let mut request = request.clone();
        let attrs = request.attrs.to_mut();
        attrs.push(Attr::ints(ATTRIBUTE, [1]));
        attrs.sort_by(|a, b| a.name.cmp(&b.name));
        request.into()
    })
}

/// The inputs that products were told to last.
pub fn weights(program: &Program<'_>) -> Vec<Value> {
    let mut of: Vec<Value> = (0..program.inputs() as Value).collect();
    let mut told = Vec::new();
    for step in program.steps() {
        match step {
            Step::View(value, _) => of.push(of[*value as usize]),
            Step::Request(request) => {
                if request.attrs.iter().any(|attr| attr.name == ATTRIBUTE) {
                    told.push(of[request.inputs[1] as usize]);
                }
                of.extend(vec![Value::MAX; request.outputs.len()]);
            }
        }
    }
    told.sort_unstable();
    told.dedup();
    told.retain(|value| *value != Value::MAX);
    told
}

/// The program in which no product is told what lasts.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn untold(program: &Program<'static>) -> Result<Program<'static>> {
    let mut next = program.inputs() as Value;
    let steps = program.steps().iter().enumerate().map(|(place, step)| {
        let mut step = step.clone();
        if let Step::Request(request) = &mut step {
            request.attrs.to_mut().retain(|attr| attr.name != ATTRIBUTE);
        }
        let made = (next..).take(step.made()).collect();
        next += step.made() as Value;
        Some((step, made, program.stands_for(place)))
    });
    let steps = steps.collect();
    renumbered(program, steps)
}

/// Whether a value is a view of an input.
fn is_input(program: &Program<'static>, mut value: Value, facts: &Facts) -> bool {
    while let Some(place) = facts.maker(value) {
        match &program.steps()[place] {
            Step::View(of, _) => value = *of,
            Step::Request(_) => return false,
        }
    }
    true
}
