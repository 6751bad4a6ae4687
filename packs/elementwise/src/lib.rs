//! The elementwise kernel pack: `pack.toml` lists its ops, the files in `shaders/` hold one shader for each way of
//! walking through memory, and `plan` brings the two together. It never touches a device.
//!
//! To add an op, add a row to `pack.toml`; if its expression needs a function, write it in `shaders/functions.glsl`.

mod copy;
mod create;
mod dispatch;
mod fused;
mod map;
mod space;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{DTypeSet, Description, Offers, Plan, Refusal, Request, Row, Source, pack};
use nx_vulkan_pack_kit::{epilogue, expression, table as kit};
use table::{Family, Table};

pack! { id: "elementwise", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("operands.glsl", include_str!("../shaders/operands.glsl")),
    Source::glsl("lanes.glsl", include_str!("../shaders/lanes.glsl")),
    Source::glsl("places.glsl", include_str!("../shaders/places.glsl")),
    Source::glsl("reads.glsl", include_str!("../shaders/reads.glsl")),
    expression::GLSL,
    epilogue::FUNCTIONS,
    Source::glsl("complex.glsl", include_str!("../shaders/complex.glsl")),
    expression::MIXED,
    Source::glsl(
        "contiguous.comp",
        include_str!("../shaders/contiguous.comp"),
    ),
    Source::glsl("strided.comp", include_str!("../shaders/strided.comp")),
    Source::glsl("transpose.comp", include_str!("../shaders/transpose.comp")),
    Source::glsl("create.comp", include_str!("../shaders/create.comp")),
    Source::glsl("fused.comp", include_str!("../shaders/fused.comp")),
];

fn describe() -> Result<Description, String> {
    let kernels = Table::get()?.rows.iter().map(|row| Row {
        id: row.op.op.clone(),
        op: row.op.op.clone(),
        inputs: DTypeSet(row.takes.iter().fold(0, |all, takes| all | takes.0)),
        outputs: row.gives,
        offers: match row.family {
            Family::Fused => Offers::PRECISION,
            Family::Map | Family::Cast | Family::Create => Offers::NONE,
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
    if row.family != Family::Fused {
        kit::expect_types(&row.op.op, &row.takes, row.gives, request)?;
    }
    match row.family {
        Family::Cast if request.inputs[0].dtype == request.outputs[0].dtype => copy::plan(request),
        Family::Cast => map::convert(&row.op, request),
        Family::Map => map::plan(&row.op, request),
        Family::Create => create::plan(&row.op, request),
        Family::Fused => fused::plan(request),
    }
}
