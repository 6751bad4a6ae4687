//! Plans of the ops that are an expression of the operands at one index.

use crate::{WORKGROUP, in_order, push, spread, table::TableRow};
use nx_vulkan_abi::{
    BufArg, Dispatch, Plan, Refusal, Request, ShaderVariant,
    glsl::{define, operand},
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

    let mut words = vec![count];
    let mut defines = vec![
        define("WORKGROUP", WORKGROUP.to_string()),
        define("OPERANDS", row.operands.to_string()),
        define("EXPRESSION", row.glsl.as_str()),
    ];
    for (name, input) in ["A", "B"].into_iter().zip(request.inputs) {
        words.extend([input.offset, u64::from(!repeats(input.elements()))]);
        defines.extend(operand(name, input.dtype));
    }
    defines.extend(operand("R", result.dtype));
    let mut args: Vec<BufArg> = (0..row.operands as u32).map(BufArg::input).collect();
    args.push(BufArg::output(0));
    let push = push(&words);
    Ok(Plan {
        shaders: vec![ShaderVariant {
            file: "map.comp".into(),
            defines: defines.into(),
            bindings: args.len() as u32,
            push_bytes: push.len() as u32,
            ..ShaderVariant::default()
        }]
        .into(),
        steps: vec![Dispatch {
            groups: spread(count.div_ceil(WORKGROUP), request.device)?,
            args: args.into(),
            push: push.into(),
            ..Dispatch::default()
        }]
        .into(),
        ..Plan::default()
    })
}
