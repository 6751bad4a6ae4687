//! The window kernel pack: `pack.toml` lists its ops, the files in `shaders/` hold one shader for each way of walking
//! through memory, and `plan` brings the two together. It never touches a device.

mod conv;
mod finish;
mod fold;
mod matrix;
mod problem;
mod runs;
mod scatter;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{Description, Plan, Refusal, Request, Source, pack};
use nx_vulkan_pack_kit::{epilogue, table as kit};
use table::Way;

pack! { id: "window", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("window.glsl", include_str!("../shaders/window.glsl")),
    Source::glsl("window.comp", include_str!("../shaders/window.comp")),
    Source::glsl("runs.comp", include_str!("../shaders/runs.comp")),
    Source::glsl("fill.comp", include_str!("../shaders/fill.comp")),
    Source::glsl("choose.comp", include_str!("../shaders/choose.comp")),
    Source::glsl("scatter.comp", include_str!("../shaders/scatter.comp")),
    Source::glsl("reaches.glsl", include_str!("../shaders/reaches.glsl")),
    Source::glsl("conv.glsl", include_str!("../shaders/conv.glsl")),
    Source::glsl("direct.comp", include_str!("../shaders/direct.comp")),
    Source::glsl("plane.comp", include_str!("../shaders/plane.comp")),
    Source::glsl("tile.comp", include_str!("../shaders/tile.comp")),
    Source::glsl("matrix.glsl", include_str!("../shaders/matrix.glsl")),
    Source::glsl("matrix_x.glsl", include_str!("../shaders/matrix_x.glsl")),
    Source::glsl(
        "matrix_lines.comp",
        include_str!("../shaders/matrix_lines.comp"),
    ),
    Source::glsl("matrix_x.comp", include_str!("../shaders/matrix_x.comp")),
    Source::glsl(
        "matrix_kernel.comp",
        include_str!("../shaders/matrix_kernel.comp"),
    ),
    Source::glsl(
        "matrix_kernel.glsl",
        include_str!("../shaders/matrix_kernel.glsl"),
    ),
    Source::glsl(
        "matrix_counts.comp",
        include_str!("../shaders/matrix_counts.comp"),
    ),
    Source::glsl(
        "matrix_taps.comp",
        include_str!("../shaders/matrix_taps.comp"),
    ),
    Source::glsl("fragment.glsl", include_str!("../shaders/fragment.glsl")),
    Source::glsl("parts.glsl", include_str!("../shaders/parts.glsl")),
    Source::glsl("unfit.glsl", include_str!("../shaders/unfit.glsl")),
    Source::glsl("product.glsl", include_str!("../shaders/product.glsl")),
    Source::glsl("product.comp", include_str!("../shaders/product.comp")),
    Source::glsl(
        "product_parts.comp",
        include_str!("../shaders/product_parts.comp"),
    ),
    Source::glsl("pointwise.comp", include_str!("../shaders/pointwise.comp")),
    Source::glsl("splits.comp", include_str!("../shaders/splits.comp")),
    Source::glsl("finish.glsl", include_str!("../shaders/finish.glsl")),
    epilogue::GLSL,
    epilogue::FUNCTIONS,
];

fn describe() -> Result<Description, String> {
    let rows = table::rows()?;
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: rows.iter().map(table::TableRow::described).collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let row = kit::row(table::rows().map_err(Refusal::Internal)?, row)?;
    match &row.way {
        Way::Fold(op) => fold::plan(op, row.takes, request),
        Way::Scatter(op) => scatter::plan(op, row.takes, request),
        Way::Conv(method) => conv::plan((*method, row.needs), [row.takes, row.gives], request),
    }
}
