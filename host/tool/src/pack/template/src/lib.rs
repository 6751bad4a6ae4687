//! The kernel pack NAME: `pack.toml` lists its ops, the files in `shaders/` run them, and `plan` brings the two together.
//!
//! A pack answers one question: how would you run this op on this device? It never touches the device itself.

mod largest;
mod map;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{Description, Numerics, Plan, Refusal, Request, Row, Source, pack};
use nx_vulkan_pack_kit::{operand, table as kit};
use table::{Family, TableRow};

pack! { id: "NAME", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

/// Invocations per workgroup: at least this many are allowed on every device. A power of two, for `largest.comp`.
const WORKGROUP: u64 = 128;

/// What the host asks once, after loading: the shaders, and one row for each kernel.
fn describe() -> Result<Description, String> {
    let kernel = |row: &TableRow| Row {
        id: row.op.clone(),
        op: row.op.clone(),
        inputs: row.types,
        outputs: row.types,
        numerics: Numerics::IEEE,
        rank: 100,
        ..Row::default()
    };
    Ok(Description {
        sources: vec![
            Source::glsl("map.comp", include_str!("../shaders/map.comp")),
            Source::glsl("largest.comp", include_str!("../shaders/largest.comp")),
        ],
        kernels: table::rows()?.iter().map(kernel).collect(),
    })
}

/// What the host asks once for each kind of request. It must be pure: the same request gives the same answer.
fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let rows = table::rows().map_err(Refusal::Internal)?;
    let row = kit::row(rows, row)?;
    kit::expect_operands(&row.op, row.operands, request)?;
    let dtype = request.outputs[0].dtype;
    if !row.types.has(dtype) {
        return Err(Refusal::decline(format!("{} gives no {dtype}", row.op)));
    }
    operand::supports(&row.op, dtype, request.device)?;
    operand::within_reach(request)?;
    match row.family {
        Family::Map => map::plan(row, request),
        Family::Largest => largest::plan(request),
    }
}
