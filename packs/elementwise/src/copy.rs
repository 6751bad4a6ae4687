//! Plans of `as_type` with one type in and out: bytes move, whatever they mean.

use crate::dispatch::{self, Code, Params, Step, WORKGROUP};
use crate::map::lacks;
use crate::space::{Part, Space};
use nx_vulkan_abi::{
    DType, Plan, Refusal, Request,
    glsl::{self, define},
};

/// Largest element that a thread moves at once, in bytes.
pub(crate) const MAX_SIZE: u64 = 16;
/// Shorter axes are not worth a tile.
const MIN_TILED: u64 = 8;

/// Plans the copy.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (from, to) = (request.inputs[0].dtype, request.outputs[0].dtype);
    if from != to {
        return Err(Refusal::decline(format!("a copy keeps the type, got: {from} to {to}")));
    }
    if request.outputs[0].elements() == 0 {
        return Ok(Plan::default());
    }
    let space = widen(Space::of(request)?);
    let code = raw(space.output.size, request)?;
    match swapped_axis(&space) {
        Some(axis) => transpose(&space, axis, code, request),
        None => dispatch::plan(&space, &code, request.device),
    }
}

/// The GLSL type that holds any element of `size` bytes, and the dtype that needs the same device features.
pub(crate) fn raw_type(size: u64) -> (&'static str, DType) {
    match size {
        1 => ("uint8_t", DType::U8),
        2 => ("uint16_t", DType::U16),
        4 => ("uint", DType::U32),
        8 => ("uvec2", DType::U32),
        _ => ("uvec4", DType::U32),
    }
}

fn raw(size: u64, request: &Request<'_>) -> Result<Code, Refusal> {
    let (storage, like) = raw_type(size);
    if let Some(missing) = lacks(like, request) {
        return Err(Refusal::decline(format!(
            "moving elements of {size} bytes needs the device feature {missing}"
        )));
    }
    let mut defines = glsl::needs(like);
    for (name, value) in [
        ("A_STORAGE", storage),
        ("A_COMPUTE", storage),
        ("A_LOAD(x)", "x"),
        ("A_CAST(x)", "x"),
        ("R_STORAGE", storage),
        ("R_STORE(x)", "x"),
        ("R_CAST(x)", "x"),
        ("EXPRESSION", "a"),
    ] {
        defines.push(define(name, value));
    }
    Ok(Code { storage: vec![storage; 2], width: if size < 8 { 4 } else { 1 }, defines })
}

/// The same bytes as the largest elements that the layout allows.
fn widen(mut space: Space) -> Space {
    let last = space.rank() - 1;
    while space.output.size < MAX_SIZE && space.shape[last].is_multiple_of(2) {
        let (Some(input), Some(output)) = (space.inputs[0].widened(), space.output.widened()) else { break };
        space.shape[last] /= 2;
        (space.inputs[0], space.output) = (input, output);
    }
    space
}

/// The axis whose neighbours are neighbours in the operand's memory, where that is not the innermost one.
fn swapped_axis(space: &Space) -> Option<usize> {
    let (last, outer) = space.inputs[0].strides.split_last()?;
    let axis = outer.iter().position(|stride| stride.abs() == 1)?;
    (last.abs() > 1 && space.columns() >= MIN_TILED && space.shape[axis] >= MIN_TILED).then_some(axis)
}

fn transpose(space: &Space, axis: usize, mut code: Code, request: &Request<'_>) -> Result<Plan, Refusal> {
    let tile: u64 = if space.output.size < 4 { 64 } else { 32 };
    code.defines.push(define("WORKGROUP", WORKGROUP.to_string()));
    code.defines.push(define("TILE", tile.to_string()));
    code.defines.push(define("RANK", space.rank().to_string()));
    let last = space.rank() - 1;
    let mut order = vec![last, axis];
    order.extend((0..last).rev().filter(|other| *other != axis));
    let step = |part: &Part| {
        let mut params = Params::new(part, space);
        for &axis in &order {
            params.index(part.shape[axis] as i64);
            params.index(space.inputs[0].strides[axis]);
            params.index(space.output.strides[axis]);
        }
        let tiles = |axis: usize| part.shape[axis].div_ceil(tile);
        let batch: u64 = order[2..].iter().map(|axis| part.shape[*axis]).product();
        Step {
            file: "transpose.comp",
            defines: [part.index_defines(), code.defines.clone()].concat(),
            args: part.args.clone(),
            params,
            groups: tiles(last) * tiles(axis) * batch,
        }
    };
    let parts = space.parts(request.device)?;
    Ok(dispatch::assemble(request.device, parts.iter().map(step)))
}
