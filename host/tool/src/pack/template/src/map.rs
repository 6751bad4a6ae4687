//! Plans of the ops that are an expression of the operands at one index.

use crate::{WORKGROUP, table::TableRow};
use nx_vulkan_abi::{
    BufArg, Plan, Refusal, Request,
    glsl::{define, operand},
};
use nx_vulkan_pack_kit::{
    grid::spread,
    operand::in_order,
    steps::{Step, bytes_of, number},
};

/// Plans `row`.
pub(crate) fn plan(row: &TableRow, request: &Request<'_>) -> Result<Plan, Refusal> {
    let result = &request.outputs[0];
    let count = result.elements();
    if count == 0 {
        return Ok(Plan::default());
    }
    let repeats = |elements: u64| elements == 1 && count > 1;
    if request
        .inputs
        .iter()
        .any(|x| x.elements() != count && !repeats(x.elements()))
    {
        return Err(Refusal::decline("it broadcasts single elements only"));
    }
    in_order(request, result.dtype)?;

    let mut push = vec![count as u32];
    let mut defines = vec![
        number("WORKGROUP", WORKGROUP),
        number("OPERANDS", row.operands as u64),
        define("EXPRESSION", row.glsl.as_str()),
    ];
    for (name, input) in ["A", "B"].into_iter().zip(request.inputs) {
        push.extend([input.offset as u32, u32::from(!repeats(input.elements()))]);
        defines.extend(operand(name, input.dtype));
    }
    defines.extend(operand("R", result.dtype));
    let mut args: Vec<BufArg> = (0..row.operands as u32).map(BufArg::input).collect();
    args.push(BufArg::output(0));
    let mut plan = Plan::default();
    let step = Step {
        file: "map.comp",
        defines,
        args,
        push: bytes_of(&push),
        groups: spread(count.div_ceil(WORKGROUP), request.device)?,
        ..Step::default()
    };
    step.add_to(&mut plan);
    Ok(plan)
}
