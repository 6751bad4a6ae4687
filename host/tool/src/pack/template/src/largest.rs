//! Plans of `reduce_max` along the last axes.

use crate::WORKGROUP;
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid::spread,
    operand::in_order,
    steps::{Step, bytes_of, number},
};

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

    let push = [input.offset, rows, input.elements() / rows].map(|word| word as u32);
    let mut plan = Plan::default();
    let step = Step {
        file: "largest.comp",
        defines: vec![number("WORKGROUP", WORKGROUP)],
        args: vec![BufArg::input(0), BufArg::output(0)],
        push: bytes_of(&push),
        groups: spread(rows, request.device)?,
        ..Step::default()
    };
    step.add_to(&mut plan);
    Ok(plan)
}
