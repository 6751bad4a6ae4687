//! Updates sorted by the place that they go to, and their sums.

use crate::{
    emit::Words,
    scatter::Scatter,
    walk::{LIMIT, Side, component_defines},
};
use nx_vulkan_abi::{Access, BufArg, DeviceInfo, Plan, Refusal, glsl, layout};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, number, read, scratch},
};

const WORKGROUP: u32 = 256;
/// Values of a digit.
const DIGITS: u64 = 256;
/// Updates that a workgroup sorts.
const BLOCK: u64 = 2048;
/// Updates of one place that a thread sums.
const CHUNK: u64 = 64;

/// The same updates, sorted by their numbers, which are below `places`; equal ones keep their order.
pub(crate) fn by_number(
    rows: BufArg,
    count: u64,
    places: u64,
    plan: &mut Plan,
    device: &DeviceInfo<'_>,
) -> Result<BufArg, Refusal> {
    let bits = u64::BITS - (places - 1).leading_zeros();
    let blocks = count.div_ceil(BLOCK);
    let workgroup = grid::threads(device, WORKGROUP);
    let mut from = rows;
    if bits == 0 || count == 1 {
        return Ok(read(from));
    }
    let mut to = scratch(plan, count * 8);
    let (counts, totals) = (
        scratch(plan, blocks * DIGITS * 4),
        scratch(plan, DIGITS * 4),
    );
    let both = BufArg {
        access: Access::READ_WRITE,
        ..counts
    };
    for shift in (0..bits).step_by(DIGITS.ilog2() as usize) {
        let push = [count as u32, blocks as u32, shift];
        let mut step =
            |file: &'static str, args: Vec<BufArg>, groups: u64| -> Result<(), Refusal> {
                let step = Step {
                    file,
                    defines: vec![
                        number("WORKGROUP", workgroup),
                        number("DIGITS", DIGITS),
                        number("BLOCK", BLOCK),
                    ],
                    args,
                    push: bytes_of(&push),
                    groups: grid::spread(groups, device)?,
                    ..Step::default()
                };
                step.add_to(plan);
                Ok(())
            };
        step("digits.comp", vec![read(from), counts], blocks)?;
        step("scan.comp", vec![both, totals], DIGITS)?;
        step(
            "order.comp",
            vec![read(from), read(counts), read(totals), to],
            blocks,
        )?;
        (from, to) = (to, from);
    }
    Ok(read(from))
}

/// Adds sorted updates to the result.
pub(crate) fn sums(scatter: &Scatter<'_>, sorted: BufArg, plan: &mut Plan) -> Result<(), Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    let (updates, result) = (&request.inputs[2], &request.outputs[0]);
    let (Some((&row, inner)), part) = (
        scatter.from.split_first(),
        scatter.part.iter().product::<u64>(),
    ) else {
        return Err(Refusal::Internal("updates without an axis".to_owned()));
    };
    let space = layout::collapse(&scatter.part, &[inner.to_vec(), scatter.to.clone()]);
    let from = Side::of(updates, BufArg::input(2), Vec::new(), device)?;
    let to = Side::of(result, BufArg::output(0), Vec::new(), device)?;
    let workgroup = grid::threads(device, WORKGROUP);
    let value = result.dtype.register().size();
    let chunks = scatter.rows.div_ceil(CHUNK) - 1;
    let partials = (chunks > 0).then(|| scratch(plan, chunks * part * value));
    if chunks * part * value > device.max_buffer_range || scatter.rows * part >= LIMIT {
        return Err(Refusal::decline(
            "there are more sums than one buffer argument holds",
        ));
    }
    let mut sum =
        |threads: u64, partials: Option<BufArg>, is_partial: bool| -> Result<(), Refusal> {
            let mut defines = glsl::operand("R", result.dtype);
            defines.extend(component_defines(&scatter.components, 3));
            defines.extend([
                number("WORKGROUP", workgroup),
                number("CHUNK", CHUNK),
                number("RANK", space.shape.len() as u64),
            ]);
            let output = BufArg {
                access: Access::READ_WRITE,
                ..to.arg
            };
            let mut args = vec![sorted, from.arg, output, scatter.indices.arg];
            if let Some(partials) = partials {
                defines.push(number("PARTIALS", args.len() as u64));
                args.push(partials);
            }
            if is_partial {
                defines.push(number("PARTIAL", 1u64));
            }
            let step = Step {
                file: "sum.comp",
                defines,
                args,
                groups: grid::spread(threads.div_ceil(u64::from(workgroup)), device)?,
                ..Step::default()
            };
            let mut words = Words::default();
            words.push(threads as i64);
            words.push(scatter.rows as i64);
            words.extent(part);
            for word in [
                from.at,
                to.at,
                row,
                scatter.indices.at,
                scatter.components.len() as i64,
            ] {
                words.push(word);
            }
            scatter
                .components
                .iter()
                .for_each(|component| words.component(component));
            for axis in (0..space.shape.len()).rev() {
                words.extent(space.shape[axis]);
                words.push(space.strides[0][axis]);
                words.push(space.strides[1][axis]);
            }
            words.add_to(step, plan, device);
            Ok(())
        };
    if chunks > 0 {
        sum(chunks * part, partials, true)?;
    }
    sum(scatter.rows * part, partials.map(read), false)
}
