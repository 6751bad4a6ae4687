//! `attention` on matrix units, without a score in memory: `attention.comp` reads fragments of Q, K and V where they lie, and what
//! one product leaves in registers is what the other one takes from there.

pub(crate) mod problem;
pub(crate) mod shape;

use crate::{
    cores::{expect_features, expect_fragments, subgroup},
    steps::number,
};
use nx_vulkan_abi::{BufArg, DType, DeviceInfo, Features, Plan, Refusal, Request, glsl};
use nx_vulkan_pack_kit::{
    epilogue::Run,
    grid, matrix,
    steps::{Step, bytes_of},
};
use problem::Problem;
use shape::Shape;

/// Scores of neighbouring keys that a lane has.
const RUN: u32 = 4;
/// Bindings of the operands and the result.
const OWN: u32 = 4;

/// Plans it on the units for bf16, or on those for f16: modules with bf16 are for kernels that declare it.
pub(crate) fn plan(request: &Request<'_>, on_bf16: bool) -> Result<Plan, Refusal> {
    let problem = Problem::of(request)?;
    let device = request.device;
    supports(&problem, device, on_bf16)?;
    if problem.is_empty() {
        return Ok(Plan::default());
    }
    if problem.keys == 0 || problem.depth == 0 {
        return Err(Refusal::decline("sums of nothing"));
    }
    let shape = Shape::of(&problem, device)?;
    let blocks = problem.rows.div_ceil(shape.rows());
    let jobs = u64::from(problem.batches) * u64::from(blocks);
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("the attention has more than 2^32 blocks"))?;
    let mut push = vec![
        problem.rows,
        problem.keys,
        problem.depth / problem::WIDTH,
        problem.width / problem::WIDTH,
        blocks,
        bits,
        shape.chunk,
    ];
    push.extend(problem.words());
    let mut defines = glsl::needs(problem.dtype);
    defines.extend([
        number("ELEMENT_IS_BF16", problem.dtype == DType::BF16),
        number("ROW_TILES", shape.row_tiles),
        number("KEY_TILES", shape::KEY_TILES),
        number("SIDES", shape.sides),
        number("PARTS", shape.parts),
        number("D_PAIRS", problem.pairs()),
        number("V_BLOCKS", problem.blocks()),
        number("WHOLE_DEPTH", problem.depth.is_multiple_of(problem::PAIR)),
        number("WHOLE_WIDTH", problem.width.is_multiple_of(problem::BLOCK)),
    ]);
    let mut args: Vec<BufArg> = (0..OWN - 1).map(BufArg::input).collect();
    args.push(BufArg::output(0));
    if let Some(finish) = &problem.finish {
        let run = match problem.keys.is_multiple_of(RUN) {
            true => Run::Columns(RUN),
            false => Run::ONE,
        };
        defines.extend(finish.defines(OWN, run));
        defines.push(finish.still());
        args.extend(finish.args());
        push.extend(finish.words());
    }
    if push.len() > device.push_bytes as usize / 4 {
        return Err(Refusal::decline(format!(
            "it has {} words of push constants, and the device takes {} bytes",
            push.len(),
            device.push_bytes
        )));
    }
    let mut plan = Plan::default();
    let step = Step {
        file: "attention.comp",
        defines,
        args,
        push: bytes_of(&push),
        subgroup_size: subgroup(device),
        groups: grid::spread(jobs, device)?,
        ..Step::default()
    };
    step.add_to(&mut plan);
    Ok(plan)
}

/// Declines what the units, or the device, do not take.
fn supports(problem: &Problem, device: &DeviceInfo<'_>, on_bf16: bool) -> Result<(), Refusal> {
    let element = problem.dtype;
    if on_bf16 != (element == DType::BF16) {
        return Err(Refusal::decline(format!("it is multiplied as {element}")));
    }
    let needs = Features::COOPMAT
        .with(Features::MEMORY_MODEL)
        .with(Features::SUBGROUP_SHUFFLE)
        .with(Features::for_dtype(element));
    expect_features(needs, device)?;
    matrix::expect_known_order(device)?;
    expect_fragments([element, DType::F32], 16, device)
}
