//! From a request to dispatches: the axes that are walked along, and how much of a result each dispatch makes.

use crate::{
    rows,
    table::{Method, TableRow},
};
use nx_vulkan_abi::{
    Access, BufArg, DeviceKind, Expression, Plan, Refusal, Request,
    glsl::{define, operand},
    plan::MAX_STEPS,
};
use nx_vulkan_pack_kit::{
    axes::{self, Axis, divisor},
    expression::{Code, stored},
    grid,
    operand::{supports, within_reach},
    steps::{Step, bytes_of, distinct, number},
    table,
};

/// Elements that one invocation visits in a dispatch, and all of them together: a device takes longer ones for hung.
const MOST: u64 = 1 << 20;
const MOST_IN_ALL: u64 = 1 << 27;
/// Elements that are loaded before the first of them is used, where a GPU runs short expressions.
const BATCH: u64 = 8;
const SHORT: usize = 8;

/// Plans a request for the op of a row.
pub(crate) fn plan(row: &TableRow, request: &Request<'_>) -> Result<Plan, Refusal> {
    match row.method {
        Method::Axes => reduction(row, request, reduced),
        Method::Windows => reduction(row, request, windows),
        Method::Rows => rows::plan(request),
    }
}

/// Plans a reduction along `axes`.
fn reduction(
    row: &TableRow,
    request: &Request<'_>,
    axes: fn(&Request<'_>) -> Result<Vec<Axis>, Refusal>,
) -> Result<Plan, Refusal> {
    table::expect_types(&row.op, &[row.takes; 2], row.takes, request)?;
    let (x, acc, out) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    let bad = |why: &str| Err(Refusal::BadRequest(format!("{}: {why}", row.op)));
    let expression = Expression::of(request)?;
    if acc.rank() != 0 || acc.dtype != out.dtype || !expression.gives().eq([out.dtype]) {
        return bad("the accumulator is a scalar of the result's type");
    }
    for dtype in [x.dtype, out.dtype] {
        supports(&row.op, dtype, request.device)?;
    }
    within_reach(request)?;
    let axes = axes(request)?;
    let results = axes.iter().map(|axis| axis.positions).product::<u64>();
    if results != out.elements() {
        return bad("the result has another shape");
    }
    if results == 0 {
        return Ok(Plan::default());
    }
    let code = Code::of(&expression, &[x.dtype, acc.dtype], request.device)?;
    emit(request, &joined(&axes::merged(&axes)), &code, &expression)
}

fn windows(request: &Request<'_>) -> Result<Vec<Axis>, Refusal> {
    let (x, out) = (&request.inputs[0], &request.outputs[0]);
    axes::axes(request, (&x.shape, &x.strides), &out.shape)
}

fn reduced(request: &Request<'_>) -> Result<Vec<Axis>, Refusal> {
    let x = &request.inputs[0];
    let gone = request.ints("axes");
    if gone
        .iter()
        .any(|&axis| !(0..x.rank() as i64).contains(&axis))
    {
        return Err(Refusal::BadRequest(format!("there are no axes {gone:?}")));
    }
    let extents = x.shape.iter().zip(x.strides.iter());
    let axes = extents.zip(0..).map(|((&extent, &step), axis)| {
        let is_gone = gone.contains(&axis);
        Axis {
            extent,
            positions: if is_gone { 1 } else { extent },
            window: if is_gone { extent } else { 1 },
            step,
            ..Axis::ONE
        }
    });
    Ok(axes.collect())
}

/// Joins axes that go and follow each other in memory.
fn joined(axes: &[Axis]) -> Vec<Axis> {
    let mut joined: Vec<Axis> = Vec::new();
    let goes = |axis: &Axis| {
        axis.positions == 1 && axis.low == 0 && axis.dilation == 1 && axis.window == axis.extent
    };
    for axis in axes {
        let follows = |before: &&mut Axis| {
            goes(before) && goes(axis) && before.step == axis.step * axis.extent as i64
        };
        match joined.last_mut().filter(follows) {
            Some(before) => {
                before.window *= axis.window;
                before.extent = before.window;
                before.step = axis.step;
            }
            None => joined.push(*axis),
        }
    }
    joined
}

fn emit(
    request: &Request<'_>,
    axes: &[Axis],
    code: &Code,
    expression: &Expression,
) -> Result<Plan, Refusal> {
    let (x, acc, out) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    let device = request.device;
    let count: u64 = axes.iter().map(|axis| axis.positions).product();
    let windows = axes.iter().map(|axis| axis.window);
    let steps = windows.fold(1u64, |all, window| all.saturating_mul(window));
    let share = (MOST_IN_ALL / count).clamp(1, MOST);
    if steps >= 1 << 31 || count >= 1 << 31 || steps.div_ceil(share) > MAX_STEPS as u64 {
        return Err(Refusal::decline(format!(
            "{count} results of {steps} elements take the device too long"
        )));
    }
    let is_short = code.functions == 0 && expression.calls.len() <= SHORT;
    let batch = match device.kind {
        DeviceKind::CPU => 1,
        _ if is_short => BATCH,
        _ => 1,
    };
    let windowed = (0..axes.len()).filter(|k| !axes[*k].is_plain());
    let windowed: Vec<usize> = windowed.collect();
    let bits = windowed.iter().fold(0u32, |bits, k| bits | 1 << k);
    let threads = grid::threads(device, 64);
    let mut defines = [operand("X", x.dtype), operand("A", out.dtype)].concat();
    defines.extend(code.defines());
    let mut defines = distinct(defines);
    defines.extend([
        define(
            "X_OF(x)",
            stored(&format!("nxv_to_{}(x)", x.dtype), x.dtype),
        ),
        define("CODE", format!("{}return {};", code.body, code.results[0])),
        number("RANK", axes.len() as u64),
        number(
            "INNER",
            windowed.last().copied().unwrap_or(axes.len() - 1) as u64,
        ),
        number("WINDOWED", bits),
        number("BATCH", batch),
        number("WORKGROUP", threads),
    ]);
    // What has no elements cannot be bound, nor is it read.
    let elements = BufArg::input(u32::from(x.elements() == 0));
    let mut plan = Plan::default();
    for begin in (0..steps.max(1)).step_by(share as usize) {
        let mut words = words(axes, x.offset as i64, count);
        words.extend([
            acc.offset as u32,
            begin as u32,
            steps.min(begin + share) as u32,
        ]);
        let resumes = begin > 0;
        let mut defines = defines.clone();
        defines.push(number("RESUMES", u32::from(resumes)));
        let results = BufArg {
            access: if resumes {
                Access::READ_WRITE
            } else {
                Access::WRITE
            },
            ..BufArg::output(0)
        };
        let step = Step {
            file: "closure.comp",
            defines,
            args: vec![elements, BufArg::input(1), results],
            push: bytes_of(&words),
            groups: grid::spread(count.div_ceil(u64::from(threads)), device)?,
            ..Step::default()
        };
        step.add_within(&mut plan, device.push_bytes);
    }
    Ok(plan)
}

/// The parameters that every dispatch has, which come first.
fn words(axes: &[Axis], offset: i64, count: u64) -> Vec<u32> {
    let low: i64 = axes.iter().map(|axis| axis.low * axis.step).sum();
    let mut words = Vec::new();
    for axis in axes {
        let [positions, window] = [axis.positions, axis.window].map(divisor);
        words.extend([axis.positions as u32, positions[0], positions[1]]);
        words.extend([
            axis.stride_step() as u32,
            axis.stride as u32,
            axis.low as u32,
            axis.extent as u32,
            axis.window as u32,
            window[0],
            window[1],
            axis.dilation as u32,
            (axis.dilation as i64 * axis.step) as u32,
        ]);
    }
    words.extend([count as u32, (offset - low) as u32]);
    words
}
