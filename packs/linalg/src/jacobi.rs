//! What Jacobi's rotations of symmetric matrices and those of columns have in common.

use crate::{
    Shape,
    emit::{Emit, change},
};
use nx_vulkan_abi::{BufArg, DType, Define, Refusal, glsl::define};
use nx_vulkan_pack_kit::steps::{number, read};

/// Sweeps of a small matrix at most; ten are many.
pub(crate) const SWEEPS: u32 = 40;
/// Sweeps of a large matrix at most, as the number of a plan's steps allows, and the least that are enough.
const MOST: u32 = 19;
const LEAST: u32 = 9;
/// Dispatches that are left to the rounds of a plan.
const ROUNDS: u32 = 16_000;
/// Invocations of a workgroup that has a whole matrix.
pub(crate) const TILE: u32 = 128;

/// What the rotations of large matrices go by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// The rotations so far.
    pub(crate) v: BufArg,
    /// Squares of norms.
    pub(crate) norms: BufArg,
    /// Whether there is something to do in this sweep, and whether there was.
    pub(crate) states: BufArg,
}

/// What counts as 0 beside 1: less than the precision of results, with a margin where sums have it.
pub(crate) fn negligible(emit: &Emit<'_>) -> u32 {
    let exponent = match (emit.wide(), emit.request.outputs[0].dtype) {
        (DType::F64, DType::F64) => -53,
        (DType::F64, _) => -34,
        _ => -24,
    };
    2f32.powi(exponent).to_bits()
}

/// What results are sorted by: they in their precision.
pub(crate) fn key(emit: &Emit<'_>) -> Define {
    match emit.request.outputs[0].dtype {
        DType::F64 => define("KEY", "double"),
        _ => define("KEY", "float"),
    }
}

/// The first step, with a symmetric matrix copied to `to`.
pub(crate) fn begin(
    emit: &mut Emit<'_>,
    shape: Shape,
    a: BufArg,
    to: Option<BufArg>,
) -> Result<State, Refusal> {
    let Shape {
        batch,
        rows,
        columns: n,
    } = shape;
    let state = State {
        v: emit.scratch(batch * u64::from(n) * u64::from(n))?,
        norms: emit.scratch(batch)?,
        states: emit.bytes(batch * 8)?,
    };
    let mut args = vec![read(a), state.v, state.norms, state.states];
    let mut defines = vec![number("TILE", TILE)];
    if let Some(to) = to {
        args.push(to);
        defines.push(number("SYMMETRIC", 1u32));
    }
    let push = [rows, batch as u32, n];
    emit.step("begin.comp", defines, args, &push, batch)?;
    Ok(State {
        v: change(state.v),
        norms: read(state.norms),
        states: change(state.states),
    })
}

/// As many sweeps as it may need, each with its `rounds`, of so many dispatches.
pub(crate) fn sweeps(
    emit: &mut Emit<'_>,
    batch: u64,
    states: BufArg,
    dispatches: u32,
    mut rounds: impl FnMut(&mut Emit<'_>, u32) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let sweeps = (ROUNDS / (dispatches + 1)).min(MOST);
    if sweeps < LEAST {
        return Err(Refusal::decline(format!(
            "{dispatches} rounds in a sweep are more than a plan has dispatches for"
        )));
    }
    for sweep in 0..sweeps {
        let groups = batch.div_ceil(64);
        let push = [batch as u32, groups as u32];
        emit.step("sweep.comp", Vec::new(), vec![states], &push, groups)?;
        rounds(emit, sweep)?;
    }
    Ok(())
}
