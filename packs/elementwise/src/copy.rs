//! Plans of `as_type` with one type in and out: bytes move, whatever they mean.

use crate::dispatch::{self, Code, Params, Step, WORKGROUP};
use crate::space::{Part, Space, Walk};
use nx_vulkan_abi::{
    Plan, Refusal, Request,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::operand::{raw_type, supports};

/// Largest element that a thread moves at once, in bytes.
pub(crate) const MAX_SIZE: u64 = 16;

/// Plans the copy of a request whose operand and result have one type.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    if request.outputs[0].elements() == 0 {
        return Ok(Plan::default());
    }
    let space = widen(Space::of(request)?);
    let code = raw(space.output.size, request)?;
    match space.inputs[0].swapped_axis(&space.shape) {
        Some(axis) => transpose(&space, axis, code, request),
        None => dispatch::plan(&space, &code, request.device),
    }
}

fn raw(size: u64, request: &Request<'_>) -> Result<Code, Refusal> {
    let (storage, like) = raw_type(size);
    supports("moving elements", like, request.device)?;
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
    Ok(Code {
        storage: vec![storage; 2],
        width: if size < 8 { 4 } else { 1 },
        vectors: 8,
        defines,
    })
}

/// The same bytes as the largest elements that the layout allows.
fn widen(mut space: Space) -> Space {
    let last = space.rank() - 1;
    while space.output.size < MAX_SIZE && space.shape[last].is_multiple_of(2) {
        let (Some(input), Some(output)) = (space.inputs[0].widened(), space.output.widened())
        else {
            break;
        };
        space.shape[last] /= 2;
        (space.inputs[0], space.output) = (input, output);
    }
    space
}

/// Plans the move of an operand whose neighbours along `axis` become the result's along its last one.
pub(crate) fn transpose(
    space: &Space,
    axis: usize,
    code: Code,
    request: &Request<'_>,
) -> Result<Plan, Refusal> {
    let last = space.rank() - 1;
    let mut tile: u64 = if space.output.size <= 4 { 64 } else { 32 };
    // A line of it has one element more, and a workgroup takes as many elements at once as the least one has.
    while tile * (tile + 1) * space.output.size > u64::from(request.device.shared_bytes)
        && tile > 16
    {
        tile /= 2;
    }
    let mut order = vec![last, axis];
    order.extend((0..last).rev().filter(|other| *other != axis));
    let step = |part: &Part| {
        let mut params = Params::new(part, space);
        for &axis in &order {
            params.index(part.shape[axis] as i64);
            params.index(space.inputs[0].strides[axis]);
            params.index(space.output.strides[axis]);
        }
        let width = paired(space, part, axis);
        let mut defines = [part.index_defines(), code.defines.clone()].concat();
        for (name, number) in [
            ("WORKGROUP", WORKGROUP),
            ("TILE", tile),
            ("RANK", space.rank() as u64),
            ("WIDTH", width),
        ] {
            defines.push(define(name, number.to_string()));
        }
        for (name, storage) in ["A_VECTOR", "R_VECTOR"].into_iter().zip(&code.storage) {
            defines.push(define(
                name,
                glsl::vector(storage, width).unwrap_or(storage),
            ));
        }
        let tiles = |axis: usize| part.shape[axis].div_ceil(tile);
        let batch: u64 = order[2..].iter().map(|axis| part.shape[*axis]).product();
        Step {
            file: "transpose.comp",
            defines,
            args: part.args.clone(),
            params,
            groups: tiles(last) * tiles(axis) * batch,
        }
    };
    let parts = space.parts(request.device)?;
    dispatch::assemble(request.device, parts.iter().map(step))
}

/// Elements that a thread moves at once in a transposition: 4 bytes, where both layouts are aligned to that.
fn paired(space: &Space, part: &Part, axis: usize) -> u64 {
    let width = (4 / space.output.size).max(1);
    let last = space.rank() - 1;
    let along = |walk: &Walk, own: usize| {
        let others = (0..=last).filter(|other| *other != own);
        walk.strides[own] == 1
            && others
                .map(|other| walk.strides[other].unsigned_abs())
                .all(|s| s.is_multiple_of(width))
    };
    let aligned = [space.shape[last], space.shape[axis]]
        .iter()
        .chain(&part.at)
        .all(|n| n.is_multiple_of(width));
    let of_one_size = space.inputs[0].size == space.output.size;
    if of_one_size && aligned && along(&space.inputs[0], axis) && along(&space.output, last) {
        width
    } else {
        1
    }
}
