//! `pad`: elements around a tensor's and between them.

use super::crew::Wakes;
use super::elementwise::TASK;
use super::movement::{Place, contiguous, copy, elements};
use super::parallel;
use crate::{
    attrs::{Attr, ints},
    view::{Out, Outcome, View},
};

pub(crate) fn run(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([x, value], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let size = out.dtype.size() as usize;
    let (low, interior) = (ints(attrs, "low"), ints(attrs, "interior"));
    let mut target = Place::first(out.shape);
    let mut inside = Vec::with_capacity(x.shape.len());
    let mut offset = x.offset as i64;
    for (axis, (&extent, &room)) in x.shape.iter().zip(out.shape).enumerate() {
        // Element i comes to `low + i * step`: those of `first..end` are within the result.
        let (low, step) = (i128::from(low[axis]), i128::from(interior[axis]) + 1);
        let first = steps(-low, step).min(i128::from(extent));
        let end = steps(i128::from(room) - low, step);
        let end = end.clamp(first, i128::from(extent));
        inside.push((end - first) as u64);
        if end > first {
            offset += first as i64 * x.strides[axis];
            target.at += (low + first * step) as i64 * target.strides[axis];
            target.strides[axis] = target.strides[axis].saturating_mul(step as i64);
        }
    }
    let value = contiguous(value, out.dtype)?;
    let is_empty = inside.contains(&0);
    // Only what stays is converted.
    let (bytes, source) = elements(
        &View {
            shape: &inside,
            offset: if is_empty { 0 } else { offset as u64 },
            ..*x
        },
        out.dtype,
    )?;
    parallel::parts(out.bytes, TASK * size, Wakes::Late, &|_, bytes| {
        fill(bytes, &value)
    });
    copy(&inside, size, (&bytes, &source), (&mut *out.bytes, &target));
    Ok(())
}

/// How many steps from 0 it takes to be there or beyond.
fn steps(distance: i128, step: i128) -> i128 {
    (distance.max(0) + step - 1) / step
}

/// Repeats an element.
fn fill(bytes: &mut [u8], element: &[u8]) {
    let mut done = element.len().min(bytes.len());
    bytes[..done].copy_from_slice(&element[..done]);
    while done < bytes.len() {
        let more = done.min(bytes.len() - done);
        bytes.copy_within(..more, done);
        done += more;
    }
}
