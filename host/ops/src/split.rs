//! Requests as programs of what they stand for: products with what follows them, and fused ops, one after the other.

use crate::{
    Program, Request, Result, Spec, Step, Value, epilogue,
    error::Error,
    expression::{self, element},
    find,
    infer::fill,
};
use nx_vulkan_abi::expression::Term;

/// Name of the op that stands for several elementwise ones.
pub(crate) const FUSED: &str = "fused";

/// The program that a request stands for; `None` where it is one op.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub fn split(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    match &*request.op {
        FUSED => one_by_one(request).map(Some),
        _ => epilogue::split(request),
    }
}

/// The only op in a fused one that may have no result, as a request of its own: `quotient(s32[3], s32[]) -> s32[3]`.
pub fn partial(request: &Request<'_, Spec>) -> Option<String> {
    let program = match &*request.op {
        FUSED => one_by_one(request).ok()?,
        _ => return None,
    };
    let mut specs = request.inputs.to_vec();
    let mut found = Vec::new();
    for step in program.steps() {
        let Step::Request(step) = step else { continue };
        let operands = step
            .inputs
            .iter()
            .map(|&value| specs[value as usize].clone());
        let own = step.over(operands.collect::<Vec<Spec>>());
        if find(&own.op)?.partial(&own.types().0).is_some() {
            found.push(own.to_string());
        }
        specs.extend(step.outputs.iter().cloned());
    }
    found.pop().filter(|_| found.is_empty())
}

fn one_by_one(request: &Request<'_, Spec>) -> Result<Program<'static>> {
    request.check()?;
    let expression = expression::of(&request.attrs).map_err(Error::bad_input)?;
    let shape = &request.outputs[0].1;
    let mut steps: Vec<Step<'static>> = Vec::new();
    let mut push = |request: Request<'static, Value>, inputs: usize| {
        steps.push(request.into());
        (inputs + steps.len() - 1) as Value
    };
    let mut made: Vec<Value> = Vec::new();
    for call in &expression.calls {
        let mut values = Vec::new();
        for term in &call.terms {
            values.push(match *term {
                Term::Operand(index) => index as Value,
                Term::Made(index) => made[index],
                Term::Number(number, dtype) => {
                    let mut bits = element(number, dtype);
                    bits.resize(8, 0);
                    let bits = bits.try_into().map(i64::from_le_bytes).unwrap_or(0);
                    push(fill(bits, dtype)?, request.inputs.len())
                }
            });
        }
        let spec = vec![(call.dtype, shape.clone())];
        let call = Request::new(call.op.clone(), values, spec, &[]);
        made.push(push(call, request.inputs.len()));
    }
    let results: Vec<Value> = expression.results.iter().map(|&call| made[call]).collect();
    Program::new(request.inputs.len(), steps, results)
}
