//! Plans of `conv`: tiles in shared memory where there are filters and positions to share them, else straight from memory.

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

/// Kernel elements of one step of a tile.
const BLOCK_K: u64 = 8;
/// Elements of a filter that make a split worthwhile.
const LEAST_CHUNK: u64 = 128;
/// Splits at most: each costs a partial result.
const MOST_SPLITS: u64 = 256;
/// Invocations that keep a compute unit busy.
const BUSY: u64 = 1024;
/// Results that an invocation computes where filters have a single channel; a CPU's compiler takes long over many.
const RUN: u64 = 8;
const CPU_RUN: u64 = 2;
/// Elements of such a filter at most, and of x along a run.
const MOST_TAPS: u64 = 64;
const MOST_REACH: u64 = 32;
/// Products of a unit that go by while an element of the depth is loaded, however few tiles there are.
const LATENCY: u64 = 15_000;
/// Compute units of a device that does not say how many it has.
const SOME_UNITS: u64 = 64;
/// Products that one invocation may add up: a device takes longer dispatches for hung.
const MOST: u64 = 1 << 24;

/// Filters and positions of a workgroup, and packs of an invocation along both.
struct Tile {
    block: [u64; 2],
    packs: [u64; 2],
}

impl Tile {
    fn blocks(&self, problem: &Problem) -> [u64; 2] {
        let [m, n] = self.block;
        [problem.filters.div_ceil(m), problem.columns.div_ceil(n)]
    }
}

const fn tile(block: [u64; 2], packs: [u64; 2]) -> Tile {
    Tile { block, packs }
}

/// For packs of four elements and of two, the largest first.
const OF_FOUR: &[Tile] = &[
    tile([128, 128], [2, 2]),
    tile([64, 128], [2, 2]),
    tile([32, 128], [1, 2]),
    tile([16, 256], [1, 2]),
];
const OF_TWO: &[Tile] = &[
    tile([64, 64], [2, 2]),
    tile([32, 64], [2, 2]),
    tile([16, 128], [2, 2]),
];
/// Where there are few positions.
const NARROW: [Tile; 2] = [tile([64, 32], [1, 1]), tile([64, 32], [2, 2])];

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
    // Units multiply pieces of many channels as fast, and store few filters faster.
    let narrow = matches!(problem.dtype, DType::F16 | DType::BF16);
    let is_deep = method == Method::Matrix && narrow && problem.channels > problem.filters;
    if !is_cpu && !is_deep && problem.is_product() && is_in_rows(request) {
        let reason = "it is a product of two matrices, which `dot` takes less for";
        return Err(Refusal::decline(reason));
    }
    match method {
        Method::Tiled => tiled(&problem, request.device),
        Method::Matrix => matrix::plan(&problem, declared, Precision::of(request), request.device),
        Method::Direct | Method::Cpu => direct(&problem, request.device),
    }
}

/// Whether channels come last in x and the result, and further operands are a number, a row, a column or all of the result.
fn is_in_rows(request: &Request<'_>) -> bool {
    let out = &request.outputs[0];
    let rank = out.rank() as i64;
    let is_last = |name: &str| {
        let order = request.ints(name).iter().copied();
        order.eq([0, rank - 1].into_iter().chain(1..rank - 1))
    };
    let filters = out.shape.last().copied().unwrap_or(1);
    let mut further = request.inputs.iter().skip(epilogue::FACTORS);
    is_last("input_permutation")
        && is_last("output_permutation")
        && further.all(|operand| {
            let (all, last) = (operand.elements(), operand.shape.last().copied());
            all == 1
                || all == out.elements()
                || all == filters && last == Some(filters)
                || all * filters == out.elements() && last == Some(1)
        })
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
    let threads = u64::from(grid::threads(device, 256));
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
    let words = problem.words(cut);
    let groups = cut.jobs.div_ceil(threads);
    let to = results(&mut plan, problem, 1);
    let step = ("plane.comp", defines, words);
    add(&mut plan, problem, step, (to, 1), groups, device)?;
    Ok(Some(plan))
}

fn direct(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if let Some(plan) = plane(problem, device)? {
        return Ok(plan);
    }
    let threads = u64::from(grid::threads(device, 256));
    // Parts of the depth are places of the kernel with all their channels.
    let places = problem.depth / problem.channels;
    let filled = units(device) * BUSY;
    let enough = (filled / problem.results).min(problem.depth / LEAST_CHUNK);
    let wanted = enough.min(room(problem, device)).clamp(1, places);
    let chunk = places.div_ceil(wanted);
    if chunk * problem.channels > MOST {
        return Err(Refusal::decline(
            "conv of large kernels takes the device too long",
        ));
    }
    let splits = places.div_ceil(chunk);
    let cut = Cut {
        jobs: problem.results * splits,
        chunk,
        ..Cut::default()
    };
    let mut plan = Plan::default();
    let to = results(&mut plan, problem, splits);
    let mut defines = common(problem, threads, false, problem.is_partial(splits));
    defines.push(number("FILTERS_INNER", problem.filters_inner()));
    let groups = cut.jobs.div_ceil(threads);
    let step = ("direct.comp", defines, problem.words(cut));
    add(&mut plan, problem, step, (to, splits), groups, device)?;
    Ok(plan)
}

/// The plan on the general units.
///
/// # Errors
/// A decline where the device or the problem does not suit it.
pub(crate) fn plain(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    tiled(problem, device).or_else(|_| direct(problem, device))
}

fn suits_tiles(problem: &Problem) -> bool {
    let counts = [problem.filters, problem.columns, problem.depth];
    !problem.dtype.is_complex() && counts.iter().all(|count| *count >= 8)
}

/// The tile and the splits that take the least, and about how long that is.
fn least(problem: &Problem, device: &DeviceInfo<'_>) -> Option<(&'static Tile, u64, u64)> {
    let width = 16 / problem.register().size().max(4);
    let tiles = if width == 4 { OF_FOUR } else { OF_TWO };
    let fits = |tile: &&Tile| problem.filters * 4 > tile.block[0] * 3;
    let fitting = tiles.iter().position(|tile| fits(&tile));
    let narrow = &NARROW[usize::from(width != 4)..][..1];
    let tiles = if problem.columns <= 48 && problem.filters > 32 {
        narrow
    } else {
        &tiles[fitting.unwrap_or(tiles.len() - 1)..]
    };
    let cuts = tiles.iter().flat_map(|tile| {
        let most = room(problem, device).min(problem.depth / LEAST_CHUNK);
        (1..=most.max(1)).map(move |splits| (tile, splits))
    });
    let costs = cuts.map(|(tile, splits)| (tile, splits, cost(problem, tile, splits, device)));
    costs.min_by_key(|(_, _, cost)| *cost)
}

/// About how long it takes in tiles, in products of one compute unit; nothing where they do not suit.
pub(crate) fn cost_of_tiles(problem: &Problem, device: &DeviceInfo<'_>) -> Option<u64> {
    let least = suits_tiles(problem).then(|| least(problem, device));
    least.flatten().map(|(_, _, cost)| cost)
}

fn tiled(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if !suits_tiles(problem) {
        return Err(Refusal::decline(
            "too few filters, positions or elements for tiles",
        ));
    }
    let register = problem.register();
    let width = 16 / register.size().max(4);
    let Some((tile, splits, _)) = least(problem, device) else {
        return Err(Refusal::Internal("no tile fits".to_owned()));
    };
    let [m, n] = tile.block;
    let threads = m / (tile.packs[0] * width) * (n / (tile.packs[1] * width));
    let shared =
        2 * BLOCK_K * ((m + n + 2 * width) * register.size() + 4 * (2 + problem.dims().max(1)));
    if threads > u64::from(grid::invocations(device)) || shared > u64::from(device.shared_bytes) {
        return Err(Refusal::decline(
            "the device's workgroups are too small for tiles",
        ));
    }
    let (splits, chunk) = chunks(problem, splits);
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
    let step = ("tile.comp", defines, problem.words(cut));
    add(&mut plan, problem, step, (to, splits), cut.jobs, device)?;
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

/// How many splits there is memory for.
pub(crate) fn room(problem: &Problem, device: &DeviceInfo<'_>) -> u64 {
    let bytes = problem.results * problem.register().size();
    (device.max_buffer_range.min(1 << 30) / bytes.max(1)).clamp(1, MOST_SPLITS)
}

/// Parts of the depth that so many splits come to, and elements of one.
fn chunks(problem: &Problem, splits: u64) -> (u64, u64) {
    let chunk = problem.depth.div_ceil(splits).next_multiple_of(BLOCK_K);
    (problem.depth.div_ceil(chunk), chunk)
}

/// About how long it takes, in products of one compute unit. Constants are fits to an H200 (132 units, 3x3 kernels of 128
/// to 512 channels), where workgroups on one unit take turns.
fn cost(problem: &Problem, tile: &Tile, splits: u64, device: &DeviceInfo<'_>) -> u64 {
    let (splits, chunk) = chunks(problem, splits);
    let ([m, n], blocks) = (tile.block, tile.blocks(problem));
    let jobs = blocks[0] * blocks[1] * problem.groups * splits;
    let turns = jobs.div_ceil(units(device));
    let sums = match splits {
        1 => 0,
        splits => problem.results * (2 * splits + 1) / 10 + 300_000,
    };
    let multiplied = turns * (m * n + 9 * (m + n)) * (chunk + 64);
    multiplied.max(LATENCY * chunk) + sums
}
