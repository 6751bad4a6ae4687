//! `concatenate` and `stack`: tensors next to each other.

use super::movement::{Place, copy, elements};
use crate::{
    attrs::{Attr, ints},
    view::{Out, Outcome, View},
};

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
        let (bytes, from) = elements(input, out.dtype)?;
        copy(
            input.shape,
            size,
            (&bytes, &from),
            (&mut *out.bytes, &target),
        );
        target.at += step
            * if op == "stack" {
                1
            } else {
                input.shape[axis] as i64
            };
    }
    Ok(())
}
