//! The reduce kernel pack: `pack.toml` lists its ops, the files in `shaders/` hold one shader for each way of walking
//! through memory, and `plan` brings the two together. It never touches a device.
//!
//! A request becomes a `Problem` (which axes stay, which go), a problem becomes passes (rows of adjacent elements, or
//! columns across them; what the first pass leaves is merged by more columns), and a pass becomes dispatches.

mod emit;
mod pass;
mod problem;
mod table;
#[cfg(test)]
mod tests;
mod variant;
mod window;

use emit::Emitter;
use nx_vulkan_abi::{Description, Numerics, Plan, Refusal, Request, Row, Source, pack};
use nx_vulkan_pack_kit::table as kit;
use pass::Pass;
use problem::Problem;
use table::Table;
use variant::Typed;

pack! { id: "reduce", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("state.glsl", include_str!("../shaders/state.glsl")),
    Source::glsl("exchange.glsl", include_str!("../shaders/exchange.glsl")),
    Source::glsl("space.glsl", include_str!("../shaders/space.glsl")),
    Source::glsl("rows.comp", include_str!("../shaders/rows.comp")),
    Source::glsl("columns.comp", include_str!("../shaders/columns.comp")),
    Source::glsl("empty.comp", include_str!("../shaders/empty.comp")),
];

fn describe() -> Result<Description, String> {
    let kernels = Table::get()?.rows.iter().map(|row| Row {
        id: row.op.op.clone(),
        op: row.op.op.clone(),
        inputs: row.takes,
        outputs: row.gives,
        numerics: if row.op.exact {
            Numerics::EXACT
        } else {
            Numerics::IEEE
        },
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let rows = &Table::get().map_err(Refusal::Internal)?.rows;
    let row = kit::row(rows, row)?;
    row.check(request)?;
    let problem = Problem::new(row, request)?;
    if problem.results() == 0 {
        return Ok(Plan::default());
    }
    let typed = Typed::new(row, request)?;
    let tuning = typed.tuning(request);
    let mut emitter = Emitter::new(request, &typed, tuning);
    if problem.extent() == 0 && row.picks() {
        return Err(Refusal::BadRequest(format!(
            "{} has no elements to choose from",
            row.op.op
        )));
    }
    if problem.extent() == 0 {
        emitter.empty(problem.results());
        return Ok(emitter.finish());
    }
    let mut pass = Pass::first(&problem, &tuning);
    let mut states = emitter.first(&mut pass)?;
    while let Some(from) = states {
        pass = pass.next(&tuning);
        states = emitter.next(&pass, from)?;
    }
    Ok(emitter.finish())
}
