//! Building blocks of plans of `conv`: what its shaders have in common, and what follows them. It chooses nothing.

use crate::{
    finish::stored,
    problem::{Cut, Problem},
};
use nx_vulkan_abi::{BufArg, Define, DeviceInfo, Features, Plan, Refusal, glsl::operand};
use nx_vulkan_pack_kit::{
    epilogue::Run,
    grid,
    span::ALIGN,
    steps::{Step, bytes_of, number, read, scratch},
};

/// Vendor whose units are known to convert f16 exactly, denormal numbers included.
const NVIDIA: u32 = 0x10de;

/// Where the results go, or the sums of so many splits.
pub(crate) fn results(plan: &mut Plan, problem: &Problem, splits: u64) -> BufArg {
    match problem.is_partial(splits) {
        false => BufArg::output(0),
        true => scratch(plan, splits * problem.results * problem.register().size()),
    }
}

/// What every shader of the general units is told; `is_partial` where sums go to memory first.
pub(crate) fn common(
    problem: &Problem,
    threads: u64,
    channels_last: bool,
    is_partial: bool,
) -> Vec<Define> {
    let mut defines = operand("T", problem.dtype);
    defines.extend(stored(problem.finish.as_ref(), is_partial));
    for (name, value) in [
        ("THREADS", threads),
        ("DIMS", problem.dims()),
        ("DIMS_OR_ONE", problem.dims().max(1)),
        ("HOLES", (!problem.is_whole()).into()),
        ("CHANNELS_LAST", channels_last.into()),
    ] {
        defines.push(number(name, value));
    }
    defines
}

/// The steps of a shader of the general units, a workgroup of which has `each` jobs, and whose results or those of so many splits go
/// to `to`; and what follows them.
pub(crate) fn add(
    plan: &mut Plan,
    problem: &Problem,
    (file, defines, cut): (&'static str, Vec<Define>, Cut),
    (to, splits): (BufArg, u64),
    each: u64,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    let groups = cut.jobs.div_ceil(each);
    let multiply_adds = problem.results.saturating_mul(problem.depth) / groups.max(1);
    for turn in grid::turns(groups, multiply_adds, problem.register().size(), device) {
        let jobs = cut.jobs.min(turn.end * each);
        let words = problem.words(turn.start, Cut { jobs, ..cut });
        let at = plan.params.len().next_multiple_of(ALIGN as usize);
        plan.params.resize(at, 0);
        plan.params.extend(bytes_of(&words));
        let params = BufArg::params().range(at as u64, 4 * words.len() as u64);
        let mut step = Step {
            file,
            defines: defines.clone(),
            args: vec![params, BufArg::input(0), BufArg::input(1), to],
            groups: grid::spread(turn.end - turn.start, device)?,
            ..Step::default()
        };
        finish(problem, splits, Run::ONE, &mut step);
        convert_f16(&mut step, device);
        step.add_to(plan);
    }
    sum_splits(plan, problem, (to, splits), None, device)
}

/// Has a step finish its sums, a run at a time, unless they go to memory first.
pub(crate) fn finish(problem: &Problem, splits: u64, run: Run, step: &mut Step) {
    let finish = problem.finish.as_ref();
    if let Some(finish) = finish.filter(|_| !problem.is_partial(splits)) {
        finish.add_to(run, step);
    }
}

/// Has units convert what a step loads of f16, where they are known to be exact: the ABI's own conversion, for any driver, takes
/// two dozen instructions.
pub(crate) fn convert_f16(step: &mut Step, device: &DeviceInfo<'_>) {
    if device.vendor != NVIDIA || !device.features.has(Features::FP16) {
        return;
    }
    let loads = step.defines.iter_mut();
    let mut loads = Vec::from_iter(loads.filter(|define| define.value == "nxv_load_f16(x)"));
    let is_f16 = !loads.is_empty();
    for load in &mut loads {
        load.value = "float(uint16BitsToHalf(x))".into();
    }
    if is_f16 {
        step.defines.push(number("UNITS_OF_F16", 1u32));
    }
}

/// Adds up what splits have come to, where they went to memory; `unfit` are the counts of steps to be run where that did not do.
pub(crate) fn sum_splits(
    plan: &mut Plan,
    problem: &Problem,
    (partials, splits): (BufArg, u64),
    unfit: Option<BufArg>,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    if !problem.is_partial(splits) {
        return Ok(());
    }
    let threads = u64::from(grid::threads(device, 256));
    let mut defines = operand("T", problem.dtype);
    defines.push(number("THREADS", threads));
    defines.extend(stored(problem.finish.as_ref(), false));
    let mut args = vec![read(partials), BufArg::output(0)];
    if let Some(counts) = unfit {
        defines.push(number("COUNTS", args.len() as u64));
        args.push(counts);
    }
    let mut step = Step {
        file: "splits.comp",
        defines,
        args,
        push: bytes_of(&[problem.results as u32, splits as u32]),
        groups: grid::spread(problem.results.div_ceil(threads), device)?,
        ..Step::default()
    };
    if let Some(finish) = &problem.finish {
        finish.add_to(Run::ONE, &mut step);
    }
    convert_f16(&mut step, device);
    step.add_to(plan);
    Ok(())
}
