//! Products with few rows or few columns: matrix-vector, vector-matrix, inner products. They are bound by memory. On a GPU small ones
//! with more columns, in blocks of few, too.

use crate::{
    problem::Problem,
    steps::{self, Cut, number},
    words::Load,
};
use nx_vulkan_abi::{DeviceInfo, DeviceKind, Plan, Refusal, explain};
use nx_vulkan_pack_kit::grid::has_full_subgroups;

/// Most columns that count as few, and that an invocation has sums of.
pub(crate) const FEW: u32 = 8;
/// Results and multiplications of a unit up to which a GPU has room for blocks of so many columns side by side: tiles would wait for
/// one load along k after the other.
const SIDE_BY_SIDE: (u64, u64) = (1 << 8, 1 << 15);
/// Contracted elements from which on they are worth it, twice as many where those of B are loaded one at a time for many results.
const DEEP: u32 = 64;
/// Bytes of sums that an invocation has registers for.
const SUMS: u32 = 256;
/// Sums of which a device takes many more at a time.
const LONE: u64 = 4096;
/// Columns and multiplications from which on a copy of B takes less time than loads of it that are far from each other.
const COPIES: (u32, u64) = (5, 1 << 22);
/// Invocations of a compute unit that keep as many bytes on their way as memory has latency for.
const BUSY: u32 = 1536;
/// Loads that are worth an invocation where others have work without it: its sums meet those of the others at the end.
const LOADS: u32 = 16;
/// Subgroups to a row up to which a device waits longer for its sums to meet than for its loads, and loads that are then worth an
/// invocation; first for sums of one word, then for more than two of more words, which meet in shared memory alone.
const MEETING: [(u32, u32); 2] = [(4, 8), (16, 4)];
/// Elements of A that are worth a part of their own on a CPU.
const PART: u64 = 16 << 10;
/// Bytes of A that are worth one on a GPU, where the sums of parts meet in a dispatch that waits for all of them.
const APART: u64 = 256 << 10;
/// What all invocations hold at the end meets in shared memory; more than this would keep workgroups waiting.
const SHARED: u32 = 32 << 10;

/// How the work is laid out over one workgroup.
#[derive(Debug)]
struct Shape {
    a: Load,
    b: Load,
    threads: u32,
    /// Invocations that share the contracted axis.
    along: u32,
    /// Packs, or rows, of an invocation.
    own_m: u32,
    /// Columns of a workgroup.
    columns: u32,
    /// Of these, that are added up at a time.
    group: u32,
}

impl Shape {
    /// Contracted elements of one load.
    fn depth(&self, problem: &Problem) -> u32 {
        if problem.a.is_along_k() {
            self.a.elements
        } else {
            1
        }
    }

    /// Rows of one load.
    fn row_step(&self, problem: &Problem) -> u32 {
        self.a.elements / self.depth(problem)
    }

    fn rows(&self, problem: &Problem) -> u32 {
        self.threads / self.along * self.own_m * self.row_step(problem)
    }
}

/// Plans products with at most [`FEW`] rows or columns, or with blocks of so many where few results are summed over many terms, and a
/// contracted axis worth sharing.
pub(crate) fn plan(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let mut problem = match problem.n > problem.m {
        true => problem.clone().exchanged(),
        false => problem.clone(),
    };
    let Problem {
        m, n, k, batches, ..
    } = problem;
    let is_cpu = device.kind == DeviceKind::CPU;
    let work = problem.elements().saturating_mul(u64::from(k));
    let of_unit = |count: u64| count / u64::from(units(device));
    let are_few = of_unit(problem.elements()) < SIDE_BY_SIDE.0 && of_unit(work) < SIDE_BY_SIDE.1;
    let is_apart = problem.a.is_along_k() && !problem.b.is_along_k();
    let deep = if is_apart && problem.elements() >= LONE {
        2 * DEEP
    } else {
        DEEP
    };
    if n > FEW && (is_cpu || k < deep || !are_few) {
        return Err(Refusal::decline(format!(
            "{n} rows or columns are more than {FEW}, and blocks of so many do not pay"
        )));
    }
    // So few sums would leave a device idle, if each had one invocation.
    let is_lone = !is_cpu && problem.elements() < LONE;
    let least = if is_lone { 32 } else { 4096 };
    if k < 32 || u64::from(m) * u64::from(k) < least {
        return Err(Refusal::decline(format!(
            "{m} x {k} is too little work to share"
        )));
    }
    let is_far = problem.a.is_along_k() && Load::largest(&problem.a, 8).elements > 1;
    let is_copied = (COPIES.0..=FEW).contains(&n) && work >= COPIES.1 && m / n >= 4;
    if !is_cpu && is_copied && is_far {
        problem.turn_b(device);
    }
    let shape = if problem.a.is_along_k() {
        along_k(&problem, device)
    } else {
        across(&problem, device)
    };
    let bytes = shape.rows(&problem) * shape.along * shape.group * steps::register(problem.dtype);
    if bytes > device.shared_bytes {
        return Err(Refusal::decline(
            "the sums of one workgroup exceed its shared memory",
        ));
    }
    let cut = Cut {
        blocks: [m.div_ceil(shape.rows(&problem)), n.div_ceil(shape.columns)],
        splits: 1,
        chunk: k,
        jobs_per_group: 1,
    };
    let [blocks_m, blocks_n] = cut.blocks.map(u64::from);
    let groups = blocks_m * blocks_n * u64::from(batches);
    let busy = if is_cpu { 4 * shape.threads } else { BUSY / 2 };
    let target = u64::from(units(device) * busy / shape.threads);
    let work = u64::from(k) * u64::from(shape.rows(&problem));
    let most = match is_cpu {
        true => work / PART,
        false => work * problem.a.dtype.size() / APART,
    };
    let unit = shape.along * shape.depth(&problem);
    let cut = match groups * 2 > target {
        true => cut,
        false => cut.split(k, (target / groups).min(most), unit),
    };
    let unroll: u32 = match (shape.own_m, shape.columns) {
        (1, 1 | 2 | 5..) => 4,
        (1, _) | (_, 1) => 2,
        _ => 1,
    };
    explain(format!(
        "{} workgroups of {} invocations, {} of which share k, with {} rows of A each and {} elements to a load, {} parts",
        groups * u64::from(cut.splits),
        shape.threads,
        shape.along,
        shape.own_m * shape.row_step(&problem),
        shape.a.elements,
        cut.splits,
    ));
    let is_word = steps::register(problem.dtype) == 4;
    let subgroup = match is_word && !is_cpu && has_full_subgroups(device, shape.threads.into()) {
        true => device.subgroup_size,
        false => 0,
    };
    let mut own = vec![
        number("SUBGROUP", subgroup),
        number("THREADS", shape.threads),
        number("ALONG", shape.along),
        number("OWN_M", shape.own_m),
        number("COLUMNS", shape.columns),
        number("GROUP", shape.group),
        number("UNROLL", unroll),
    ];
    own.extend(shape.a.defines("A", problem.a.dtype, problem.dtype));
    own.extend(shape.b.defines("B", problem.b.dtype, problem.dtype));
    steps::product(
        &problem,
        device,
        ("skinny.comp", subgroup),
        cut,
        [false; 3],
        own,
    )
}

fn units(device: &DeviceInfo<'_>) -> u32 {
    device.compute_units.max(4)
}

/// A is read along the contracted axis: a few rows each, whose sums meet at the end.
fn along_k(problem: &Problem, device: &DeviceInfo<'_>) -> Shape {
    let &Problem { m, k, .. } = problem;
    let [columns, blocks] = columns(problem);
    let a = Load::largest(&problem.a, 8);
    let b = match problem.b.is_along_k() {
        true => Load::largest(&problem.b, a.elements),
        false => Load::SINGLE,
    };
    let register = steps::register(problem.dtype);
    let threads = threads(device, 256);
    let room = SHARED.min(device.shared_bytes) / (threads * register);
    let own_m = floor_power((m / 4).min(4).min(SUMS / (columns * register)).min(room));
    let lanes = m.div_ceil(own_m).saturating_mul(blocks).max(1);
    let wanted = units(device) * BUSY / lanes;
    // Each has a load at least.
    let loads = k / a.elements;
    let (meeting, least) = MEETING[usize::from(register > 4 && columns > 2)];
    let is_cpu = device.kind == DeviceKind::CPU;
    let wanted = if wanted <= device.subgroup_size {
        device.subgroup_size.min(loads / LOADS)
    } else if !is_cpu && wanted < meeting * device.subgroup_size {
        wanted.min(loads / least)
    } else {
        wanted
    };
    let along = floor_power(loads)
        .min(wanted.next_power_of_two())
        .clamp(8.min(threads), threads);
    // No more of them than have rows.
    let most = along * m.div_ceil(own_m).min(threads).next_power_of_two();
    let threads = threads.min(most).max(threads.min(device.subgroup_size));
    Shape {
        a,
        b,
        threads,
        along,
        own_m,
        columns,
        group: columns.min(floor_power(room / own_m)),
    }
}

/// A is read along m: neighbours own neighbouring rows, and as many share the contracted axis as keep the device busy.
fn across(problem: &Problem, device: &DeviceInfo<'_>) -> Shape {
    let &Problem { m, k, .. } = problem;
    let [columns, blocks] = columns(problem);
    let a = Load::largest(&problem.a, (16 / columns).clamp(4, 16));
    let register = steps::register(problem.dtype);
    // What is loaded of B serves 16 bytes of sums of each column.
    let most = (16 / (a.elements * register)).max(1);
    // Invocations side by side that read 64 bytes.
    let least = 16 / a.words.clamp(1, 4);
    let jobs = |own_m: u32| {
        let rows = a.elements * own_m * least;
        let bytes = u64::from(k) * u64::from(rows) * problem.a.dtype.size();
        u64::from(m.div_ceil(rows).saturating_mul(blocks)) * (bytes / APART).max(1)
    };
    // On a GPU with work for less than half of its units one row each is faster, if that leaves it about as many workgroups; but for
    // sums of more than one word.
    let is_one = register == 4
        && device.kind != DeviceKind::CPU
        && jobs(most) < u64::from(units(device) / 2)
        && jobs(1) * 10 >= jobs(most) * 9;
    let own_m = if is_one { 1 } else { most };
    let rows = a.elements * own_m;
    let sums = rows * columns;
    let room = SHARED.min(device.shared_bytes) / (rows * register);
    let most = threads(
        device,
        match sums {
            0..=8 => 1024,
            9..=16 => 512,
            _ => 256,
        },
    );
    let threads = most.min(floor_power(room));
    let lanes = m.div_ceil(rows) * blocks;
    let mut beside = m
        .div_ceil(rows)
        .min(device.subgroup_size.max(least))
        .next_power_of_two()
        .min(threads);
    // A few units without one cost less than shorter loads, as long as those that share the contracted axis stay as many.
    let enough = match sums {
        0..=8 => units(device) / 8 * 7,
        _ => units(device),
    };
    while beside > least && lanes.div_ceil(beside) < enough {
        beside /= 2;
    }
    // Where most units have none, half of that is read faster all the same.
    if beside > 1 && lanes.div_ceil(beside) < enough / 4 {
        beside = beside.min((least / 2).max(1));
    }
    // What is left of the device's invocations shares the contracted axis, with at least 8 steps for each.
    let wanted = (units(device) * BUSY / lanes.max(1)).min(k / 8);
    let fewest = device.subgroup_size.div_ceil(beside);
    let along = wanted.max(fewest).next_power_of_two().min(threads / beside);
    let threads = beside * along;
    Shape {
        a,
        b: Load::SINGLE,
        threads,
        along,
        own_m,
        columns,
        group: columns.min(floor_power(room / threads)),
    }
}

/// Columns of a workgroup, and blocks of so many in all batches.
fn columns(problem: &Problem) -> [u32; 2] {
    let blocks = problem.n.div_ceil(FEW);
    [
        problem.n.div_ceil(blocks),
        blocks.saturating_mul(problem.batches),
    ]
}

fn threads(device: &DeviceInfo<'_>, most: u32) -> u32 {
    match device.kind {
        DeviceKind::CPU => 32,
        _ => nx_vulkan_pack_kit::grid::threads(device, most),
    }
}

/// The largest power of two that is not above `x`, at least 1.
fn floor_power(x: u32) -> u32 {
    1 << x.max(1).ilog2()
}
