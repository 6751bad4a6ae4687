//! The closure kernel pack: reductions by what an expression makes of an accumulator and one element after the other, and rows
//! that an expression reduces. It never touches a device.
//!
//! No law holds of an expression that would allow another order, so one invocation makes one result. Rows are reduced by ops of
//! which one does, by many.

mod plan;
mod rows;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{Description, Offers, Plan, Refusal, Request, Row, Source, pack};
use nx_vulkan_pack_kit::{epilogue, expression, table as kit};

pack! { id: "closure", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("closure.comp", include_str!("../shaders/closure.comp")),
    Source::glsl("rows.comp", include_str!("../shaders/rows.comp")),
    expression::GLSL,
    expression::MIXED,
    epilogue::FUNCTIONS,
];

fn describe() -> Result<Description, String> {
    let kernels = table::rows()?.iter().map(|row| Row {
        id: row.op.clone(),
        op: row.op.clone(),
        inputs: row.takes,
        outputs: row.takes,
        offers: match row.op == "fused_rows" {
            true => Offers::PRECISION,
            false => Offers::NONE,
        },
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let rows = table::rows().map_err(Refusal::Internal)?;
    plan::plan(kit::row(rows, row)?, request)
}
