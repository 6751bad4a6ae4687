//! The leapfrog kernel pack: `pack.toml` lists its families, `shaders/` holds one shader that takes their steps and one
//! that adds up their log densities, and `plan` brings them together. It never touches a device.
//!
//! To add a family, add its functions to `shaders/families.glsl`, a row to `pack.toml`, and its host kernel in
//! `host/ops/src/kernels/leapfrog`.

mod problem;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{
    BufArg, DType, DTypeSet, Description, Plan, Refusal, Request, Row, Source, SpecConst, pack,
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, number, read, scratch},
    table as kit,
};
use problem::Problem;
use table::{Family, Table, real};

pack! { id: "leapfrog", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("families.glsl", include_str!("../shaders/families.glsl")),
    Source::glsl("leapfrog.glsl", include_str!("../shaders/leapfrog.glsl")),
    Source::glsl("chain.comp", include_str!("../shaders/chain.comp")),
    Source::glsl("sums.comp", include_str!("../shaders/sums.comp")),
];

/// Invocations of a workgroup that takes steps: few, since every invocation is busy for long and chains are short.
const CHAIN_WORKGROUP: u64 = 64;
/// The most invocations of a workgroup that adds.
const SUM_WORKGROUP: u32 = 256;
/// Terms that an invocation adds before others share the row with it.
const TERMS: u64 = 4;

fn describe() -> Result<Description, String> {
    let floats = DTypeSet::of(&[DType::F32, DType::F64]);
    let kernels = Table::get()?.families.iter().map(|family| Row {
        id: family.op.clone(),
        op: family.op.clone(),
        inputs: floats,
        outputs: floats,
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let families = &Table::get().map_err(Refusal::Internal)?.families;
    let family = kit::row(families, row)?;
    let problem = Problem::new(family, request)?;
    if problem.chains == 0 {
        return Ok(Plan::default());
    }
    let mut plan = Plan::default();
    let terms = if problem.extent == 1 {
        BufArg::output(3)
    } else {
        let elements = problem.chains * problem.steps * problem.extent;
        scratch(&mut plan, elements * problem.dtype.size())
    };
    steps(family, &problem, terms, request, &mut plan);
    if problem.extent > 1 {
        sums(&problem, terms, request, &mut plan);
    }
    Ok(plan)
}

/// Adds the dispatch that takes all steps of all chains.
fn steps(
    family: &Family,
    problem: &Problem,
    terms: BufArg,
    request: &Request<'_>,
    plan: &mut Plan,
) {
    let count = problem.chains * problem.extent;
    let workgroup = CHAIN_WORKGROUP.min(grid::invocations(request.device).into());
    let mut push = vec![count as u32, problem.extent as u32, problem.steps as u32];
    for operand in &problem.operands {
        push.push(operand.at as u32);
        // A negative stride wraps, as sums of positions do.
        push.extend(operand.strides.iter().map(|stride| *stride as u32));
    }
    let inputs = problem.operands.iter().map(|operand| operand.arg);
    let args = inputs.chain((0..3).map(BufArg::output)).chain([terms]);
    let mut defines = family.defines(problem.dtype);
    defines.push(number("WORKGROUP", workgroup));
    let step = Step {
        file: "chain.comp",
        defines,
        groups: grid::along_x(count.div_ceil(workgroup), request.device),
        args: args.collect(),
        push: bytes_of(&push),
        ..Step::default()
    };
    step.add_to(plan);
}

/// Adds the dispatch that adds up the terms of every row.
fn sums(problem: &Problem, terms: BufArg, request: &Request<'_>, plan: &mut Plan) {
    let rows = problem.chains * problem.steps;
    let workgroup = u64::from(grid::threads(request.device, SUM_WORKGROUP));
    let lanes = (problem.extent.div_ceil(TERMS).next_power_of_two()).min(workgroup);
    let mut defines = real(problem.dtype);
    defines.push(number("WORKGROUP", workgroup));
    let step = Step {
        file: "sums.comp",
        defines,
        subgroup_size: 0,
        constants: vec![SpecConst {
            id: 0,
            value: lanes as u32,
        }],
        groups: grid::along_x(rows.div_ceil(workgroup / lanes), request.device),
        args: vec![read(terms), BufArg::output(3)],
        push: bytes_of(&[rows as u32, problem.extent as u32]),
    };
    step.add_to(plan);
}
