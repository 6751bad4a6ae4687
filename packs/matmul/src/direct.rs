//! Products straight from memory: anything small or odd, and everything on a CPU.

use crate::{
    problem::Problem,
    steps::{self, Cut, number},
};
use nx_vulkan_abi::{DType, DeviceInfo, DeviceKind, Features, Plan, Refusal};

/// Results that keep any device busy with 32 of them for each invocation.
const MANY: u64 = 1 << 22;

/// What one workgroup does: rows and columns of an invocation, invocations, and whether these have the same rows.
struct Shape {
    own_m: u32,
    own_n: u32,
    threads: u32,
    shares_rows: bool,
    /// From one column of an invocation to the next.
    apart: u32,
}

/// Plans any product.
pub(crate) fn plan(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let width = steps::width(problem.dtype);
    let Shape {
        own_m,
        own_n,
        threads,
        shares_rows,
        apart,
    } = shape(problem, device);
    let (columns, jobs_per_group) = if shares_rows {
        (own_n * threads, 1)
    } else {
        (own_n * apart, threads)
    };
    let cut = Cut {
        blocks: [
            problem.m.div_ceil(own_m),
            problem.n.div_ceil(columns) * apart,
        ],
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
    let b_packs = match problem.b.is_along_k() {
        true => device.kind != DeviceKind::CPU,
        false => own_n.is_multiple_of(width) && apart == 1,
    };
    let wide = [
        a_packs && problem.a.is_wide(width),
        b_packs && problem.b.is_wide(width),
        own_n.is_multiple_of(width) && problem.n.is_multiple_of(width) && apart == 1,
    ];
    let own = vec![
        number("THREADS", threads),
        number("OWN_M", own_m),
        number("OWN_N", own_n),
        number("SHARED_ROWS", shares_rows),
        number("APART", apart),
    ];
    steps::product(problem, device, ("direct.comp", 0), cut, wide, own)
}

fn shape(problem: &Problem, device: &DeviceInfo<'_>) -> Shape {
    let lanes = device.subgroup_size.max(1);
    let is_cpu = device.kind == DeviceKind::CPU;
    // 64-bit integers travel between invocations only with an extension that shaders here do without.
    let travels = !matches!(problem.dtype, DType::U64 | DType::S64)
        && device.features.has(Features::SUBGROUP_ARITHMETIC);
    if is_cpu && travels && problem.n > 4 {
        let own_m = if problem.m > lanes { 2 * lanes } else { lanes };
        return Shape {
            own_m,
            own_n: 4,
            threads: lanes,
            shares_rows: true,
            apart: 1,
        };
    }
    let width = steps::width(problem.dtype);
    // Columns of B that lie along k begin far from each other: the closer those of neighbours are, the fewer lines they load.
    let packs = width > 1 && problem.n.is_multiple_of(width) && !problem.b.is_along_k();
    let (own_n, apart) = match is_cpu || packs || problem.n < lanes {
        true => (problem.n.next_power_of_two().min(4), 1),
        false => (problem.n.div_ceil(lanes).min(4), lanes),
    };
    // Where there are enough results for all, a row of B serves more of them.
    let most = match !is_cpu && problem.elements() >= MANY && steps::register(problem.dtype) <= 8 {
        true => 8,
        false => 4,
    };
    let mut own_m = problem.m.next_power_of_two().min(most);
    let units = u64::from(device.compute_units.max(8));
    let most_jobs = problem.elements() / u64::from(own_n);
    while !is_cpu && own_m > 1 && most_jobs / u64::from(own_m) < units * 128 {
        own_m /= 2;
    }
    Shape {
        own_m,
        own_n,
        threads: if is_cpu {
            lanes
        } else {
            steps::threads(device).min(128)
        },
        shares_rows: false,
        apart,
    }
}
