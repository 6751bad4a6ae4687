//! The matmul kernel pack: it plans `dot` as a skinny, a tiled or a direct product.
//!
//! The ways to run it and the tile shapes are rows of `pack.toml`; the access patterns are the shaders.

mod direct;
mod operand;
mod problem;
mod skinny;
mod steps;
mod table;
mod tiled;

#[cfg(test)]
mod tests;

use nx_vulkan_abi::{Description, Plan, Refusal, Request, Source};
use problem::Problem;
use std::sync::LazyLock;
pub use table::{Method, Table};

nx_vulkan_abi::pack! { id: "matmul", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

static TABLE: LazyLock<Result<Table, String>> =
    LazyLock::new(|| Table::parse(include_str!("../pack.toml")));

/// Shaders and headers, by the name plans call them.
pub const SOURCES: &[Source] = &[
    Source::glsl("product.glsl", include_str!("../shaders/product.glsl")),
    Source::glsl("tile.comp", include_str!("../shaders/tile.comp")),
    Source::glsl("direct.comp", include_str!("../shaders/direct.comp")),
    Source::glsl("skinny.comp", include_str!("../shaders/skinny.comp")),
    Source::glsl("splits.comp", include_str!("../shaders/splits.comp")),
    Source::glsl("gather.comp", include_str!("../shaders/gather.comp")),
];

fn describe() -> Result<Description, String> {
    let table = TABLE.as_ref().map_err(String::clone)?;
    Ok(Description { sources: SOURCES.to_vec(), kernels: table.rows()? })
}

/// The pack's own answer for kernel `row` of its table.
pub fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let table = TABLE.as_ref().map_err(|why| Refusal::Internal(why.clone()))?;
    plan_from(table, row, request)
}

/// The answer the pack would give with another table, which is how tile shapes are compared.
pub fn plan_from(table: &Table, row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = table
        .kernel
        .get(row as usize)
        .ok_or_else(|| Refusal::Internal(format!("the table has no row {row}")))?;
    let problem = Problem::new(request)?;
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    match kernel.method {
        Method::Skinny => skinny::plan(&problem, request.device),
        Method::Tiled => tiled::plan(&problem, request.device, &table.tile),
        Method::Direct => direct::plan(&problem, request.device),
    }
}
