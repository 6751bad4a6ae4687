//! Plans of `conv` on matrix units: the kernel, and x where it does not lie so, are packed as fragments want them, then multiplied
//! straight from memory.

mod anew;
mod cost;
mod told;

use crate::{
    conv::plain,
    problem::Problem,
    steps::{convert_f16, finish, results, sum_splits},
};
use cost::Shape;
use nx_vulkan_abi::{
    BufArg, DType, DeviceInfo, Features, Plan, Precision, Refusal,
    glsl::{define, operand},
};
use nx_vulkan_pack_kit::{
    grid,
    matrix::expect_known_order,
    steps::{Step, bytes_of, derive, number, read, scratch},
};
use told::{store, words};

/// Elements of a filter that one step of the product takes.
const STEP: u64 = 32;
/// Pixels of x, or steps of a filter, that one workgroup packs: of one part an element, or of several, which leave room for fewer
/// steps.
const PIXELS: u64 = 64;
const STEPS: [u64; 2] = [64, 32];
/// Elements of a fragment along filters and positions.
const FRAGMENT: u64 = 16;
/// Elements from one position to the next of the last axis that lie in as many runs, at most.
const MOST_PHASES: u64 = 4;
/// Invocations of a subgroup.
const LANES: u64 = 32;
/// Channels of the least block whose pieces of one part are loaded as such: of less the next tap is too far away.
const WHOLE_PIECES: u64 = 16;
/// Shaders compute places in 32 bits.
const MOST: u64 = 1 << 30;
/// Steps whose pieces are looked up before they are known to exist.
const AHEAD: u64 = 1;

/// One spatial axis of the packed x.
struct Axis {
    packed: u64,
    stride: u64,
    /// Elements from one position to the next, and from one element of the kernel.
    steps: [u64; 2],
    /// Elements that many lie in as many runs, so that neighbouring positions read neighbours. Of blocks of 8 channels a subgroup reads
    /// four elements of the kernel at a time, which are neighbours as it is.
    phases: u64,
}

/// Where the product has x from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What was packed of it.
    Packed,
    /// Itself, so many elements at once into shared memory.
    Staged(u64),
    /// Itself, a piece at once.
    InPlace,
}

/// How operands are packed.
struct Packing {
    source: Source,
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
        let source = match problem.pointwise() {
            Some(run) => Source::Staged(run),
            None if planes == 1 && block >= WHOLE_PIECES && problem.x_in_place(piece) => {
                Source::InPlace
            }
            None => Source::Packed,
        };
        let last = problem.spatial.len().saturating_sub(1);
        let axes: Vec<Axis> = problem
            .spatial
            .iter()
            .enumerate()
            .map(|(index, axis)| {
                let [stride, dilation] = [axis.stride, axis.dilation].map(i64::unsigned_abs);
                // Elements between those that positions and the kernel meet are left out.
                let unit = match (axis.positions, axis.taps) {
                    (1, 1) => 1,
                    (_, 1) => stride,
                    (1, _) => dilation,
                    _ => gcd(stride, dilation),
                };
                let steps = [stride / unit, dilation / unit];
                let reached = (axis.positions - 1) * steps[0] + (axis.taps - 1) * steps[1] + 1;
                let is_in_runs = source == Source::Packed
                    && index == last
                    && block != 8
                    && axis.positions > 1
                    && steps[0] <= MOST_PHASES;
                let phases = if is_in_runs { steps[0] } else { 1 };
                Axis {
                    packed: reached.next_multiple_of(phases),
                    stride: unit,
                    steps,
                    phases,
                }
            })
            .collect();
        let plane = axes
            .iter()
            .fold(1u64, |all, axis| all.saturating_mul(axis.packed));
        let block_pieces = plane.saturating_mul(block / piece);
        let parts = problem.batches() * problem.groups;
        let taps = problem.depth / problem.channels;
        let [block_pieces, x_pieces] = match source {
            Source::InPlace => [block / piece, 0],
            Source::Packed | Source::Staged(_) => {
                [block_pieces, block_pieces.saturating_mul(parts * blocks)]
            }
        };
        Packing {
            source,
            planes,
            block,
            piece,
            blocks,
            axes,
            block_pieces,
            x_pieces,
            steps: (taps * blocks * block).div_ceil(STEP),
        }
    }

    /// Runs that the elements of the last axis lie in.
    fn phases(&self) -> u64 {
        self.axes.last().map_or(1, |axis| axis.phases)
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
/// A decline where the device or the problem does not suit them, or the kernel does not declare what they need.
pub(crate) fn plan(
    problem: &Problem,
    declared: Features,
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
    let needs = match units == DType::BF16 {
        true => Features::COOPMAT_BF16.with(Features::BF16),
        false => Features::FP16,
    };
    if !device.features.has(needs) {
        return Err(Refusal::decline(format!(
            "products of {units} need {}",
            needs.names().join(" and ")
        )));
    }
    // Sums of f16 results may be those of bf16: the host takes no module whose matrices the kernel does not declare.
    if units == DType::BF16 && !declared.has(needs) {
        return Err(Refusal::decline(
            "it is multiplied as bf16, which is for kernels that declare it",
        ));
    }
    // The kernel for f16 alone has searched for the same shape, and found it not to pay.
    let is_other = declared.has(Features::COOPMAT_BF16) && problem.result() == DType::F16;
    if units == DType::F16 && is_other {
        return Err(Refusal::decline(
            "it is multiplied as f16, which is for the kernel that declares nothing else",
        ));
    }
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
    let jobs = shape.jobs(problem, &packing);
    let kernel_loads = shape.kernel_loads(problem, &packing);
    let [x_bytes, kernel_bytes, lookup_bytes] = shape.packed_bytes(problem, &packing);
    let counts = [x_bytes, kernel_bytes + lookup_bytes, jobs];
    if counts
        .iter()
        .any(|count| *count >= MOST.min(device.max_buffer_range))
    {
        return Err(too_large());
    }

    let mut plan = Plan::default();
    let x = match packing.source {
        Source::Packed => scratch(&mut plan, x_bytes),
        Source::Staged(_) | Source::InPlace => BufArg::input(0),
    };
    // Both depend on the kernel's tensor alone, which may keep them.
    let both = scratch(&mut plan, kernel_bytes + lookup_bytes);
    let kernel = both.range(0, kernel_bytes);
    let places = both.range(kernel_bytes, lookup_bytes);
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
        ("PHASES", packing.phases()),
        ("WHOLE", packing.is_whole(problem).into()),
        ("IN_PLACE", (packing.source == Source::InPlace).into()),
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
    let mut args = vec![BufArg::input(0), x];
    args.extend(counts);
    if packing.source != Source::Packed {
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
        let mut pieces = step("matrix_x.comp", args, groups)?;
        if problem.x_along_channels(packing.piece) {
            pieces.defines.push(number("TOGETHER", 1u32));
        }
        pieces.add_to(&mut plan);
    }
    let args = vec![BufArg::input(1), kernel, places];
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
    derive(&mut plan, both, BufArg::input(1));
    if let (Some(counts), Source::Staged(_)) = (counts, packing.source) {
        // What packs x would have done it, and what packs the kernel may be left out.
        let clear = Step {
            file: "matrix_counts.comp",
            args: vec![counts],
            groups: [1; 3],
            ..Step::default()
        };
        clear.add_to(&mut plan);
    }
    let mut args = vec![read(x), read(kernel), read(places), to];
    args.extend(counts);
    let file = match (packing.source, planes) {
        (Source::Staged(_), _) => "pointwise.comp",
        (_, 1) => "product.comp",
        (_, _) => "product_parts.comp",
    };
    let mut product = step(file, args, jobs)?;
    if file == "product.comp" {
        product
            .defines
            .push(number("WHOLE_PIECES", packing.block >= WHOLE_PIECES));
        let many = shape.are_many(problem, &packing, device);
        product.defines.push(number("MANY", many));
    }
    if let Source::Staged(run) = packing.source {
        let vectors = [["uvec2", "uvec4"], ["vec2", "vec4"]][usize::from(planes > 1)];
        let is_long = run * problem.dtype.size() == 16;
        product.defines.push(number("LOADED", run));
        product
            .defines
            .push(define("LOADED_TYPE", vectors[usize::from(is_long)]));
    }
    let run = told::run(problem, splits, 2 * shape.tile[0]);
    product.defines.extend(store(problem, splits, run));
    product.defines.push(number("WARPS_M", shape.warps[0]));
    product.defines.push(number("WARPS_N", shape.warps[1]));
    product
        .defines
        .push(number("BF16", u64::from(units == DType::BF16)));
    product.subgroup_size = LANES as u32;
    finish(problem, splits, run, &mut product);
    convert_f16(&mut product, device);
    product.add_to(&mut plan);
    sum_splits(&mut plan, problem, (to, splits), counts, device)?;
    if let Some(counts) = counts {
        anew::add(&mut plan, plain(problem, device)?, counts);
    }
    Ok(plan)
}
