//! Products straight from memory: anything small or odd, and everything on a CPU.

use crate::{
    problem::Problem,
    steps::{self, Cut, number},
};
use nx_vulkan_abi::{DType, DeviceInfo, DeviceKind, Features, Plan, Refusal};

/// What one workgroup does: rows and columns of an invocation, invocations, and whether these have the same rows.
struct Shape {
    own_m: u32,
    own_n: u32,
    threads: u32,
    shares_rows: bool,
}

/// Plans any product.
pub(crate) fn plan(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let width = steps::width(problem.dtype);
    let Shape {
        own_m,
        own_n,
        threads,
        shares_rows,
    } = shape(problem, device);
    let (columns, jobs_per_group) = if shares_rows {
        (own_n * threads, 1)
    } else {
        (own_n, threads)
    };
    let cut = Cut {
        blocks: [problem.m.div_ceil(own_m), problem.n.div_ceil(columns)],
        splits: 1,
        chunk: problem.k,
        jobs_per_group,
    };
    let jobs = u64::from(cut.blocks[0]) * u64::from(cut.blocks[1]) * u64::from(problem.batches);
    let enough = u64::from(device.compute_units.max(8)) * u64::from(2 * jobs_per_group);
    let cut = match u64::from(problem.k / 128) {
        parts if parts > 1 && jobs < enough => {
            cut.split(problem.k, parts.min(enough / jobs), width)
        }
        _ => cut,
    };
    let a_packs = problem.a.is_along_k() || (own_m.is_multiple_of(width) && !shares_rows);
    let b_packs = !problem.b.is_along_k() && own_n.is_multiple_of(width);
    let wide = [
        a_packs && problem.a.is_wide(width),
        b_packs && problem.b.is_wide(width),
        own_n.is_multiple_of(width) && problem.n.is_multiple_of(width),
    ];
    let own = vec![
        number("THREADS", threads),
        number("OWN_M", own_m),
        number("OWN_N", own_n),
        number("SHARED_ROWS", shares_rows),
    ];
    steps::product(problem, device, "direct.comp", cut, wide, own)
}

fn shape(problem: &Problem, device: &DeviceInfo<'_>) -> Shape {
    let lanes = device.subgroup_size.max(1);
    // 64-bit integers travel between invocations only with an extension that shaders here do without.
    let travels = !matches!(problem.dtype, DType::U64 | DType::S64)
        && device.features.has(Features::SUBGROUP_ARITHMETIC);
    if device.kind == DeviceKind::CPU && travels && problem.n > 4 {
        let own_m = if problem.m > lanes { 2 * lanes } else { lanes };
        return Shape {
            own_m,
            own_n: 4,
            threads: lanes,
            shares_rows: true,
        };
    }
    Shape {
        own_m: problem.m.next_power_of_two().min(4),
        own_n: problem.n.next_power_of_two().min(4),
        threads: if device.kind == DeviceKind::CPU {
            lanes
        } else {
            steps::threads(device).min(128)
        },
        shares_rows: false,
    }
}
