//! Products on matrix units (`VK_KHR_cooperative_matrix`) of any driver: operands are staged through shared memory, where the
//! driver itself loads fragments from, so that nothing has to be known of the order in which lanes hold them. Where it is
//! known, `cores` is faster.

mod cost;
mod tile;

use crate::{
    cores::{Way, expect_units},
    operand::Operand,
    problem::{Problem, check_range},
    steps::{Steps, check_push, number},
    table::Rates,
};
use cost::Shape;
use nx_vulkan_abi::{BufArg, DType, Define, DeviceInfo, Features, Plan, Refusal, explain, glsl};
use nx_vulkan_pack_kit::{
    epilogue::Run,
    grid,
    steps::{Step, bytes_of, read, scratch},
};

/// Plans products that are large enough, on the units for bf16 or on those for f16 and bytes: modules with bf16 are for
/// kernels that declare it.
pub(crate) fn plan(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    rates: &Rates,
    on_bf16: bool,
) -> Result<Plan, Refusal> {
    let way = Way::of(problem)?;
    way.expect_on(on_bf16)?;
    expect_units(problem, way.element(), device)?;
    let shape = Shape::of(problem, way, device, rates)?;
    let tile = &shape.tile;
    let jobs = shape.jobs(problem);
    explain(format!(
        "fragments of {} in tiles of {} x {} and steps of {}, {jobs} workgroups of {} subgroups of {}, {} parts of {} along k",
        tile.fragment.map(|extent| extent.to_string()).join(" x "),
        tile.block[0],
        tile.block[1],
        tile.depth,
        tile.subgroups(),
        tile.lanes,
        shape.splits,
        shape.chunk,
    ));

    let mut steps = Steps::of(problem, device)?;
    let is_partial = problem.is_partial(shape.splits);
    let (result, dtype) = match is_partial {
        false => (BufArg::output(0), problem.result()),
        true => {
            let bytes = problem.partial_bytes(shape.splits);
            check_range("the partial results", bytes, device)?;
            (scratch(&mut steps.plan, bytes), way.sum())
        }
    };
    let finish = problem.finish.as_ref().filter(|_| !is_partial);
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("the product has more than 2^32 blocks"))?;
    let is_wide = problem.n.is_multiple_of(4);
    let storage = glsl::of(dtype).map_or("float", |glsl| glsl.storage);
    let mut defines = glsl::operand("T", dtype);
    defines.extend(glsl::operand("D", way.element()));
    defines.extend(glsl::needs(DType::F16));
    defines.extend(tile.defines());
    defines.extend([
        number("ELEMENT_IS_BF16", way.element() == DType::BF16),
        number("ELEMENT_IS_S8", way.element() == DType::S8),
        number("ELEMENT_IS_U8", way.element() == DType::U8),
        number("BAND", 8u32),
        number("C_WIDE", is_wide),
        glsl::define("C_PACK", glsl::vector(storage, 4).unwrap_or(storage)),
    ]);
    for (name, operand, along_k) in [
        ("A", &problem.a, tile.along_k[0]),
        ("B", &problem.b, tile.along_k[1]),
    ] {
        defines.extend(side(name, operand, along_k, way));
    }
    let mut push = vec![problem.m, problem.n, problem.k, problem.batches];
    push.extend(problem.a.words());
    push.extend(problem.b.words());
    push.push(shape.chunk);
    push.extend(shape.blocks(problem));
    push.push(bits);
    let mut args = vec![problem.a.arg, problem.b.arg, result];
    if let Some(finish) = finish {
        defines
            .extend(finish.defines(args.len() as u32, Run::Columns(if is_wide { 4 } else { 1 })));
        args.extend(finish.args());
        push.extend(finish.words());
        check_push(&push)?;
    }
    let is_chosen = device.features.has(Features::SUBGROUP_SIZE_CONTROL);
    let step = Step {
        file: "matrix.comp",
        defines,
        args,
        push: bytes_of(&push),
        subgroup_size: if is_chosen { tile.lanes } else { 0 },
        groups: grid::spread(jobs, device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    if is_partial {
        steps.sum_splits(problem, shape.splits, read(result))?;
    }
    Ok(steps.plan)
}

/// Whether items of 16 bytes in shared memory are whole loads of the operand.
fn is_wide(operand: &Operand, along_k: bool, way: Way) -> bool {
    operand.is_along_k() == along_k && operand.is_wide(16 / way.element().size() as u32)
}

/// What the shader is told of one operand.
fn side(name: &str, operand: &Operand, along_k: bool, way: Way) -> Vec<Define> {
    let storage = glsl::of(operand.dtype).map_or("float", |glsl| glsl.storage);
    let four = glsl::vector(storage, 4).unwrap_or(storage);
    let mut defines = glsl::operand(name, operand.dtype);
    defines.extend([
        number(&format!("{name}_ALONG_K"), along_k),
        number(&format!("{name}_WIDE"), is_wide(operand, along_k, way)),
        number(&format!("{name}_RAW"), operand.dtype == way.element()),
        glsl::define(format!("{name}_FOUR"), four),
    ]);
    defines
}
