//! Plans of several elementwise ops as one: the code of an expression, run once for an element of each operand.

use crate::{
    dispatch::{self, Params, Share, Step, WORKGROUP},
    map,
    space::{Part, Space, Walk},
};
use nx_vulkan_abi::{
    Define, Plan, Refusal, Request,
    expression::Call,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    expression::{self, Code, each},
    steps::{distinct, number},
};

/// Calls that the code of a thread has at most where it has fewer for one element: more are no faster, and take a driver long.
const MOST_CALLS: u64 = 128;
/// Calls that one of a math header counts as.
const FUNCTION: u64 = 8;

/// Plans `fused`.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let expression = expression::of_all(request)?;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    let shape = outputs.first().map(|output| output.shape.as_slice());
    let mut others = outputs.iter().map(|output| Some(output.shape.as_slice()));
    if others.any(|other| other != shape) {
        return Err(Refusal::BadRequest(
            "its results are not of one shape".to_owned(),
        ));
    }
    let operands: Vec<_> = inputs.iter().map(|input| input.dtype).collect();
    let is_loose = expression::is_loose(request);
    let code = Code::within(&expression, &operands, request.device, is_loose)?;
    if outputs[0].elements() == 0 {
        return Ok(Plan::default());
    }
    let space = Space::of(request)?;
    let transposed = map::transposed_inputs(&space, request);
    if !transposed.is_empty() {
        return Err(Refusal::InputsAs(transposed));
    }
    // Of those, conversions are what loading and storing do anyway.
    let counts = |call: &&Call| !is_loose || call.op != "as_type";
    let calls = expression.calls.iter().filter(counts);
    let calls = calls.count().max(1) as u64 + FUNCTION * code.functions as u64;
    let elements = (MOST_CALLS / calls).max(1);
    let parts = space.parts(request.device)?;
    let steps = parts
        .iter()
        .map(|part| step(&space, part, &code, elements, request));
    dispatch::assemble(request.device, steps)
}

/// The dispatch of a part, of whose elements a thread takes at most so many.
fn step(space: &Space, part: &Part, code: &Code, elements: u64, request: &Request<'_>) -> Step {
    let tensors = || request.inputs.iter().chain(request.outputs);
    let has_vectors = tensors().all(|tensor| {
        let types = glsl::types(tensor.dtype);
        types.is_some_and(|(storage, _)| glsl::vector(storage, 2).is_some())
    });
    let most = if has_vectors {
        space.width().min(elements)
    } else {
        1
    };
    let width = dispatch::width(space, most);
    let loads = space.inputs.iter().filter(|input| !is_one(input));
    let loads = loads.map(|input| input.size * width).sum();
    let vectors = Share::on(request.device).vectors(part, loads, elements / width);
    let mut params = Params::new(part, space);
    params.axes(part, space);
    let mut defines = part.index_defines();
    defines.extend(code.defines());
    for ((k, tensor), (walk, at)) in request
        .inputs
        .iter()
        .enumerate()
        .zip(space.inputs.iter().zip(&part.at))
    {
        let name = format!("I{k}");
        let lanes = if is_one(walk) { 1 } else { width };
        let lane = if is_one(walk) { "x" } else { "LANE(x, n)" };
        defines.extend(glsl::operand(&name, tensor.dtype));
        defines.push(vector(&name, tensor.dtype, lanes));
        defines.push(define(format!("{name}_LANE(x, n)"), lane));
        defines.push(define(
            format!("{name}_READ"),
            dispatch::read(walk, *at, width),
        ));
    }
    for ((k, tensor), made) in request.outputs.iter().enumerate().zip(&code.results) {
        let name = format!("R{k}");
        defines.extend(glsl::operand(&name, tensor.dtype));
        defines.push(vector(&name, tensor.dtype, width));
        defines.push(define(format!("{name}_MADE"), made.as_str()));
    }
    defines.extend([
        each("EACH_OPERAND(f)", 0..request.inputs.len()),
        each("EACH_RESULT(f)", 0..request.outputs.len()),
        define("CODE", code.body.as_str()),
        number("INPUTS", request.inputs.len() as u64),
        number("RESULTS", request.outputs.len() as u64),
        number("INDEX_BITS", if part.wide { 64_u64 } else { 32 }),
        number("RANK", space.rank() as u64),
        number("WIDTH", width),
        number("VECTORS", vectors),
        number("WORKGROUP", WORKGROUP),
    ]);
    Step {
        file: "fused.comp",
        defines: distinct(defines),
        args: part.args.clone(),
        params,
        groups: part.count.div_ceil(WORKGROUP * width * vectors),
    }
}

/// Whether an operand is one element that all results share.
fn is_one(input: &Walk) -> bool {
    input.strides.iter().all(|stride| *stride == 0)
}

fn vector(name: &str, dtype: nx_vulkan_abi::DType, lanes: u64) -> Define {
    let storage = glsl::types(dtype).map_or("float", |types| types.0);
    let vector = glsl::vector(storage, lanes).unwrap_or(storage);
    define(format!("{name}_VECTOR"), vector)
}
