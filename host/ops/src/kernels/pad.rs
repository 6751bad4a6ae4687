//! `pad`: elements around a tensor's and between them.

use super::movement::{contiguous, each_index};
use crate::{
    attrs::{Attr, ints},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::layout::contiguous_strides;

pub(crate) fn run(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([x, value], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let size = out.dtype.size() as usize;
    let (bytes, value) = (contiguous(x, out.dtype)?, contiguous(value, out.dtype)?);
    let (low, interior) = (ints(attrs, "low"), ints(attrs, "interior"));
    let strides = contiguous_strides(x.shape);
    let mut elements = out.bytes.chunks_exact_mut(size);
    each_index(out.shape, |index| {
        let mut at = 0;
        let mut inside = true;
        for (axis, &i) in index.iter().enumerate() {
            let (from_first, step) = (i as i64 - low[axis], interior[axis].saturating_add(1));
            let place = from_first.div_euclid(step);
            inside &=
                from_first.rem_euclid(step) == 0 && (0..x.shape[axis] as i64).contains(&place);
            at += if inside { place * strides[axis] } else { 0 };
        }
        let element = if inside {
            &bytes[at as usize * size..][..size]
        } else {
            &value
        };
        elements
            .next()
            .ok_or("too many elements")?
            .copy_from_slice(element);
        Ok(())
    })
}
