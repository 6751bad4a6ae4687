//! What Jacobi's rotations of symmetric matrices and those of columns have in common.

use crate::{
    Shape,
    emit::{Emit, change},
};
use nx_vulkan_abi::{
    BufArg, Define, Refusal,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::steps::{number, read};

/// Rows up to which signs of vectors follow from the rotations, as everybody has the same ones; of larger matrices the first
/// component is not negative.
pub(crate) const UNSIGNED: u32 = 32;
/// Sweeps of a small matrix at most; ten are many.
pub(crate) const SWEEPS: u32 = 40;
/// Sweeps of a large matrix at most, as the number of a plan's steps allows, and the least that are enough.
pub(crate) const MOST: u32 = 19;
const LEAST: u32 = 9;
const LEAST_HELPED: u32 = 5;
/// Dispatches that are left to the rounds of a plan.
const ROUNDS: u32 = 15_500;
/// Invocations of a workgroup that has a whole matrix.
pub(crate) const TILE: u32 = 128;

/// What the rotations of large matrices go by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// The rotations so far.
    pub(crate) v: BufArg,
    /// Squares of norms.
    pub(crate) norms: BufArg,
    /// What matrices were multiplied with, if anything.
    pub(crate) powers: Option<BufArg>,
    /// Whether there was something to do in each sweep.
    pub(crate) states: BufArg,
}

/// How much less than the precision of results counts, where sums have more.
const MARGIN: f64 = 1.0 / 1024.0;

/// What counts as 0 beside 1: less than the precision of results, with a margin where sums have it.
pub(crate) fn negligible(emit: &Emit<'_>) -> f32 {
    let result = emit.request.outputs[0].dtype.register().epsilon();
    let margin = match emit.wide().epsilon() < result {
        true => MARGIN,
        false => 1.0,
    };
    (result / 2.0 * margin) as f32
}

/// What results are sorted by: they in their precision.
pub(crate) fn key(emit: &Emit<'_>) -> Define {
    let key = emit.request.outputs[0].dtype.part().register();
    define("KEY", glsl::of(key).map_or("float", |glsl| glsl.storage))
}

/// The first step, which may scale the columns `a`.
pub(crate) fn begin(emit: &mut Emit<'_>, shape: Shape, a: BufArg) -> Result<State, Refusal> {
    let Shape {
        batch,
        rows,
        columns: n,
    } = shape;
    let v = emit.scratch(batch * u64::from(n) * u64::from(n))?;
    let list = batch * emit.size();
    let [norms, powers, states] = emit.pieces([list, list, batch * u64::from(MOST) * 4])?;
    let args = vec![a, v, norms, powers, states];
    let defines = vec![number("TILE", emit.threads(TILE)), number("MOST", MOST)];
    let push = [rows, batch as u32, n];
    emit.step("begin.comp", defines, args, &push, batch)?;
    Ok(State {
        v: change(v),
        norms: read(norms),
        powers: Some(read(powers)),
        states: change(states),
    })
}

/// Sweeps of so many rounds each that a plan has dispatches for: enough for columns that are random, or nearly orthogonal with
/// `helped`.
pub(crate) fn sweeps(rounds: u32, helped: bool) -> Result<u32, Refusal> {
    let (spent, least) = if helped {
        (2 * rounds, LEAST_HELPED)
    } else {
        (0, LEAST)
    };
    let sweeps = (ROUNDS.saturating_sub(spent) / rounds).min(MOST);
    if sweeps < least {
        return Err(Refusal::decline(format!(
            "{rounds} rounds in a sweep are more than a plan has dispatches for"
        )));
    }
    Ok(sweeps)
}
