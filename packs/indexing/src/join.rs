//! Plans of `concatenate` and `stack`: one walk for each operand, several of which are one dispatch.

use crate::{
    emit::in_form,
    walk::{self, Side, Walk},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request, layout::contiguous_strides, plan::MAX_STEPS};

pub(crate) fn plan(is_stack: bool, request: &Request<'_>) -> Result<Plan, Refusal> {
    let (result, device) = (&request.outputs[0], request.device);
    let count = request.inputs.len();
    let [axis] = request.ints("axis") else {
        return Err(Refusal::BadRequest(format!("{}: no axis", request.op)));
    };
    let axis = usize::try_from(*axis)
        .ok()
        .filter(|axis| *axis < result.rank());
    let Some(axis) = axis else {
        return Err(Refusal::BadRequest(format!(
            "{}: {:?} has no such axis",
            request.op, result.shape
        )));
    };
    let mut together = 0u64;
    for input in request.inputs.iter() {
        let mut shape = input.shape.as_slice().to_vec();
        if is_stack && axis <= shape.len() {
            shape.insert(axis, 1);
        }
        together = together.saturating_add(shape.get(axis).copied().unwrap_or(0));
        let mut others = shape.iter().zip(result.shape.iter()).enumerate();
        if shape.len() != result.rank() || !others.all(|(own, (a, b))| own == axis || a == b) {
            return Err(Refusal::BadRequest(format!(
                "{:?} is no part of {:?}",
                input.shape, result.shape
            )));
        }
    }
    if together != result.shape[axis] {
        return Err(Refusal::BadRequest(format!(
            "the operands are {together} along axis {axis} of {:?}",
            result.shape
        )));
    }
    let most = MAX_STEPS * walk::JOINED;
    if count > most {
        return Err(Refusal::decline(format!(
            "{count} operands are more than the {most} of a plan"
        )));
    }
    in_form(request, &Vec::from_iter(0..count), &[], false)?;
    let mut plan = Plan::default();
    if result.elements() == 0 {
        return Ok(plan);
    }
    let mut strides = contiguous_strides(result.shape.as_slice());
    let step = strides[axis];
    if is_stack {
        strides.remove(axis);
    }
    let mut to = Side::of(result, BufArg::output(0), strides, device)?;
    let mut walks = Vec::with_capacity(count);
    for (input, index) in request.inputs.iter().zip(0..) {
        let next = if is_stack {
            1
        } else {
            input.shape[axis] as i64
        };
        if input.elements() > 0 {
            let from = input.strides.as_slice().to_vec();
            walks.push(Walk {
                shape: input.shape.as_slice().to_vec(),
                size: result.dtype.size(),
                from: Side::of(input, BufArg::input(index), from, device)?,
                to: to.clone(),
                indices: None,
            });
        }
        to = to.shifted(next * step);
    }
    while !walks.is_empty() {
        let rest = walks.split_off(walks.len().min(walk::JOINED));
        walk::join(std::mem::replace(&mut walks, rest), &mut plan, device)?;
    }
    Ok(plan)
}
