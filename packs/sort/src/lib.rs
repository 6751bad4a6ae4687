//! The sort kernel pack: `sort`, `argsort` and the block `Nx.Block.TopK`. It never touches a device.
//!
//! Short lines are sorted in shared memory. From lines of which few elements are wanted, and that are not too short for it, those
//! are chosen tile by tile until what is left is short; other long ones are sorted digit by digit (LSD radix sort), which keeps ties
//! in order.

mod job;
mod long;
mod short;
#[cfg(test)]
mod tests;

use job::Job;
use nx_vulkan_abi::{
    DTypeSet, Description, InputAs, Numerics, Plan, Refusal, Request, Row, Source, pack,
};
use nx_vulkan_pack_kit::{lines, operand, table};

pack! { id: "sort", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    lines::GLSL,
    Source::glsl("keys.glsl", include_str!("../shaders/keys.glsl")),
    Source::glsl("digits.glsl", include_str!("../shaders/digits.glsl")),
    Source::glsl("short.comp", include_str!("../shaders/short.comp")),
    Source::glsl("choose.comp", include_str!("../shaders/choose.comp")),
    Source::glsl("count.comp", include_str!("../shaders/count.comp")),
    Source::glsl("sum.comp", include_str!("../shaders/sum.comp")),
    Source::glsl("rank.comp", include_str!("../shaders/rank.comp")),
    Source::glsl("scatter.comp", include_str!("../shaders/scatter.comp")),
];

/// What a row gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Values,
    Indices,
    Both,
}

/// Kernels, their ops, and what they give; the index is the row number of the ABI.
const ROWS: [(&str, &str, Gives); 3] = [
    ("sort", "sort", Gives::Values),
    ("argsort", "argsort", Gives::Indices),
    ("top_k", "Nx.Block.TopK", Gives::Both),
];

fn describe() -> Result<Description, String> {
    let kernels = ROWS.iter().map(|(id, op, _)| Row {
        id: (*id).into(),
        op: (*op).into(),
        inputs: DTypeSet::REAL,
        outputs: DTypeSet::REAL,
        numerics: Numerics::EXACT,
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let (_, op, gives) = table::row(&ROWS, row)?;
    let outputs = if *gives == Gives::Both { 2 } else { 1 };
    if request.inputs.len() != 1 || request.outputs.len() != outputs {
        return Err(Refusal::BadRequest(format!(
            "{op} takes 1 operand and gives {outputs} results"
        )));
    }
    let types = request.inputs.iter().chain(request.outputs);
    if let Some(other) = types
        .map(|x| x.dtype)
        .find(|dtype| !DTypeSet::REAL.has(*dtype))
    {
        return Err(Refusal::decline(format!("{op} does not take {other}")));
    }
    let job = Job::new(*gives, request)?;
    if request.outputs.iter().all(|out| out.elements() == 0) {
        return Ok(Plan::default());
    }
    operand::supports(op, job.raw.1, request.device)?;
    if let Some((_, dtype)) = job.indices {
        operand::supports(op, dtype, request.device)?;
    }
    operand::within_reach(request)?;
    let x = &request.inputs[0];
    let in_order = x.is_contiguous() || job.is_read_in_order();
    if short::fits(&job, request.device) && !(in_order && short::wants_few(&job, request.device)) {
        return short::plan(&job, request);
    }
    if !in_order {
        return Err(Refusal::InputsAs(vec![InputAs::new(0, x.dtype)]));
    }
    match short::chosen(&job, request)? {
        Some(plan) => Ok(plan),
        None => long::plan(&job, request),
    }
}
