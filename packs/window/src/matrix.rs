//! Plans of `conv` on matrix units: x and the kernel are packed as fragments want them, then multiplied straight from memory.

mod anew;
mod cost;

use crate::{
    axes::divisor,
    conv::{plain, results, sum_splits},
    problem::Problem,
};
use cost::Shape;
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceInfo, Plan, Precision, Refusal,
    glsl::{define, operand},
};
use nx_vulkan_pack_kit::{
    grid,
    matrix::expect_known_order,
    steps::{Step, bytes_of, number, read, scratch},
};

/// Elements of a filter that one step of the product takes.
const STEP: u64 = 32;
/// Pixels of x, or steps of a filter, that one workgroup packs: of one part an element, or of several, which leave room for fewer
/// steps.
const PIXELS: u64 = 64;
const STEPS: [u64; 2] = [64, 32];
/// Elements of a fragment along filters and positions.
const FRAGMENT: u64 = 16;
/// Invocations of a subgroup.
const LANES: u64 = 32;
/// Shaders compute places in 32 bits.
const MOST: u64 = 1 << 30;
/// Steps whose pieces are looked up before they are known to exist.
const AHEAD: u64 = 1;

/// One spatial axis of the packed x.
struct Axis {
    packed: u64,
    stride: u64,
    /// Elements of it from one position to the next, and from one element of the kernel.
    steps: [u64; 2],
}

/// How operands are packed.
struct Packing {
    /// Elements of x that are loaded at once where it is not packed.
    run: Option<u64>,
    /// Numbers of 16 bits that an element is the sum of.
    planes: u64,
    /// Channels of a block, and of a piece.
    block: u64,
    piece: u64,
    blocks: u64,
    axes: Vec<Axis>,
    block_pieces: u64,
    x_pieces: u64,
    /// Steps of a filter.
    steps: u64,
}

impl Packing {
    fn new(problem: &Problem, planes: u64) -> Packing {
        let block = block(problem.channels);
        let piece = block.min(8);
        let blocks = problem.channels.div_ceil(block);
        let axes: Vec<Axis> = problem
            .spatial
            .iter()
            .map(|axis| {
                let [stride, dilation] = [axis.stride, axis.dilation].map(i64::unsigned_abs);
                // Elements between those that positions and the kernel meet are left out.
                let unit = match (axis.positions, axis.taps) {
                    (1, 1) => 1,
                    (_, 1) => stride,
                    (1, _) => dilation,
                    _ => gcd(stride, dilation),
                };
                let steps = [stride / unit, dilation / unit];
                Axis {
                    packed: (axis.positions - 1) * steps[0] + (axis.taps - 1) * steps[1] + 1,
                    stride: unit,
                    steps,
                }
            })
            .collect();
        let plane = axes
            .iter()
            .fold(1u64, |all, axis| all.saturating_mul(axis.packed));
        let block_pieces = plane.saturating_mul(block / piece);
        let parts = problem.batches() * problem.groups;
        let taps = problem.depth / problem.channels;
        Packing {
            run: problem.pointwise(),
            planes,
            block,
            piece,
            blocks,
            axes,
            block_pieces,
            x_pieces: block_pieces.saturating_mul(parts * blocks),
            steps: (taps * blocks * block).div_ceil(STEP),
        }
    }

    /// Whether every step has all of its pieces.
    fn is_whole(&self, problem: &Problem) -> bool {
        let taps = problem.depth / problem.channels;
        taps * self.blocks * self.block == self.steps * STEP
    }
}

/// Channels of a block: as many as leave the least empty, and of equals the most.
fn block(channels: u64) -> u64 {
    let padded = |block: &u64| channels.next_multiple_of(*block);
    let sizes = [32, 16, 8, 4].into_iter();
    sizes.min_by_key(padded).unwrap_or(4)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Plans a convolution on matrix units.
///
/// # Errors
/// A decline where the device or the problem does not suit them.
pub(crate) fn plan(
    problem: &Problem,
    precision: Precision,
    device: &DeviceInfo<'_>,
) -> Result<Plan, Refusal> {
    let (units, planes) = match problem.dtype {
        DType::F16 | DType::BF16 => (problem.dtype, 1),
        DType::F32 if precision == Precision::High => (DType::BF16, 2),
        DType::F32 => (DType::BF16, 3),
        other => {
            let reason = format!("matrix units do not take {other}");
            return Err(Refusal::decline(reason));
        }
    };
    let subgroups = device.min_subgroup_size..=device.max_subgroup_size;
    expect_known_order(device)?;
    if !device.multiplies([units, units, DType::F32], [FRAGMENT as u32; 3]) {
        return Err(Refusal::decline(format!(
            "the driver lists no product of {units} with sums of f32 and 16 x 16 x 16 elements"
        )));
    }
    if !subgroups.contains(&(LANES as u32)) {
        return Err(Refusal::decline("subgroups do not have 32 invocations"));
    }
    let packing = Packing::new(problem, planes);
    let too_large = || Refusal::decline("conv too large to be packed");
    if packing.x_pieces >= MOST {
        return Err(too_large());
    }
    let shape = Shape::of(problem, &packing, device)?;
    let (tiles, blocks) = (shape.tiles(problem), shape.blocks(problem));
    let splits = shape.splits(&packing);
    let jobs = blocks[0] * blocks[1] * problem.groups * splits;
    let kernel_loads = shape.kernel_loads(problem, &packing);
    let [x_bytes, kernel_bytes, lookup_bytes] = shape.packed_bytes(problem, &packing);
    let counts = [x_bytes, kernel_bytes, lookup_bytes, jobs];
    if counts
        .iter()
        .any(|count| *count >= MOST.min(device.max_buffer_range))
    {
        return Err(too_large());
    }

    let mut plan = Plan::default();
    let x = match packing.run {
        None => scratch(&mut plan, x_bytes),
        Some(_) => BufArg::input(0),
    };
    let kernel = scratch(&mut plan, kernel_bytes);
    let places = scratch(&mut plan, lookup_bytes);
    let counts = (planes > 1).then(|| scratch(&mut plan, anew::COUNTS));
    let to = results(&mut plan, problem, splits);
    plan.params = bytes_of(&words(
        problem,
        &packing,
        tiles[0],
        blocks,
        shape.chunk,
        jobs,
    ));
    let threads = u64::from(grid::threads(device, 256));
    let mut common = operand("T", problem.dtype);
    common.push(define(
        "PIECE_TYPE",
        ["uvec2", "uvec4"][(packing.piece / 8) as usize],
    ));
    for (name, value) in [
        ("THREADS", threads),
        ("DIMS", problem.dims()),
        ("DIMS_OR_ONE", problem.dims().max(1)),
        ("HOLES", (!problem.is_whole()).into()),
        ("BLOCK", packing.block),
        ("PIECE", packing.piece),
        ("PLANES", planes),
        ("WHOLE", packing.is_whole(problem).into()),
        ("TILE_M", shape.tile[0]),
        ("TILE_N", shape.tile[1]),
    ] {
        common.push(number(name, value));
    }
    let step = |file, args: Vec<BufArg>, groups: u64| {
        Ok::<_, Refusal>(Step {
            file,
            defines: common.clone(),
            args: [vec![BufArg::params()], args].concat(),
            groups: grid::spread(groups, device)?,
            ..Step::default()
        })
    };
    let args = vec![BufArg::input(0), x];
    if packing.run.is_some() {
        // The product loads x itself.
    } else if packing.block >= 16 && problem.x_along_axis() {
        let plane = packing.block_pieces / (packing.block / packing.piece);
        let slabs = packing.x_pieces / packing.block_pieces;
        let groups = slabs * plane.div_ceil(PIXELS) + 1;
        let mut lines = step("matrix_lines.comp", args, groups)?;
        lines.defines.push(number("SPAN", PIXELS));
        lines.add_to(&mut plan);
    } else {
        let groups = (packing.x_pieces + 1).div_ceil(threads);
        step("matrix_x.comp", args, groups)?.add_to(&mut plan);
    }
    let mut args = vec![BufArg::input(1), kernel, places];
    args.extend(counts);
    let span = STEPS[usize::from(planes > 1)];
    if packing.block == STEP && packing.steps >= span && problem.kernel_along_taps() {
        let spans = packing.steps.div_ceil(span);
        let groups = problem.groups * tiles[0] * shape.tile[0] * 4 * spans;
        let mut taps = step("matrix_taps.comp", args, groups)?;
        taps.defines.push(number("SPAN", span));
        taps.add_to(&mut plan);
    } else {
        step("matrix_kernel.comp", args, kernel_loads.div_ceil(threads))?.add_to(&mut plan);
    }
    let mut args = vec![read(x), read(kernel), read(places), to];
    args.extend(counts);
    let file = match (packing.run, planes) {
        (Some(_), _) => "pointwise.comp",
        (None, 1) => "product.comp",
        (None, _) => "product_parts.comp",
    };
    let mut product = step(file, args, jobs)?;
    if let Some(run) = packing.run {
        let vectors = [["uvec2", "uvec4"], ["vec2", "vec4"]][usize::from(planes > 1)];
        let is_long = run * problem.dtype.size() == 16;
        product.defines.push(number("LOADED", run));
        product
            .defines
            .push(define("LOADED_TYPE", vectors[usize::from(is_long)]));
    }
    product
        .defines
        .extend(store(problem, splits, 2 * shape.tile[0]));
    product.defines.push(number("WARPS_M", shape.warps[0]));
    product.defines.push(number("WARPS_N", shape.warps[1]));
    product
        .defines
        .push(number("BF16", u64::from(units == DType::BF16)));
    product.subgroup_size = LANES as u32;
    product.add_to(&mut plan);
    sum_splits(&mut plan, problem, splits, to, counts, device)?;
    if let Some(counts) = counts {
        anew::add(&mut plan, plain(problem, device)?, counts);
    }
    Ok(plan)
}

/// How results are stored: along filters or along positions, and how many at once.
fn store(problem: &Problem, splits: u64, filters: u64) -> Vec<Define> {
    let along_filters = problem.filters_inner();
    let wide = splits > 1 || problem.dtype == DType::F32;
    let most = if wide { 4 } else { 8 };
    let most = if along_filters {
        filters.min(most)
    } else {
        most
    };
    let width = [8, 4, 2, 1]
        .into_iter()
        .find(|width| *width <= most && problem.runs(*width, along_filters));
    let width = width.unwrap_or(1);
    let result = match (wide, width) {
        (true, 4) => "vec4",
        (true, 2) => "vec2",
        (true, _) => "float",
        (false, 8) => "uvec4",
        (false, 4) => "uvec2",
        (false, 2) => "uint",
        (false, _) => "uint16_t",
    };
    vec![
        define("RESULT", result),
        number("WIDTH", width),
        number("WIDE_RESULT", u64::from(wide)),
        number("ALONG_FILTERS", u64::from(along_filters)),
    ]
}

/// The `Params` of `matrix.glsl`.
fn words(
    problem: &Problem,
    packing: &Packing,
    tiles_m: u64,
    blocks: [u64; 2],
    chunk: u64,
    jobs: u64,
) -> Vec<u32> {
    let batches = problem.batches();
    let taps = problem.depth / problem.channels;
    let batch_pieces = packing.blocks * packing.block_pieces;
    // Places in x, where it is not packed.
    let [group_pieces, batch_pieces] = match packing.run {
        None => [batches * batch_pieces, batch_pieces],
        Some(_) => problem.x_steps(),
    };
    let mut words: Vec<u32> = Vec::new();
    let add = |words: &mut Vec<u32>, counts: &[u64]| words.extend(counts.iter().map(|n| *n as u32));
    add(
        &mut words,
        &[
            packing.x_pieces,
            group_pieces,
            batch_pieces,
            packing.block_pieces,
        ],
    );
    for extent in [batches, packing.blocks] {
        add(&mut words, &[extent]);
        words.extend(divisor(extent));
    }
    add(&mut words, &[problem.channels]);
    for extent in [taps, packing.steps] {
        add(&mut words, &[extent]);
        words.extend(divisor(extent));
    }
    add(
        &mut words,
        &[
            problem.filters,
            problem.columns,
            problem.groups,
            tiles_m,
            blocks[0],
            blocks[1],
            chunk,
            jobs,
            problem.results,
        ],
    );
    words.extend(problem.places());
    words.push(0);
    let mut steps = packing.block / packing.piece;
    let mut axes = Vec::new();
    for (axis, packed) in problem.spatial.iter().zip(&packing.axes).rev() {
        let mut words = Vec::new();
        for extent in [axis.positions, axis.taps, packed.packed] {
            add(&mut words, &[extent]);
            words.extend(divisor(extent));
        }
        words.extend([
            packed.stride as u32,
            axis.low as u32,
            axis.extent as u32,
            axis.holes as u32,
        ]);
        words.extend(divisor(axis.holes as u64));
        words.extend(axis.steps.map(|step| step as u32));
        let position = match packing.run {
            None => packed.steps[0] * steps,
            Some(_) => (axis.steps[0] * axis.stride) as u64,
        };
        add(&mut words, &[position, packed.steps[1] * steps]);
        steps *= packed.packed;
        axes.push(words);
    }
    words.extend(axes.into_iter().rev().flatten());
    if problem.spatial.is_empty() {
        words.extend([0; 20]);
    }
    words
}
