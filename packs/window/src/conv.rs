//! Plans of `conv`: tiles in shared memory, or straight from memory where filters and positions are too few to share them, or a
//! model of the device has it that this takes less.

pub(crate) mod cost;

use crate::{
    matrix,
    problem::{Cut, Problem},
    steps::{add, common, results},
    table::Method,
};
use nx_vulkan_abi::{
    DType, DTypeSet, Define, DeviceInfo, DeviceKind, Features, Plan, Precision, Refusal, Request,
    epilogue,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{grid, steps::number, table};

/// Channels that an invocation loads before it waits for the first.
const AT_ONCE: u64 = 8;
/// Invocations of a workgroup without a tile, where the device has so many.
const GROUP: u32 = 256;
/// Kernel elements of one step of a tile.
const BLOCK_K: u64 = 8;
/// Results that an invocation computes where filters have a single channel; a CPU's compiler takes long over many.
const RUN: u64 = 8;
const CPU_RUN: u64 = 2;
/// Elements of such a filter at most, and of x along a run.
const MOST_TAPS: u64 = 64;
const MOST_REACH: u64 = 32;
/// Compute units of a device that does not say how many it has.
const SOME_UNITS: u64 = 64;
/// Further operands of an epilogue that every kernel of `dot` takes.
const MOST_FURTHER: usize = 3;
/// Channels and filters with which a product of f32 takes less, what is met of x copied first.
const WIDE: u64 = 128;
/// Results with which it does where none lie in pairs.
const MANY_RESULTS: u64 = 1 << 20;
/// Products that one invocation may add up: a device takes longer dispatches for hung.
const MOST: u64 = 1 << 24;

/// Plans a convolution in one way, whose kernel declares to need `declared`.
pub(crate) fn plan(
    (method, declared): (Method, Features),
    [takes, gives]: [DTypeSet; 2],
    request: &Request<'_>,
) -> Result<Plan, Refusal> {
    let operands = match request.text(epilogue::ATTRIBUTE) {
        Some(_) => request.inputs.len().max(epilogue::FACTORS),
        None => epilogue::FACTORS,
    };
    table::expect_types("conv", &vec![takes; operands], gives, request)?;
    let is_cpu = request.device.kind == DeviceKind::CPU;
    if method == Method::Cpu && !is_cpu {
        return Err(Refusal::decline("the device is not a CPU"));
    }
    let problem = match Problem::new(request)? {
        Ok(problem) => problem,
        Err(plan) => return Ok(plan),
    };
    if !is_cpu && is_product(&problem, method, request) {
        let reason = "it is a product of two matrices, which `dot` takes less for";
        return Err(Refusal::decline(reason));
    }
    match method {
        Method::Tiled => tiled(&problem, request.device),
        Method::Matrix => matrix::plan(&problem, declared, Precision::of(request), request.device),
        Method::Few if is_cpu || !cost::is_soon(&problem, request.device) => {
            Err(Refusal::decline("tiles take less"))
        }
        Method::Direct | Method::Cpu | Method::Few => direct(&problem, request.device),
    }
}

/// Whether the host would run it as a product of matrices (`product` of the ops crate says which it does), which takes less.
fn is_product(problem: &Problem, method: Method, request: &Request<'_>) -> bool {
    let out = &request.outputs[0];
    let rank = out.rank();
    let first = Vec::from_iter(0..rank as i64);
    let last = [&[0, rank as i64 - 1], &first[1..rank - 1]].concat();
    let is_ordered = |axes: &[i64]| {
        let mut orders = ["input_permutation", "output_permutation"].into_iter();
        orders.all(|name| request.ints(name) == axes)
    };
    // Units multiply pieces of many channels as fast, and store few filters faster.
    let narrow = matches!(problem.dtype, DType::F16 | DType::BF16);
    let is_deep = method == Method::Matrix && narrow && problem.channels > problem.filters;
    if problem.is_strided() && !is_worth_a_copy(problem) {
        return false;
    }
    let merged = if problem.is_product() && is_ordered(&last) && !is_deep {
        vec![0..rank - 1, rank - 1..rank]
    } else if problem.is_product_of_planes() && is_ordered(&first) {
        vec![0..1, 1..2, 2..rank]
    } else {
        return false;
    };
    // Products take so many further operands, which have all of the axes that become one, or none.
    let mut further = request.inputs.iter().skip(epilogue::FACTORS);
    further.len() <= MOST_FURTHER
        && further.all(|operand| {
            let missing = rank.saturating_sub(operand.rank());
            let own = |axis: usize| {
                axis.checked_sub(missing)
                    .map_or(1, |own| operand.shape[own])
            };
            merged.iter().all(|axes| {
                let is_none = axes.clone().all(|axis| own(axis) == 1);
                is_none || axes.clone().all(|axis| own(axis) == out.shape[axis])
            })
        })
}

/// Whether a product takes less than a kernel that takes what it meets of x from where it is.
fn is_worth_a_copy(problem: &Problem) -> bool {
    let is_wide = problem.dtype == DType::F32 && problem.channels.min(problem.filters) >= WIDE;
    let in_pairs = problem.runs(2, problem.filters_inner())
        && (problem.channels.is_multiple_of(2) || !problem.channels_last());
    is_wide || !in_pairs && problem.results >= MANY_RESULTS
}

/// Runs of results along one axis, where filters have a single channel; nothing where they do not, or have too many elements.
fn plane(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Option<Plan>, Refusal> {
    let Some(plane) = problem.plane() else {
        return Ok(None);
    };
    let most = if device.kind == DeviceKind::CPU {
        CPU_RUN
    } else {
        RUN
    };
    let run = plane.positions[0].next_power_of_two().min(most);
    let reach = (run - 1) * plane.stride as u64 + (plane.taps[0] - 1) * plane.dilation as u64 + 1;
    if plane.taps[0] * plane.taps[1] > MOST_TAPS || reach > MOST_REACH {
        return Ok(None);
    }
    let runs = plane.positions[0].div_ceil(run);
    let cut = Cut {
        jobs: problem.batches() * problem.groups * problem.filters * runs * plane.positions[1],
        blocks: [0, runs],
        ..Cut::default()
    };
    let threads = u64::from(grid::threads(device, GROUP));
    let mut defines = common(problem, threads, false, problem.is_partial(1));
    for (name, value) in [
        ("RUN", run),
        ("STRIDE", plane.stride as u64),
        ("DILATION", plane.dilation as u64),
        ("TAPS_0", plane.taps[0]),
        ("TAPS_1", plane.taps[1]),
        ("GROUPS_INNER", problem.groups_inner().into()),
    ] {
        defines.push(number(name, value));
    }
    let mut plan = Plan::default();
    let to = results(&mut plan, problem, 1);
    let step = ("plane.comp", defines, cut);
    add(&mut plan, problem, step, (to, 1), threads, device)?;
    Ok(Some(plan))
}

fn direct(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if let Some(plan) = plane(problem, device)? {
        return Ok(plan);
    }
    let threads = u64::from(grid::threads(device, GROUP));
    let (splits, chunk) = cost::places(problem, device);
    if chunk * problem.channels > MOST {
        return Err(Refusal::decline(
            "conv of large kernels takes the device too long",
        ));
    }
    let cut = Cut {
        jobs: problem.results * splits,
        chunk,
        ..Cut::default()
    };
    let mut plan = Plan::default();
    let to = results(&mut plan, problem, splits);
    let mut defines = common(problem, threads, false, problem.is_partial(splits));
    defines.push(number("FILTERS_INNER", problem.filters_inner()));
    let at_once = match device.kind {
        DeviceKind::CPU => 1,
        _ => AT_ONCE,
    };
    defines.push(number("AT_ONCE", at_once));
    let step = ("direct.comp", defines, cut);
    add(&mut plan, problem, step, (to, splits), threads, device)?;
    Ok(plan)
}

/// The plan on the general units.
///
/// # Errors
/// A decline where the device or the problem does not suit it.
pub(crate) fn plain(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    tiled(problem, device).or_else(|_| direct(problem, device))
}

fn tiled(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let Some((tile, splits, _)) = cost::least(problem, device) else {
        return Err(Refusal::decline(
            "too few filters, positions or elements for tiles",
        ));
    };
    let register = problem.register();
    let width = 16 / register.size().max(4);
    let [m, n] = tile.block;
    let threads = m / (tile.packs[0] * width) * (n / (tile.packs[1] * width));
    let shared =
        2 * BLOCK_K * ((m + n + 2 * width) * register.size() + 4 * (2 + problem.dims().max(1)));
    if threads > u64::from(grid::invocations(device)) || shared > u64::from(device.shared_bytes) {
        return Err(Refusal::decline(
            "the device's workgroups are too small for tiles",
        ));
    }
    let (splits, chunk) = cost::chunks(problem, splits);
    let blocks = tile.blocks(problem);
    let cut = Cut {
        jobs: blocks[0] * blocks[1] * problem.groups * splits,
        blocks,
        chunk,
    };

    let mut plan = Plan::default();
    let to = results(&mut plan, problem, splits);
    let last = problem.channels_last();
    let mut defines = common(problem, threads, last, problem.is_partial(splits));
    let vector = glsl::of(register).and_then(|glsl| glsl::vector(glsl.storage, width));
    defines.push(define("VEC", vector.unwrap_or("vec4")));
    for (name, value) in [
        ("WIDTH", width),
        ("BLOCK_M", m),
        ("BLOCK_N", n),
        ("BLOCK_K", BLOCK_K),
        ("PACKS_M", tile.packs[0]),
        ("PACKS_N", tile.packs[1]),
        ("X_ALONG_K", last.into()),
        ("ALONG_FILTERS", problem.filters_inner().into()),
        ("W_ALONG_K", problem.kernel_along_depth().into()),
    ] {
        defines.push(number(name, value));
    }
    defines.extend(wide_stores(problem, splits, width));
    let step = ("tile.comp", defines, cut);
    add(&mut plan, problem, step, (to, splits), 1, device)?;
    Ok(plan)
}

/// How `width` results are stored at once, where they lie together: floats of 16 bits as words.
fn wide_stores(problem: &Problem, splits: u64, width: u64) -> Vec<Define> {
    let stored = match problem.is_partial(splits) {
        true => problem.register(),
        false => problem.result(),
    };
    let vector = match (stored.size(), width) {
        (2, 4) if stored.is_float() => Some("uvec2"),
        // What is shorter is no number that every device has vectors of in registers.
        (1 | 2, _) => None,
        _ => glsl::of(stored).and_then(|glsl| glsl::vector(glsl.storage, width)),
    };
    let is_in_line = problem.results.is_multiple_of(width);
    let fits = is_in_line && problem.runs(width, problem.filters_inner());
    let Some(vector) = vector.filter(|_| fits) else {
        return vec![number("WIDE_STORES", 0u32)];
    };
    let mut defines = vec![number("WIDE_STORES", 1u32), define("STORED", vector)];
    if stored.size() == 2 {
        defines.push(number("SHORTS", 1u32));
    }
    defines
}

pub(crate) fn units(device: &DeviceInfo<'_>) -> u64 {
    match device.compute_units {
        0 => SOME_UNITS,
        units => u64::from(units),
    }
}
