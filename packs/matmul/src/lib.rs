//! The matmul kernel pack: `pack.toml` lists the ways to run `dot` and the tile shapes, the files in `shaders/` hold one
//! shader for each way of walking through memory, and `plan` brings the two together. It never touches a device.
//!
//! A request becomes a `Problem` (batch x m x n x k, with one stride per direction and operand), and a problem becomes
//! dispatches: copies of operands whose axes do not collapse, the product, and the sum of its splits.

mod attention;
mod cores;
mod direct;
mod matrix;
mod operand;
mod problem;
mod short;
mod skinny;
mod split;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod tiled;
mod words;

use nx_vulkan_abi::{Description, DeviceKind, Plan, Precision, Refusal, Request, Source, pack};
use nx_vulkan_pack_kit::{epilogue, table as kit};
use problem::Problem;
pub use table::{Method, Table};

pack! { id: "matmul", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const MATRIX_SIDE: &str = include_str!("../shaders/matrix_side.glsl");
const PLAIN_SIDE: &str = include_str!("../shaders/plain_side.glsl");

/// Shaders and headers, by the names that plans call them.
pub const SOURCES: &[Source] = &[
    Source::glsl("product.glsl", include_str!("../shaders/product.glsl")),
    Source::glsl("short.comp", include_str!("../shaders/short.comp")),
    Source::glsl("tile.comp", include_str!("../shaders/tile.comp")),
    Source::glsl("direct.comp", include_str!("../shaders/direct.comp")),
    Source::glsl("skinny.comp", include_str!("../shaders/skinny.comp")),
    Source::glsl("fragments.glsl", include_str!("../shaders/fragments.glsl")),
    Source::glsl("attention.comp", include_str!("../shaders/attention.comp")),
    Source::glsl("cores.glsl", include_str!("../shaders/cores.glsl")),
    Source::glsl("cores.comp", include_str!("../shaders/cores.comp")),
    Source::glsl(
        "cores_direct.comp",
        include_str!("../shaders/cores_direct.comp"),
    ),
    Source::glsl(
        "cores_pack.comp",
        include_str!("../shaders/cores_pack.comp"),
    ),
    Source::glsl("matrix.comp", include_str!("../shaders/matrix.comp")),
    // A name that a shader includes twice is read once.
    Source::glsl("matrix_a.glsl", MATRIX_SIDE),
    Source::glsl("matrix_b.glsl", MATRIX_SIDE),
    Source::glsl("plainly.glsl", include_str!("../shaders/plainly.glsl")),
    Source::glsl("plain_a.glsl", PLAIN_SIDE),
    Source::glsl("plain_b.glsl", PLAIN_SIDE),
    Source::glsl("split.glsl", include_str!("../shaders/split.glsl")),
    Source::glsl("split.comp", include_str!("../shaders/split.comp")),
    Source::glsl(
        "split_pack.comp",
        include_str!("../shaders/split_pack.comp"),
    ),
    Source::glsl("splits.comp", include_str!("../shaders/splits.comp")),
    Source::glsl("gather.comp", include_str!("../shaders/gather.comp")),
    Source::glsl("zeros.comp", include_str!("../shaders/zeros.comp")),
    epilogue::GLSL,
    epilogue::FUNCTIONS,
];

fn describe() -> Result<Description, String> {
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: Table::get()?.rows()?,
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    plan_from(Table::get().map_err(Refusal::Internal)?, row, request)
}

/// The answer the pack would give with another table, which is how tile shapes are compared.
pub fn plan_from(table: &Table, row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = kit::row(&table.kernel, row)?;
    let on_bf16 = kernel.needs.iter().any(|name| name == "coopmat_bf16");
    if kernel.method == Method::Attention {
        return attention::plan(request, on_bf16);
    }
    let problem = match kernel.method {
        Method::Cores | Method::Matrix => Problem::of_any_types(request)?,
        _ => Problem::new(request)?,
    };
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    if problem.k == 0 && problem.finish.is_some() {
        return Err(Refusal::decline("an epilogue of sums of nothing"));
    }
    if problem.k == 0 {
        return steps::zeros(&problem, request.device);
    }
    // A CPU copies an operand in less time than it takes to convert an element for each use.
    if request.device.kind == DeviceKind::CPU && kernel.method.reads_again() {
        problem.of_one_type()?;
    }
    let rates = table.rates(request.device.name.as_str());
    match kernel.method {
        Method::Cores => cores::plan(&problem, request.device, rates, on_bf16),
        Method::Matrix => matrix::plan(&problem, request.device, rates, on_bf16),
        Method::Split => {
            let exact = match Precision::of(request) {
                _ if kernel.relaxed => split::Exact::Relaxed,
                Precision::High => split::Exact::High,
                Precision::Default | Precision::Highest => split::Exact::Full,
            };
            split::plan(&problem, request.device, table, exact)
        }
        Method::Attention => attention::plan(request, on_bf16),
        Method::Short => short::plan(&problem, request.device),
        Method::Skinny => skinny::plan(&problem, request.device),
        Method::Tiled => tiled::plan(&problem, request.device, &table.tile),
        Method::Cpu if request.device.kind != DeviceKind::CPU => {
            Err(Refusal::decline("the device is not a CPU"))
        }
        Method::Direct | Method::Cpu => direct::plan(&problem, request.device),
    }
}
