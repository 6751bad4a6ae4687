//! `concatenate` and `stack`: tensors next to each other.

use super::movement::{Place, contiguous, copy};
use crate::{
    attrs::{Attr, ints},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::layout::contiguous_strides;

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([out], [axis]) = (outputs, ints(attrs, "axis")) else {
        return Err("expected one axis and one result".to_owned());
    };
    let (axis, size) = (*axis as usize, out.dtype.size() as usize);
    let mut target = Place::first(out.shape);
    let step = target.strides[axis];
    if op == "stack" {
        target.strides.remove(axis);
    }
    for input in inputs {
        let from = Place {
            at: 0,
            strides: contiguous_strides(input.shape),
        };
        let bytes = contiguous(input, out.dtype)?;
        if !bytes.is_empty() {
            copy(
                input.shape,
                size,
                (&bytes, &from),
                (&mut *out.bytes, &target),
            );
        }
        target.at += step
            * if op == "stack" {
                1
            } else {
                input.shape[axis] as i64
            };
    }
    Ok(())
}
