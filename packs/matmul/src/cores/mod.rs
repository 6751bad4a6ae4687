//! Products on matrix units (`VK_KHR_cooperative_matrix`): operands are packed into fragments first, whatever their layout and
//! type, and a kernel without shared memory multiplies these; another one reads aligned operands where they lie. When which
//! pays, `cost` says.

pub(crate) mod cost;
mod packed;
mod parts;
mod reading;

use crate::{
    problem::{Problem, check_range},
    steps::{Steps, check_push, number},
    table::Rates,
};
use cost::Shape;
use nx_vulkan_abi::{BufArg, DType, Define, DeviceInfo, Features, Plan, Refusal, explain, glsl};
use nx_vulkan_pack_kit::{
    epilogue::{Finish, Run},
    grid, matrix, operand as kit,
    steps::{Step, bytes_of, read, scratch},
};
use packed::pack;
pub(crate) use packed::{Packed, Side};
use reading::Reading;

/// Lanes that hold a fragment.
const LANES: u32 = 32;
/// Rows of a packed tile of A.
const ROWS: u32 = 16;
/// Columns of a packed block of B, which a subgroup owns.
pub(crate) const COLUMNS: u32 = 64;
/// Bytes of a fragment of 16 x 16 elements.
const FRAGMENT: u64 = 512;
/// Bytes of shared memory that a subgroup's sums pass through: 16 rows of 17 vectors.
const PART: u32 = 16 * 17 * 16;
/// The same of four subgroups, where rows are not whole vectors.
const STAGED: u32 = 4 * PART;

/// Invocations of the workgroups that pack operands.
const PACKERS: u32 = 256;

/// Plans products that are large enough, on the units for bf16 or on those for f16 and bytes: modules with bf16 are for
/// kernels that declare it.
pub(crate) fn plan(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    rates: &Rates,
    on_bf16: bool,
) -> Result<Plan, Refusal> {
    let way = Way::of(problem)?;
    way.expect_on(on_bf16)?;
    supports(problem, [way.element, way.sum()], way.depth(), device)?;
    let shape = Shape::of(problem, way, device, rates)?;
    explain(shape.words());
    let mut steps = Steps::of(problem, device)?;
    let packed = [Side::A, Side::B]
        .map(|side| Packed::new(problem, side, way.steps(problem), 1, shape.rows));
    let reading = shape.reading;
    let a = match reading.packs_a() {
        true => pack(&mut steps, problem, Side::A, way, packed[0])?,
        false => problem.a.arg,
    };
    let b = match reading.packs_b() {
        true => pack(&mut steps, problem, Side::B, way, packed[1])?,
        false => problem.b.arg,
    };

    let is_partial = problem.is_partial(shape.splits);
    let result = match is_partial {
        false => BufArg::output(0),
        true => {
            let bytes = problem.partial_bytes(shape.splits);
            check_range("the partial results", bytes, device)?;
            scratch(&mut steps.plan, bytes)
        }
    };
    let dtype = match is_partial {
        false => problem.result(),
        true => way.sum(),
    };
    let finish = problem.finish.as_ref().filter(|_| !is_partial);
    let pack_of_c = 16 / dtype.size() as u32;
    let jobs = shape.jobs(problem);
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("the product has more than 2^32 blocks"))?;
    let is_wide = dtype.size() > 1 && problem.n.is_multiple_of(pack_of_c);
    expect_stage(is_wide, device)?;
    let mut defines = glsl::operand("T", dtype);
    defines.extend(glsl::needs(way.element));
    defines.extend([
        number("ELEMENT_IS_BF16", way.element == DType::BF16),
        number("ELEMENT_IS_S8", way.element == DType::S8),
        number("ELEMENT_IS_U8", way.element == DType::U8),
        number("WARP_M", shape.rows),
        number("PARTS", shape.parts),
        number("WARPS_M", shape.high),
        number("WARPS_N", shape.wide),
        number("BAND", shape.band),
        number("C_WIDE", is_wide),
        number("C_WORDS", dtype.size() == 4),
        number("C_PAIRS", in_pairs(problem, dtype)),
    ]);
    let (file, own) = match reading {
        Reading::Packed => ("cores.comp", vec![]),
        _ => ("cores_direct.comp", reading.defines(problem, way).to_vec()),
    };
    defines.extend(own);
    let [blocks_m, blocks_n] = shape.blocks(problem);
    let mut push = vec![
        problem.m,
        problem.n,
        problem.batches,
        packed[0].batch_step(problem),
        packed[1].batch_step(problem),
        match reading {
            Reading::Packed => packed[0].depth,
            _ => problem.k,
        },
        shape.chunk,
        blocks_m,
        blocks_n,
        bits,
    ];
    if reading != Reading::Packed {
        push.extend(Reading::steps_of(&problem.a));
        push.extend(Reading::steps_of(&problem.b));
    }
    let mut args = vec![read(a), read(b), result];
    if let Some(finish) = finish {
        let run = Run::Columns(if is_wide { pack_of_c } else { 1 });
        add_finish(
            finish,
            run,
            shape.rows,
            (&mut defines, &mut args, &mut push),
        )?;
    }
    let step = Step {
        file,
        defines,
        args,
        push: bytes_of(&push),
        subgroup_size: subgroup(device),
        groups: grid::spread(jobs, device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    if is_partial {
        steps.sum_splits(problem, shape.splits, result)?;
    }
    Ok(steps.plan)
}

/// Has a kernel of `cores.glsl` whose subgroups own so many rows finish its sums, a run at a time. It asks for the epilogue's
/// operands of as many rows at once as there are registers for: each time that it stores between them costs it a wait.
pub(crate) fn add_finish(
    finish: &Finish,
    run: Run,
    rows: u32,
    (defines, args, push): (&mut Vec<Define>, &mut Vec<BufArg>, &mut Vec<u32>),
) -> Result<(), Refusal> {
    const REGISTERS: u32 = 64;
    // A lane has four rows of a tile, and eight columns of each.
    let of_row = finish.words_of_run(run) * if run == Run::Columns(4) { 2 } else { 1 };
    let ahead = REGISTERS / (4 * of_row).max(1);
    defines.push(number("AHEAD", ahead.clamp(1, rows / 16)));
    defines.extend(finish.defines(args.len() as u32, run));
    defines.push(finish.still());
    args.extend(finish.args());
    push.extend(finish.words());
    check_push(push)
}

/// What the operands are multiplied as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    element: DType,
}

impl Way {
    pub(crate) fn of(problem: &Problem) -> Result<Way, Refusal> {
        let types = [problem.a.dtype, problem.b.dtype];
        let narrow = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        let element = match (problem.dtype, types) {
            // Operands convert to the result's type first, whatever they have.
            (result, [a, b])
                if narrow(result) && [a, b].iter().all(|&x| narrow(x) || x == DType::F32) =>
            {
                result
            }
            (DType::F32, [a, b]) if a == b && narrow(a) => a,
            // Sums of 32 bits, which wrap to narrower results.
            (result, [a, b])
                if a == b
                    && matches!(a, DType::S8 | DType::U8)
                    && result.is_integer()
                    && result.size() <= 4 =>
            {
                a
            }
            (result, [a, b]) => {
                return Err(Refusal::decline(format!(
                    "matrix units do not take {a} and {b} for {result}"
                )));
            }
        };
        let way = Way { element };
        match &problem.finish {
            Some(finish) if finish.result.size() > 4 || finish.types.sum != way.sum() => {
                Err(Refusal::decline(format!(
                    "its epilogue takes sums of {} to {}",
                    finish.types.sum, finish.result
                )))
            }
            _ => Ok(way),
        }
    }

    /// Declines what kernels on the units for bf16 leave to the others, and the other way round.
    pub(crate) fn expect_on(&self, bf16: bool) -> Result<(), Refusal> {
        match bf16 == (self.element == DType::BF16) {
            true => Ok(()),
            false => Err(Refusal::decline(format!(
                "it is multiplied as {}",
                self.element
            ))),
        }
    }

    pub(crate) fn element(&self) -> DType {
        self.element
    }

    /// The type that products are summed in.
    pub(crate) fn sum(&self) -> DType {
        self.element.register()
    }

    /// Elements along k that one fragment has.
    pub(super) fn depth(&self) -> u32 {
        32 / self.element.size() as u32
    }

    /// Fragments that the contracted axis has, an even number.
    pub(super) fn steps(&self, problem: &Problem) -> u32 {
        problem.k.div_ceil(2 * self.depth()) * 2
    }
}

/// Whether the device multiplies fragments of `element` and `depth` elements along k, with sums of `sum`.
pub(crate) fn supports(
    problem: &Problem,
    [element, sum]: [DType; 2],
    depth: u32,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    expect_units(problem, element, device)?;
    matrix::expect_known_order(device)?;
    let invocations = grid::invocations(device);
    if invocations < PACKERS {
        return Err(Refusal::decline(format!(
            "operands are packed by {PACKERS} invocations, and the device has {invocations}"
        )));
    }
    expect_fragments([element, sum], depth, device)
}

/// Declines where the driver has no product of such fragments, or subgroups have another number of lanes than they.
pub(crate) fn expect_fragments(
    [element, sum]: [DType; 2],
    depth: u32,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    if !device.multiplies([element, element, sum], [16, 16, depth]) {
        return Err(Refusal::decline(format!(
            "the driver lists no product of {element} with sums of {sum} and 16 x 16 x {depth} elements"
        )));
    }
    let lanes = device.min_subgroup_size..=device.max_subgroup_size;
    if device.subgroup_size != LANES && !lanes.contains(&LANES) {
        return Err(Refusal::decline(format!(
            "subgroups have {} invocations and fragments {LANES} lanes",
            device.subgroup_size
        )));
    }
    Ok(())
}

/// Whether every row of the result begins where a word of two elements does.
pub(crate) fn in_pairs(problem: &Problem, result: DType) -> bool {
    result.size() == 2 && problem.n.is_multiple_of(2)
}

/// Declines where rows of the result have to pass through shared memory and the device has too little.
pub(crate) fn expect_stage(is_wide: bool, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    if is_wide || device.shared_bytes >= STAGED {
        return Ok(());
    }
    Err(Refusal::decline(format!(
        "rows of the result take {STAGED} bytes of shared memory, and the device has {}",
        device.shared_bytes
    )))
}

/// Declines where the device lacks one of these.
pub(crate) fn expect_features(needs: Features, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    let missing = Features(needs.0 & !device.features.0);
    if missing == Features::NONE {
        return Ok(());
    }
    Err(Refusal::decline(format!(
        "the device lacks {}",
        missing.names().join(" and ")
    )))
}

/// Declines where the device has no matrix units, or not the types of `element` and of the operands.
pub(crate) fn expect_units(
    problem: &Problem,
    element: DType,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    let needs = Features::COOPMAT
        .with(Features::MEMORY_MODEL)
        .with(Features::for_dtype(element));
    expect_features(needs, device)?;
    for dtype in [problem.a.dtype, problem.b.dtype] {
        kit::supports("dot", dtype, device)?;
    }
    Ok(())
}

/// What shaders must ask for to get subgroups of [`LANES`].
pub(crate) fn subgroup(device: &DeviceInfo<'_>) -> u32 {
    if device.features.has(Features::SUBGROUP_SIZE_CONTROL) {
        LANES
    } else {
        0
    }
}
