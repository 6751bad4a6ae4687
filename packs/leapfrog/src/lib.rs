//! The leapfrog kernel pack: `pack.toml` lists its families, `shaders/` holds one shader that takes their steps and one
//! that adds up their log densities, and `plan` brings them together. It never touches a device.
//!
//! To add a family, add a row to `pack.toml`, and its host kernel in `host/ops/src/kernels/leapfrog`.

mod problem;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{
    Access, BufArg, DType, DTypeSet, Define, Description, Dispatch, Features, Numerics, Plan,
    Refusal, Request, Row, ShaderVariant, Source, SpecConst, glsl::define, pack,
};
use problem::Problem;
use table::{Family, Table, real};

pack! { id: "leapfrog", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("functions.glsl", include_str!("../shaders/functions.glsl")),
    Source::glsl("chain.comp", include_str!("../shaders/chain.comp")),
    Source::glsl("sums.comp", include_str!("../shaders/sums.comp")),
];

/// Invocations of a workgroup that takes steps: few, since every invocation is busy for long and chains are short.
const CHAIN_WORKGROUP: u64 = 64;
/// The most invocations of a workgroup that adds.
const SUM_WORKGROUP: u64 = 256;
/// Terms that an invocation adds before others share the row with it.
const TERMS: u64 = 4;

fn describe() -> Result<Description, String> {
    let floats = DTypeSet::of(&[DType::F32, DType::F64]);
    let kernels = Table::get()?.families.iter().map(|family| Row {
        id: family.op.clone(),
        op: family.op.clone(),
        inputs: floats,
        outputs: floats,
        needs: Features::NONE,
        numerics: Numerics::IEEE,
        rank: 128,
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let families = &Table::get().map_err(Refusal::Internal)?.families;
    let family = families
        .get(row as usize)
        .ok_or_else(|| Refusal::Internal(format!("no row {row} in pack.toml")))?;
    let problem = Problem::new(family, request)?;
    if problem.chains == 0 {
        return Ok(Plan::default());
    }
    let mut plan = Plan::default();
    let terms = if problem.extent == 1 {
        BufArg::output(3)
    } else {
        let elements = problem.chains * problem.steps * problem.extent;
        plan.scratch.push(elements * problem.dtype.size());
        BufArg::scratch(0, Access::WRITE)
    };
    steps(family, &problem, terms, request, &mut plan);
    if problem.extent > 1 {
        sums(&problem, request, &mut plan);
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
    let workgroup = CHAIN_WORKGROUP.min(invocations(request));
    let mut push = vec![count as u32, problem.extent as u32, problem.steps as u32];
    for operand in &problem.operands {
        push.push(operand.at as u32);
        // A negative stride wraps, as sums of positions do.
        push.extend(operand.strides.iter().map(|stride| *stride as u32));
    }
    let inputs = problem.operands.iter().map(|operand| operand.arg);
    let args = inputs.chain((0..3).map(BufArg::output)).chain([terms]);
    add(
        plan,
        "chain.comp",
        family.defines(problem.dtype),
        workgroup,
        Dispatch {
            groups: along_x(count.div_ceil(workgroup), request),
            args: args.collect(),
            push: push.iter().flat_map(|word| word.to_le_bytes()).collect(),
            ..Dispatch::default()
        },
    );
}

/// Adds the dispatch that adds up the terms of every row.
fn sums(problem: &Problem, request: &Request<'_>, plan: &mut Plan) {
    let rows = problem.chains * problem.steps;
    let workgroup = 1 << invocations(request).min(SUM_WORKGROUP).ilog2();
    let lanes = (problem.extent.div_ceil(TERMS).next_power_of_two()).min(workgroup);
    let push = [rows as u32, problem.extent as u32];
    add(
        plan,
        "sums.comp",
        real(problem.dtype),
        workgroup,
        Dispatch {
            groups: along_x(rows.div_ceil(workgroup / lanes), request),
            spec: [SpecConst {
                id: 0,
                value: lanes as u32,
            }]
            .into_iter()
            .collect(),
            args: [BufArg::scratch(0, Access::READ), BufArg::output(3)]
                .into_iter()
                .collect(),
            push: push.iter().flat_map(|word| word.to_le_bytes()).collect(),
            ..Dispatch::default()
        },
    );
}

fn add(plan: &mut Plan, file: &str, mut defines: Vec<Define>, workgroup: u64, dispatch: Dispatch) {
    defines.push(define("WORKGROUP", workgroup.to_string()));
    plan.shaders.push(ShaderVariant {
        file: file.into(),
        defines: defines.into(),
        bindings: dispatch.args.len() as u32,
        push_bytes: dispatch.push.len() as u32,
        ..ShaderVariant::default()
    });
    plan.steps.push(Dispatch {
        shader: plan.shaders.len() as u32 - 1,
        ..dispatch
    });
}

/// The most invocations of a workgroup.
fn invocations(request: &Request<'_>) -> u64 {
    let device = request.device;
    u64::from(
        device
            .max_invocations
            .min(device.max_workgroup_size[0])
            .max(1),
    )
}

/// Workgroups along x, as many as the device takes; shaders walk on from there.
fn along_x(groups: u64, request: &Request<'_>) -> [u32; 3] {
    [
        groups.min(u64::from(request.device.max_groups[0])) as u32,
        1,
        1,
    ]
}
