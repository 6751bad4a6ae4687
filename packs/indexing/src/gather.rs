//! Plans of `gather` and of the blocks that are like it.

use crate::{
    emit::{ascends, in_form},
    walk::{Component, Indices, LIMIT, Shift, Side, Walk},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request, TensorDesc, layout::contiguous_strides};

/// Which axes a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Those of the indices but for the last, then those of the tensor that are not indexed.
    Gather,
    /// Those of the tensor, one of which the axes of the indices replace.
    Take,
    /// Those of the indices, which are those of the tensor.
    Along,
}

/// Steps along an axis of the result in the tensor and in the indices.
type Steps = (u64, i64, i64);

pub(crate) fn plan(form: Form, request: &Request<'_>) -> Result<Plan, Refusal> {
    let (tensor, indices, result) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    if result.elements() == 0 {
        return Ok(Plan::default());
    }
    in_form(request, &[0], &[1], false)?;
    let axes = indexed(form, tensor, indices, request)?;
    let steps = steps(form, &axes, tensor, indices);
    let shape: Vec<u64> = steps.iter().map(|step| step.0).collect();
    if shape != result.shape.as_slice() {
        return Err(Refusal::BadRequest(format!(
            "{} gives {shape:?}, asked for {:?}",
            request.op, result.shape
        )));
    }
    let last = indices.strides.last().copied().unwrap_or(0);
    let component = |(k, &axis): (usize, &usize)| Component {
        at: if form == Form::Gather {
            k as i64 * last
        } else {
            0
        },
        limit: tensor.shape[axis],
        step: tensor.strides[axis],
        number: 0,
        dtype: indices.dtype,
    };
    let components: Vec<Component> = axes.iter().enumerate().map(component).collect();
    if components.iter().any(|component| component.limit >= LIMIT) {
        return Err(Refusal::decline("an axis is too long for 32-bit indices"));
    }
    let device = request.device;
    let from = steps.iter().map(|step| step.1).collect();
    let own = Side::of(
        indices,
        BufArg::input(1),
        steps.iter().map(|step| step.2).collect(),
        device,
    )?;
    let walk = Walk {
        size: result.dtype.size(),
        from: Side::of(tensor, BufArg::input(0), from, device)?,
        to: Side::of(
            result,
            BufArg::output(0),
            contiguous_strides(&shape),
            device,
        )?,
        indices: Some(Indices {
            shift: Shift::Reads,
            at: own.at,
            strides: own.strides,
            args: vec![own.arg],
            components,
        }),
        shape,
    };
    let mut plan = Plan::default();
    walk.add_to(&mut plan, device)?;
    Ok(plan)
}

/// The axes of the tensor that have indices.
fn indexed(
    form: Form,
    tensor: &TensorDesc<'_>,
    indices: &TensorDesc<'_>,
    request: &Request<'_>,
) -> Result<Vec<usize>, Refusal> {
    let (name, count) = match form {
        Form::Gather => (
            "axes",
            indices.shape.last().map_or(0, |last| *last as usize),
        ),
        Form::Take | Form::Along => ("axis", 1),
    };
    let listed = request.ints(name);
    let fit = |axis: &i64| (0..tensor.rank() as i64).contains(axis);
    let same_rank = form != Form::Along || indices.rank() == tensor.rank();
    let ranked = form != Form::Gather || indices.rank() > 0;
    if listed.len() != count || !ascends(listed) || !listed.iter().all(fit) || !same_rank || !ranked
    {
        return Err(Refusal::BadRequest(format!(
            "{}: {name} {listed:?} of {:?} with indices {:?}",
            request.op, tensor.shape, indices.shape
        )));
    }
    Ok(listed.iter().map(|axis| *axis as usize).collect())
}

fn steps(
    form: Form,
    axes: &[usize],
    tensor: &TensorDesc<'_>,
    indices: &TensorDesc<'_>,
) -> Vec<Steps> {
    let own = |axis: usize| (tensor.shape[axis], tensor.strides[axis], 0);
    let index = |axis: usize| (indices.shape[axis], 0, indices.strides[axis]);
    let (ranks, rank) = (0..indices.rank(), tensor.rank());
    match form {
        Form::Gather => {
            let rest = (0..rank).filter(|axis| !axes.contains(axis));
            ranks
                .take(indices.rank() - 1)
                .map(index)
                .chain(rest.map(own))
                .collect()
        }
        Form::Take => {
            let lead = (0..axes[0]).map(own).chain(ranks.map(index));
            lead.chain((axes[0] + 1..rank).map(own)).collect()
        }
        Form::Along => {
            let both = |axis: usize| {
                let step = if axes.contains(&axis) {
                    0
                } else {
                    tensor.strides[axis]
                };
                (indices.shape[axis], step, indices.strides[axis])
            };
            ranks.map(both).collect()
        }
    }
}
