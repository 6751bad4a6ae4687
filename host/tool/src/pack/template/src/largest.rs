//! Plans of `reduce_max` along the last axes.

use crate::{WORKGROUP, in_order, push, spread};
use nx_vulkan_abi::{BufArg, Dispatch, Plan, Refusal, Request, ShaderVariant, glsl::define};

/// Plans a reduction: the axes that stay are the rows of a matrix, those that go its columns.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (input, result) = (&request.inputs[0], &request.outputs[0]);
    let axes = request.ints("axes");
    let kept = input.rank().checked_sub(axes.len()).ok_or_else(|| {
        Refusal::BadRequest("reduce_max has more axes than its operand".to_owned())
    })?;
    if axes
        .iter()
        .zip(kept as i64..)
        .any(|(&axis, last)| axis != last)
    {
        return Err(Refusal::decline("it reduces the last axes only"));
    }
    let rows: u64 = input.shape[..kept].iter().product();
    if rows != result.elements() {
        return Err(Refusal::BadRequest(
            "the result does not fit the axes".to_owned(),
        ));
    }
    if input.elements() == 0 {
        return Err(Refusal::decline("nothing is the largest of no elements"));
    }
    in_order(request, result.dtype)?;

    let push = push(&[input.offset, rows, input.elements() / rows]);
    Ok(Plan {
        shaders: vec![ShaderVariant {
            file: "largest.comp".into(),
            defines: vec![define("WORKGROUP", WORKGROUP.to_string())].into(),
            bindings: 2,
            push_bytes: push.len() as u32,
            ..ShaderVariant::default()
        }]
        .into(),
        steps: vec![Dispatch {
            groups: spread(rows, request.device)?,
            args: vec![BufArg::input(0), BufArg::output(0)].into(),
            push: push.into(),
            ..Dispatch::default()
        }]
        .into(),
        ..Plan::default()
    })
}
