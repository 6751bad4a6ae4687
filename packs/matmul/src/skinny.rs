//! Products with few rows or few columns: matrix-vector, vector-matrix, inner products. They are bound by memory.

use crate::{
    problem::Problem,
    steps::{self, Cut, number},
};
use nx_vulkan_abi::{DeviceInfo, DeviceKind, Plan, Refusal};

/// Most columns that count as few.
pub(crate) const FEW: u32 = 8;

/// Plans products with at most [`FEW`] rows or columns and a contracted axis worth sharing.
pub(crate) fn plan(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let problem = match problem.n > problem.m {
        true => problem.clone().exchanged(),
        false => problem.clone(),
    };
    let Problem {
        m, n, k, batches, ..
    } = problem;
    if n > FEW {
        return Err(Refusal::decline(format!(
            "{n} rows or columns are more than {FEW}"
        )));
    }
    if k < 32 || u64::from(m) * u64::from(k) < 4096 {
        return Err(Refusal::decline(format!(
            "{m} x {k} is too little work to share"
        )));
    }
    let width = steps::width(problem.dtype);
    let along_k = problem.a.is_along_k();
    let wide = problem.a.is_wide(width);
    let step = if wide { width } else { 1 };
    let (depth, row_step) = if along_k { (step, 1) } else { (1, step) };
    let threads = if device.kind == DeviceKind::CPU {
        32
    } else {
        steps::threads(device)
    };

    // What all invocations hold at the end meets in shared memory; more than 32 KiB would keep workgroups waiting.
    let shared = device.shared_bytes.min(32 << 10);
    let most_items = shared / (threads * n * steps::register(problem.dtype));
    let (along, own_m) = if along_k {
        let along = (k / depth).next_power_of_two().max(8).min(threads);
        let own_m = m
            .div_ceil(threads / along)
            .next_power_of_two()
            .min(4)
            .min(floor_power(most_items));
        (along, own_m)
    } else {
        let across = m
            .div_ceil(row_step)
            .next_power_of_two()
            .clamp(1, 32.min(threads));
        (threads / across, 1)
    };
    if own_m * row_step > most_items {
        return Err(Refusal::decline(
            "the sums of one workgroup exceed its shared memory",
        ));
    }
    let cut = Cut {
        blocks: [m.div_ceil(threads / along * own_m * row_step), 1],
        splits: 1,
        chunk: k,
        jobs_per_group: 1,
    };
    let groups = u64::from(cut.blocks[0]) * u64::from(batches);
    let target = u64::from(device.compute_units.max(4)) * 4;
    let work = u64::from(k) * u64::from(threads / along * own_m * row_step);
    let cut = cut.split(k, (target / groups).min(work / 16384), along * depth);
    let unroll: u32 = match own_m * n {
        1 => 4,
        2..=4 => 2,
        _ => 1,
    };
    let b_wide = along_k && wide && problem.b.is_along_k() && problem.b.is_wide(width);
    let own = vec![
        number("THREADS", threads),
        number("ALONG", along),
        number("OWN_M", own_m),
        number("COLUMNS", n),
        number("UNROLL", unroll),
    ];
    steps::product(
        &problem,
        device,
        "skinny.comp",
        cut,
        [wide, b_wide, false],
        own,
    )
}

/// The largest power of two that is not above `x`, at least 1.
fn floor_power(x: u32) -> u32 {
    1 << x.max(1).ilog2()
}
