//! `dynamic_slice` and `put_slice`: a part of a tensor, whose start moves to where it fits.

use super::movement::{Place, copy, elements, integers};
use crate::{
    attrs::{Attr, ints},
    view::{Out, Outcome, View},
};

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([tensor, ..], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let size = out.dtype.size() as usize;
    let (bytes, mut source) = elements(tensor, out.dtype)?;
    if op == "put_slice" {
        copy(
            out.shape,
            size,
            (&bytes, &source),
            (&mut *out.bytes, &Place::first(out.shape)),
        );
        return put(inputs, out, attrs);
    }
    let (axes, lengths) = (ints(attrs, "axes"), ints(attrs, "lengths"));
    for (k, &axis) in axes.iter().enumerate() {
        let axis = axis as usize;
        let start = start(&inputs[1 + k], tensor.shape[axis], lengths[k] as u64)?;
        source.at += start * source.strides[axis];
        source.strides[axis] *= ints(attrs, "strides")[k];
    }
    copy(
        out.shape,
        size,
        (&bytes, &source),
        (&mut *out.bytes, &Place::first(out.shape)),
    );
    Ok(())
}

fn put(inputs: &[View], out: &mut Out, attrs: &[Attr]) -> Outcome {
    let slice = &inputs[1];
    let (bytes, source) = elements(slice, out.dtype)?;
    let mut starts = ints(attrs, "starts").to_vec();
    for (k, &axis) in ints(attrs, "axes").iter().enumerate() {
        let axis = axis as usize;
        starts[axis] = start(&inputs[2 + k], out.shape[axis], slice.shape[axis])?;
    }
    let mut target = Place::first(out.shape);
    target.at = starts
        .iter()
        .zip(&target.strides)
        .map(|(start, stride)| start * stride)
        .sum();
    copy(
        slice.shape,
        out.dtype.size() as usize,
        (&bytes, &source),
        (&mut *out.bytes, &target),
    );
    Ok(())
}

/// The start next to the one asked for at which `length` elements fit.
fn start(view: &View, extent: u64, length: u64) -> Result<i64, String> {
    let asked = integers(view)?.first().copied().unwrap_or(0);
    Ok(asked.clamp(0, extent.saturating_sub(length) as i64))
}
