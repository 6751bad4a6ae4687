//! The scan kernel pack: `pack.toml` lists its ops, the shaders walk along lines, and `plan` cuts them up. It never touches
//! a device.
//!
//! Where there are enough lines to fill the device, a workgroup scans its lines from end to end: long ones in registers
//! (`whole`), short ones several at a time. Few long ones are cut into parts: what each amounts to is computed first, then
//! scanned, and then the parts themselves are.

mod plan;
mod table;
#[cfg(test)]
mod tests;
mod whole;

use nx_vulkan_abi::{Description, Plan, Refusal, Request, Row, Source, pack};
use nx_vulkan_pack_kit::{lines, table as kit};
use table::Table;

pack! { id: "scan", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    lines::GLSL,
    Source::glsl("combine.glsl", include_str!("../shaders/combine.glsl")),
    Source::glsl("rows.glsl", include_str!("../shaders/rows.glsl")),
    Source::glsl("rows.comp", include_str!("../shaders/rows.comp")),
    Source::glsl("totals.comp", include_str!("../shaders/totals.comp")),
    Source::glsl("columns.comp", include_str!("../shaders/columns.comp")),
    Source::glsl("scan.comp", include_str!("../shaders/scan.comp")),
];

fn describe() -> Result<Description, String> {
    let kernels = Table::get()?.rows.iter().map(|row| Row {
        id: row.op.id.clone(),
        op: row.op.op.clone(),
        inputs: row.takes,
        outputs: row.takes,
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let rows = &Table::get().map_err(Refusal::Internal)?.rows;
    plan::plan(kit::row(rows, row)?, request)
}
