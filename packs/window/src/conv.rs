//! Plans of `conv`: tiles in shared memory where there are filters and positions to share them, else straight from memory.

use crate::{
    problem::{Cut, Problem},
    table::Method,
};
use nx_vulkan_abi::{
    BufArg, DTypeSet, Define, DeviceInfo, DeviceKind, Plan, Refusal, Request,
    glsl::{self, define, operand},
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, number, read, scratch},
    table,
};

/// Kernel elements of one step of a tile.
const BLOCK_K: u64 = 8;
/// Elements of a filter that make a split worthwhile.
const LEAST_CHUNK: u64 = 128;
/// Splits at most: each costs a partial result.
const MOST_SPLITS: u64 = 256;
/// Compute units of a device that does not say how many it has.
const SOME_UNITS: u64 = 64;
/// Products that one invocation may add up: a device takes longer dispatches for hung.
const MOST: u64 = 1 << 24;

/// Filters and positions of a workgroup, and packs of an invocation along both.
struct Tile {
    block: [u64; 2],
    packs: [u64; 2],
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

/// Plans a convolution in one way.
pub(crate) fn plan(
    method: Method,
    [takes, gives]: [DTypeSet; 2],
    request: &Request<'_>,
) -> Result<Plan, Refusal> {
    table::expect_types("conv", &[takes; 2], gives, request)?;
    let is_cpu = request.device.kind == DeviceKind::CPU;
    if method == Method::Cpu && !is_cpu {
        return Err(Refusal::decline("the device is not a CPU"));
    }
    let problem = match Problem::new(request)? {
        Ok(problem) => problem,
        Err(plan) => return Ok(plan),
    };
    match method {
        Method::Tiled => tiled(&problem, request.device),
        Method::Direct | Method::Cpu => direct(&problem, request.device),
    }
}

fn direct(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if problem.depth > MOST {
        return Err(Refusal::decline(
            "conv of large kernels takes the device too long",
        ));
    }
    let threads = u64::from(grid::threads(device, 256));
    let mut defines = common(problem, threads, false);
    defines.push(number("FILTERS_INNER", problem.filters_inner()));
    let cut = Cut {
        jobs: problem.results,
        ..Cut::default()
    };
    let mut plan = Plan::default();
    let groups = problem.results.div_ceil(threads);
    add(
        &mut plan,
        "direct.comp",
        defines,
        problem.words(cut),
        BufArg::output(0),
        groups,
        device,
    )?;
    Ok(plan)
}

fn tiled(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    if problem.dtype.is_complex() || problem.filters < 8 || problem.columns < 8 || problem.depth < 8
    {
        return Err(Refusal::decline(
            "too few filters, positions or elements for tiles",
        ));
    }
    let register = glsl::of(problem.dtype).map_or(problem.dtype, |glsl| glsl.register);
    let width = 16 / register.size().max(4);
    let tiles = if width == 4 { OF_FOUR } else { OF_TWO };
    let fits = |tile: &&Tile| problem.filters * 4 > tile.block[0] * 3;
    let fitting = tiles.iter().find(fits).unwrap_or(&tiles[tiles.len() - 1]);
    let narrow = &NARROW[usize::from(width != 4)];
    let tile = if problem.columns <= 48 && problem.filters > 32 {
        narrow
    } else {
        fitting
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
    let blocks = [problem.filters.div_ceil(m), problem.columns.div_ceil(n)];
    let whole = blocks[0] * blocks[1] * problem.groups;
    let (splits, chunk) = split(problem, whole, register.size(), device);
    let cut = Cut {
        jobs: whole * splits,
        blocks,
        chunk,
    };

    let mut plan = Plan::default();
    let to = match splits {
        1 => BufArg::output(0),
        splits => scratch(&mut plan, splits * problem.results * register.size()),
    };
    let last = problem.channels_last();
    let mut defines = common(problem, threads, last);
    let vector = glsl::of(register).and_then(|glsl| glsl::vector(glsl.storage, width));
    let (result, store) = if splits == 1 {
        ("T_STORAGE", "T_STORE(x)")
    } else {
        ("T_VALUE", "(x)")
    };
    defines.extend([
        define("VEC", vector.unwrap_or("vec4")),
        define("RESULT", result),
        define("TO_RESULT(x)", store),
    ]);
    for (name, value) in [
        ("WIDTH", width),
        ("BLOCK_M", m),
        ("BLOCK_N", n),
        ("BLOCK_K", BLOCK_K),
        ("PACKS_M", tile.packs[0]),
        ("PACKS_N", tile.packs[1]),
        ("X_ALONG_K", last.into()),
        ("W_ALONG_K", problem.kernel_along_depth().into()),
    ] {
        defines.push(number(name, value));
    }
    add(
        &mut plan,
        "tile.comp",
        defines,
        problem.words(cut),
        to,
        cut.jobs,
        device,
    )?;
    if splits > 1 {
        let threads = u64::from(grid::threads(device, 256));
        let mut defines = operand("T", problem.dtype);
        defines.push(number("THREADS", threads));
        let step = Step {
            file: "splits.comp",
            defines,
            args: vec![read(to), BufArg::output(0)],
            push: bytes_of(&[problem.results as u32, splits as u32]),
            groups: grid::spread(problem.results.div_ceil(threads), device)?,
            ..Step::default()
        };
        step.add_to(&mut plan);
    }
    Ok(plan)
}

/// How many parts the depth is cut into, and elements of one part: so many that they fill the device.
fn split(problem: &Problem, blocks: u64, register: u64, device: &DeviceInfo<'_>) -> (u64, u64) {
    let units = match device.compute_units {
        0 => SOME_UNITS,
        units => u64::from(units),
    };
    let room = device.max_buffer_range.min(1 << 30) / (problem.results * register).max(1);
    let wanted = (2 * units).div_ceil(blocks).min(MOST_SPLITS).min(room);
    let splits = if blocks >= units {
        1
    } else {
        wanted.min(problem.depth / LEAST_CHUNK).max(1)
    };
    let chunk = problem.depth.div_ceil(splits).next_multiple_of(BLOCK_K);
    (problem.depth.div_ceil(chunk), chunk)
}

fn common(problem: &Problem, threads: u64, channels_last: bool) -> Vec<Define> {
    let mut defines = operand("T", problem.dtype);
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

fn add(
    plan: &mut Plan,
    file: &'static str,
    defines: Vec<Define>,
    words: Vec<u32>,
    to: BufArg,
    groups: u64,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    plan.params = bytes_of(&words);
    let step = Step {
        file,
        defines,
        args: vec![BufArg::params(), BufArg::input(0), BufArg::input(1), to],
        groups: grid::spread(groups, device)?,
        ..Step::default()
    };
    step.add_to(plan);
    Ok(())
}
