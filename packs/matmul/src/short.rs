//! Small products, where exactness costs nothing: each sum is kept in f64.

use crate::{
    problem::Problem,
    steps::{self, Cut, number},
};
use nx_vulkan_abi::{DeviceInfo, Features, Plan, Refusal};

/// Multiplications that any device does in f64 within the time of a dispatch.
const MOST_WORK: u64 = 1 << 16;
/// Contracted elements, which one invocation adds one after the other.
const MOST_CONTRACTED: u32 = 64;

/// Plans a small product of 16- or 32-bit floats.
pub(crate) fn plan(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if !problem.dtype.is_float() || problem.dtype.size() > 4 {
        return Err(Refusal::decline(format!(
            "{} is not a float narrower than f64",
            problem.dtype
        )));
    }
    if !device.features.has(Features::FP64) {
        return Err(Refusal::decline("the device has no FP64"));
    }
    let work = problem.elements().saturating_mul(u64::from(problem.k));
    if problem.k > MOST_CONTRACTED || work > MOST_WORK {
        return Err(Refusal::decline(format!(
            "{work} multiplications, {} for each element, are more than it is meant for",
            problem.k
        )));
    }
    let threads = steps::threads(device).min(64);
    let cut = Cut {
        blocks: [problem.m, problem.n],
        splits: 1,
        chunk: problem.k,
        jobs_per_group: threads,
    };
    let own = vec![number("THREADS", threads)];
    steps::product(problem, device, ("short.comp", 0), cut, [false; 3], own)
}
