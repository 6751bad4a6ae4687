//! Plans of `dynamic_slice` and `put_slice`, whose starts may be operands.

use crate::{
    emit::{ascends, in_form},
    walk::{Component, Indices, LIMIT, Shift, Side, Walk},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request, layout::contiguous_strides};

/// Starts that a shader reads, at most.
const STARTS: usize = 8;

pub(crate) fn read(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (tensor, result, device) = (&request.inputs[0], &request.outputs[0], request.device);
    if result.elements() == 0 {
        return Ok(Plan::default());
    }
    let [axes, lengths, strides] = ["axes", "lengths", "strides"].map(|name| request.ints(name));
    let starts: Vec<usize> = (1..request.inputs.len()).collect();
    in_form(request, &[0], &starts, false)?;
    let fits = |k: usize| {
        let axis = usize::try_from(axes[k]).ok();
        let extent = axis.and_then(|axis| tensor.shape.get(axis));
        extent.is_some_and(|extent| (1..=*extent as i64).contains(&lengths[k]) && strides[k] > 0)
    };
    let listed = [axes, lengths, strides]
        .iter()
        .all(|list| list.len() == starts.len());
    if !listed || !ascends(axes) || !(0..axes.len()).all(fits) || result.rank() != tensor.rank() {
        return Err(Refusal::BadRequest(format!(
            "a slice of {:?} along {axes:?}: lengths {lengths:?}, strides {strides:?}",
            tensor.shape
        )));
    }
    let shape = result.shape.as_slice().to_vec();
    let mut from = tensor.strides.as_slice().to_vec();
    let mut expected = tensor.shape.as_slice().to_vec();
    for (k, &axis) in axes.iter().enumerate() {
        from[axis as usize] *= strides[k];
        expected[axis as usize] = (lengths[k] as u64).div_ceil(strides[k] as u64);
    }
    if expected != shape {
        return Err(Refusal::BadRequest(format!(
            "a slice is {expected:?}, asked for {shape:?}"
        )));
    }
    let component = |k: usize| Limit {
        operand: starts[k],
        most: tensor.shape[axes[k] as usize] - lengths[k] as u64,
        step: tensor.strides[axes[k] as usize],
    };
    let limits: Vec<Limit> = (0..axes.len()).map(component).collect();
    let walk = Walk {
        size: result.dtype.size(),
        from: Side::of(tensor, BufArg::input(0), from, device)?,
        to: Side::of(
            result,
            BufArg::output(0),
            contiguous_strides(&shape),
            device,
        )?,
        indices: indices(Shift::Starts, &limits, shape.len(), request)?,
        shape,
    };
    let mut plan = Plan::default();
    walk.add_to(&mut plan, device)?;
    Ok(plan)
}

pub(crate) fn put(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (tensor, slice, result) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    let device = request.device;
    if result.elements() == 0 {
        return Ok(Plan::default());
    }
    let starts: Vec<usize> = (2..request.inputs.len()).collect();
    in_form(request, &[0, 1], &starts, false)?;
    let (axes, at) = (request.ints("axes"), request.ints("starts"));
    let inside = |axis: usize| {
        let (all, part) = (tensor.shape[axis], slice.shape[axis]);
        at[axis] >= 0 && part <= all && at[axis] as u64 <= all - part
    };
    let rank = tensor.rank();
    let ranked = slice.rank() == rank && at.len() == rank && tensor.shape == result.shape;
    let named =
        axes.len() == starts.len() && axes.iter().all(|axis| (0..rank as i64).contains(axis));
    if !ranked || !named || !ascends(axes) || !(0..rank).all(inside) {
        return Err(Refusal::BadRequest(format!(
            "{:?} at {at:?} in {:?}, with starts along {axes:?}",
            slice.shape, tensor.shape
        )));
    }
    let strides = contiguous_strides(result.shape.as_slice());
    let first: i64 = at
        .iter()
        .zip(&strides)
        .map(|(at, stride)| at * stride)
        .sum();
    let limit = |(k, &axis): (usize, &i64)| Limit {
        operand: starts[k],
        most: tensor.shape[axis as usize] - slice.shape[axis as usize],
        step: strides[axis as usize],
    };
    let limits: Vec<Limit> = axes.iter().enumerate().map(limit).collect();
    let to = Side::of(result, BufArg::output(0), strides, device)?;
    let mut plan = Plan::default();
    let size = result.dtype.size();
    let walk = |index: u32, to: Side, indices: Option<Indices>| -> Result<Walk, Refusal> {
        let input = &request.inputs[index as usize];
        Ok(Walk {
            shape: input.shape.as_slice().to_vec(),
            size,
            from: Side::of(
                input,
                BufArg::input(index),
                input.strides.as_slice().to_vec(),
                device,
            )?,
            to,
            indices,
        })
    };
    walk(0, to.clone(), None)?.add_to(&mut plan, device)?;
    if slice.elements() > 0 {
        let indices = indices(Shift::Targets, &limits, rank, request)?;
        walk(1, to.shifted(first), indices)?.add_to(&mut plan, device)?;
    }
    Ok(plan)
}

/// A start: which operand, the highest that fits, and what a step of it shifts.
struct Limit {
    operand: usize,
    most: u64,
    step: i64,
}

fn indices(
    shift: Shift,
    limits: &[Limit],
    rank: usize,
    request: &Request<'_>,
) -> Result<Option<Indices>, Refusal> {
    if limits.is_empty() {
        return Ok(None);
    }
    if limits.len() > STARTS || limits.iter().any(|limit| limit.most >= LIMIT) {
        return Err(Refusal::decline(format!(
            "more than {STARTS} starts, or one beyond 32-bit indices"
        )));
    }
    let (mut args, mut components) = (Vec::new(), Vec::new());
    for limit in limits {
        let operand = &request.inputs[limit.operand];
        let own = Side::of(
            operand,
            BufArg::input(limit.operand as u32),
            Vec::new(),
            request.device,
        )?;
        args.push(own.arg);
        components.push(Component {
            at: own.at,
            limit: limit.most,
            step: limit.step,
            number: 0,
            dtype: operand.dtype,
        });
    }
    Ok(Some(Indices {
        shift,
        at: 0,
        strides: vec![0; rank],
        args,
        components,
    }))
}
