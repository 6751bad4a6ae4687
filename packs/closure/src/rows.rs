//! Plans of `fused_rows`: some invocations hold a row between them, reduce it as often as the expression says, and make the
//! results of what they hold.

mod reduction;
mod share;

use nx_vulkan_abi::{
    BufArg, DType, DeviceKind, Expression, Plan, Refusal, Request,
    expression::Term,
    glsl::{self, define, operand},
};
use nx_vulkan_pack_kit::{
    expression::{self, each},
    grid,
    operand::within_reach,
    steps::{Step, bytes_of, distinct, number},
};

use reduction::{Reduction, names};
use share::{Axes, Reading, Share, axes, reading, shape};

/// Elements of operands that an invocation has registers for.
const HELD: u64 = 96;
/// Invocations of a workgroup at least.
const WORKGROUP: u64 = 128;

/// Plans a request.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let expression = expression::of_all(request)?;
    within_reach(request)?;
    let shape = shape(request)?;
    let (length, lead) = shape
        .split_last()
        .ok_or_else(|| Refusal::BadRequest("operands without axes have no rows".to_owned()))?;
    let rows: u64 = lead.iter().product();
    if rows == 0 {
        return Ok(Plan::default());
    }
    if *length == 0 {
        return Err(Refusal::decline("rows without elements"));
    }
    let axes = axes(request, lead)?;
    let share = Share::of(request, &axes, rows, *length);
    if share.held() * request.inputs.len() as u64 > HELD {
        return Err(Refusal::decline(format!(
            "{} operands of {length} elements are more than {} invocations hold",
            request.inputs.len(),
            share.lanes
        )));
    }
    emit(request, &expression, &axes, &share)
}

fn emit(
    request: &Request<'_>,
    expression: &Expression,
    axes: &Axes,
    share: &Share,
) -> Result<Plan, Refusal> {
    let device = request.device;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    let most = u64::from(grid::threads(device, 1024));
    let threads = share.lanes.max(WORKGROUP.min(most));
    let (reductions, known) = Reduction::all(request, expression)?;
    let results: Vec<Term> = expression
        .results
        .iter()
        .map(|&call| Term::Made(call))
        .collect();
    let code = known.code(expression, &results, device)?;

    let vector = |name: &str, dtype: DType, width: u64| {
        let storage = glsl::types(dtype).map_or("float", |types| types.0);
        define(
            format!("{name}_VECTOR"),
            glsl::vector(storage, width).unwrap_or(storage),
        )
    };
    let lane = if share.width == 1 { "x" } else { "x[n]" };
    let mut defines = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        let name = format!("I{k}");
        let reading = reading(request, k, axes, share.width);
        defines.extend(operand(&name, input.dtype));
        defines.push(vector(&name, input.dtype, share.width));
        defines.push(define(
            format!("{name}_READ"),
            match reading {
                Reading::One => "READ_ONE",
                Reading::Neighbours => "READ_NEIGHBOURS",
                Reading::Apart => "READ_APART",
            },
        ));
    }
    for (k, output) in outputs.iter().enumerate() {
        let name = format!("R{k}");
        let is_row = output.shape.last() == Some(&1) && share.length > 1;
        let stored_as = if is_row {
            "STORE_ROW"
        } else {
            "STORE_ELEMENTS"
        };
        defines.extend(operand(&name, output.dtype));
        defines.push(vector(
            &name,
            output.dtype,
            if is_row { 1 } else { share.width },
        ));
        defines.push(define(format!("{name}_MADE"), code.results[k].as_str()));
        defines.push(define(format!("{name}_STORING"), stored_as));
    }
    let is_wide = reductions
        .iter()
        .any(|reduction| reduction.dtype == DType::F64);
    for (k, reduction) in reductions.iter().enumerate() {
        reduction.define(k, &reductions, expression, &mut defines);
    }
    defines.extend(code.defines());
    let mut defines = distinct(defines);
    let has_subgroups =
        !is_wide && device.kind != DeviceKind::CPU && grid::has_full_subgroups(device, threads);
    let subgroup = if has_subgroups {
        device.subgroup_size
    } else {
        0
    };
    let kept = reductions
        .iter()
        .enumerate()
        .filter(|(_, reduction)| reduction.kept.is_some());
    let kept: Vec<usize> = kept.map(|(k, _)| k).collect();
    let once = reductions.iter().flat_map(|reduction| &reduction.row);
    let once: Vec<usize> = once.map(|(_, index)| *index).collect();
    defines.extend([
        each("EACH_OPERAND(f)", 0..inputs.len()),
        each("EACH_REDUCTION(f)", 0..reductions.len()),
        each("EACH_KEPT(f)", kept),
        each("EACH_ONCE(f)", once),
        each("EACH_RESULT(f)", 0..outputs.len()),
        define("CODE", code.body.as_str()),
        define("NAMES_OF_ALL", names(&reductions)),
        define("LANE", lane),
        define("SHARED_VALUE", if is_wide { "double" } else { "float" }),
        number("INPUTS", inputs.len() as u64),
        number("AXES", axes.len() as u64),
        number("LANES", share.lanes),
        number("WIDTH", share.width),
        number("TIMES", share.times),
        number("LENGTH", share.length),
        number("SUBGROUP", subgroup),
        number("WORKGROUP", threads),
    ]);
    let mut words = vec![share.rows as u32];
    words.extend(axes.iter().map(|axis| axis.0 as u32));
    for (k, input) in inputs.iter().enumerate() {
        let is_one = input.shape.last().is_none_or(|last| *last == 1);
        let column = input
            .strides
            .last()
            .filter(|_| !is_one)
            .copied()
            .unwrap_or(0);
        words.extend([input.offset as u32, column as u32]);
        words.extend(axes.iter().map(|axis| axis.1[k] as u32));
    }
    let given = (0..inputs.len() as u32).map(BufArg::input);
    let made = (0..outputs.len() as u32).map(BufArg::output);
    let step = Step {
        file: "rows.comp",
        defines,
        args: given.chain(made).collect(),
        push: bytes_of(&words),
        groups: grid::spread(share.rows.div_ceil(threads / share.lanes), device)?,
        subgroup_size: subgroup,
        ..Step::default()
    };
    let mut plan = Plan::default();
    step.add_within(&mut plan, device.push_bytes);
    Ok(plan)
}
