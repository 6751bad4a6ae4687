//! Eigenvalues and eigenvectors of symmetric matrices.

use crate::{
    Shape,
    emit::{COPIES, Emit},
    jacobi::{self, SWEEPS, TILE},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::{number, read};

/// Rows of a matrix that one workgroup has in shared memory.
const WHOLE: u32 = 64;

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::in_sums(op, request)?;
    let size = shape.rows.next_multiple_of(8);
    let bytes =
        emit.size() * u64::from(size * (size + 1) + TILE + 3 * size / 2) + u64::from(4 * size + 64);
    if size <= WHOLE && bytes <= u64::from(request.device.shared_bytes) {
        small(&mut emit, shape, size)?;
    } else {
        large(&mut emit, shape)?;
    }
    emit.finish()
}

fn small(emit: &mut Emit<'_>, shape: Shape, size: u32) -> Result<(), Refusal> {
    let v = emit.scratch(shape.elements())?;
    let args = vec![BufArg::input(0), v, emit.result(0)?, emit.result(1)?];
    let defines = vec![
        number("SIZE", size),
        number("TILE", emit.threads(TILE)),
        number("SWEEPS", SWEEPS),
        jacobi::key(emit),
    ];
    let push = [shape.rows, shape.batch as u32, jacobi::negligible(emit)];
    emit.step("eigh.comp", defines, args, &push, shape.batch)
}

fn large(emit: &mut Emit<'_>, shape: Shape) -> Result<(), Refusal> {
    let Shape { batch, rows: n, .. } = shape;
    let one = emit.scratch(shape.elements())?;
    let other = emit.scratch(shape.elements())?;
    let state = jacobi::begin(emit, shape, BufArg::input(0), Some(one))?;
    let half = n.div_ceil(2);
    let tiles = (half * half + half * n).div_ceil(COPIES);
    let groups = batch * u64::from(tiles);
    let least = jacobi::negligible(emit);
    jacobi::sweeps(emit, batch, state.states, 2 * half, |emit, sweep| {
        let place = emit.place();
        let first = sweep * 2 * half;
        for (round, from, to) in [(first, one, other), (first + 1, other, one)] {
            let push = [n, groups as u32, round, tiles, least];
            let args = vec![read(from), to, state.v, state.norms, state.states];
            emit.step("rotate.comp", Vec::new(), args, &push, groups)?;
        }
        emit.repeat(place, half, 2);
        Ok(())
    })?;
    let tiles = n.div_ceil(COPIES);
    let groups = batch * u64::from(tiles);
    let push = [n, groups as u32, tiles];
    let args = vec![
        read(one),
        read(state.v),
        state.norms,
        emit.result(0)?,
        emit.result(1)?,
    ];
    let key = vec![jacobi::key(emit)];
    emit.step("values.comp", key, args, &push, groups)
}
