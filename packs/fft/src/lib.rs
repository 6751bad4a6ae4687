//! The fft kernel pack: discrete Fourier transforms of any length. It never touches a device.
//!
//! A request becomes lines (rows along an axis, their length and what is kept of them), a line becomes passes over memory,
//! and a pass the stages of a transform that fits a workgroup. A length with a prime factor above 13 is a convolution.

mod code;
mod line;
mod pass;
mod roots;
mod split;
mod step;
mod table;
#[cfg(test)]
mod tests;

use line::Line;
use nx_vulkan_abi::{Description, Plan, Refusal, Request, Source, pack};
use nx_vulkan_pack_kit::table as kit;
use table::Table;

pack! { id: "fft", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl(
        "butterflies.glsl",
        include_str!("../shaders/butterflies.glsl"),
    ),
    Source::glsl("pass.comp", include_str!("../shaders/pass.comp")),
];

fn describe() -> Result<Description, String> {
    let kernels = Table::get()?.kernel.iter().map(table::Kernel::row);
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = kit::row(&Table::get().map_err(Refusal::Internal)?.kernel, row)?;
    kit::expect_types(&kernel.op, &[kernel.takes()], kernel.gives(), request)?;
    let lines = Line::all(kernel, request)?;
    if request.outputs[0].elements() == 0 {
        return Ok(Plan::default());
    }
    if request.inputs[0].elements() == 0 {
        return Err(Refusal::decline("the operand has no elements"));
    }
    pass::plan(&lines, request)
}
