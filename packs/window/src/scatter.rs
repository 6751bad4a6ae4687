//! Plans of `window_scatter_max` and `window_scatter_min`: the windows choose, then the elements collect.

use crate::table::Scatter;
use nx_vulkan_abi::{
    BufArg, DTypeSet, InputAs, Plan, Refusal, Request,
    glsl::{define, operand},
    layout::contiguous_strides,
};
use nx_vulkan_pack_kit::{
    axes::{self, Axis, divisor},
    grid,
    operand::{supports, within_reach},
    steps::{Step, bytes_of, distinct, number, read, scratch},
    table,
};

/// Elements that one invocation may visit: a device takes longer dispatches for hung.
const MOST: u64 = 1 << 20;

/// Plans a scatter of windows.
pub(crate) fn plan(op: &Scatter, takes: DTypeSet, request: &Request<'_>) -> Result<Plan, Refusal> {
    table::expect_types(&op.op, &[takes; 3], takes, request)?;
    let (x, source, init) = (&request.inputs[0], &request.inputs[1], &request.inputs[2]);
    let (out, device) = (&request.outputs[0], request.device);
    for tensor in request.inputs.iter().chain(request.outputs) {
        supports(&op.op, tensor.dtype, device)?;
    }
    within_reach(request)?;
    if init.rank() != 0 || *out.shape != *x.shape {
        return Err(Refusal::BadRequest(format!("{}: shapes do not fit", op.op)));
    }
    let windows = axes::axes(request, (&x.shape, &x.strides), &source.shape)?;
    if out.elements() == 0 {
        return Ok(Plan::default());
    }
    if source.elements() == 0 {
        return Err(Refusal::decline(format!("{} of no windows", op.op)));
    }
    if source.dtype != out.dtype || !source.is_contiguous() || source.offset != 0 {
        return Err(Refusal::InputsAs(vec![InputAs::new(1, out.dtype)]));
    }
    let size = windows
        .iter()
        .fold(1u64, |size, axis| size.saturating_mul(axis.window));
    if size > MOST {
        return Err(Refusal::decline(format!(
            "{} of windows of {size} elements takes the device too long",
            op.op
        )));
    }
    let mut plan = Plan::default();
    let chosen = scratch(&mut plan, source.elements() * 4);
    let threads = grid::threads(device, 256);
    let places = contiguous_strides(&x.shape);
    let along: Vec<(Axis, i64)> = windows.iter().copied().zip(places).collect();
    let along = if along.is_empty() {
        vec![(Axis::ONE, 0)]
    } else {
        along
    };

    let mut words = vec![
        source.elements() as u32,
        x.offset as u32,
        init.offset as u32,
        size as u32,
    ];
    for (axis, place) in &along {
        let [magic, shift] = divisor(axis.positions);
        words.extend([axis.positions as u32, magic, shift, axis.stride as u32]);
        words.extend([axis.low as u32, axis.extent as u32, axis.window as u32]);
        words.extend([axis.step as u32, *place as u32]);
    }
    let common = |types: Vec<_>| {
        let mut defines = distinct(types);
        defines.extend([
            number("RANK", along.len() as u64),
            number("WORKGROUP", threads),
        ]);
        defines
    };
    let mut defines = common([operand("X", x.dtype), operand("I", init.dtype)].concat());
    defines.extend([
        define("X_CAST(x)", format!("nxv_to_{}(x)", x.dtype)),
        define("WINS(a, b)", format!("({})", op.glsl)),
    ]);
    let step = Step {
        file: "choose.comp",
        defines,
        args: vec![BufArg::input(0), BufArg::input(2), chosen],
        push: bytes_of(&words),
        groups: grid::spread(source.elements().div_ceil(threads.into()), device)?,
        ..Step::default()
    };
    step.add_within(&mut plan, device.push_bytes);

    let mut words = vec![out.elements() as u32, init.offset as u32];
    let steps = contiguous_strides(&source.shape);
    for (k, (axis, _)) in along.iter().enumerate() {
        let [magic, shift] = divisor(axis.extent);
        words.extend([axis.extent as u32, magic, shift, axis.stride as u32]);
        words.extend([axis.low as u32, axis.window as u32, axis.positions as u32]);
        words.push(steps.get(k).copied().unwrap_or(0) as u32);
    }
    let mut defines = common([operand("R", out.dtype), operand("I", init.dtype)].concat());
    defines.push(define("R_CAST(x)", format!("nxv_to_{}(x)", out.dtype)));
    let step = Step {
        file: "scatter.comp",
        defines,
        args: vec![
            read(chosen),
            BufArg::input(1),
            BufArg::input(2),
            BufArg::output(0),
        ],
        push: bytes_of(&words),
        groups: grid::spread(out.elements().div_ceil(threads.into()), device)?,
        ..Step::default()
    };
    step.add_within(&mut plan, device.push_bytes);
    Ok(plan)
}
