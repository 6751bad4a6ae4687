//! Attention: the products and the softmax that it stands for, with scores and weights as wide as sums are.

use super::{compute, epilogue::run_program, kernel::Sums};
use crate::{
    attention::{ATTENTION, ORDER, order, program, sums},
    attrs::Attr,
    request::{Request, Spec},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::layout::contiguous_strides;

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], how: Sums) -> Outcome {
    let out = &outputs[0];
    let Some(order) = order(attrs, out.shape.len())? else {
        return as_computed(inputs, outputs, attrs, how);
    };
    let mut shape = vec![0; order.len()];
    for (&axis, &extent) in order.iter().zip(out.shape) {
        shape[axis] = extent;
    }
    let mut bytes = vec![0; out.bytes.len()];
    let mut computed = [Out {
        dtype: out.dtype,
        shape: &shape,
        bytes: &mut bytes,
    }];
    let attrs: Vec<Attr> = attrs
        .iter()
        .filter(|attr| attr.name != ORDER)
        .cloned()
        .collect();
    as_computed(inputs, &mut computed, &attrs, how)?;
    let steps = contiguous_strides(&shape);
    let strides: Vec<i64> = order.iter().map(|&axis| steps[axis]).collect();
    let turned = View {
        dtype: out.dtype,
        shape: out.shape,
        strides: &strides,
        offset: 0,
        bytes: &bytes,
    };
    compute("as_type", &[turned], outputs, &[], how).map_err(|error| error.to_string())
}

/// The result with its axes in the order in which they come.
fn as_computed(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], how: Sums) -> Outcome {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let results = outputs.iter().map(|out| (out.dtype, out.shape.to_vec()));
    let results: Vec<Spec> = results.collect();
    let request = Request::new(ATTENTION, specs.collect::<Vec<Spec>>(), results, attrs);
    let program = program(&request, sums(request.outputs[0].0));
    let done = program.and_then(|program| run_program(&program, inputs, outputs, how));
    done.map_err(|error| error.to_string())
}
