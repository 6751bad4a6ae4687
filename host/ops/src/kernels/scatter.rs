//! `indexed_add` and `indexed_put`: updates to parts of a tensor, in their order.

use super::element::Register;
use super::movement::{Place, contiguous, copy, each_index, integers};
use crate::{
    attrs::{Attr, ints},
    element::{float, push_float},
    partial::INDEX,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([tensor, indices, updates], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let (dtype, size) = (out.dtype, out.dtype.size() as usize);
    out.bytes.copy_from_slice(&contiguous(tensor, dtype)?);
    let (indices, updates) = (integers(indices)?, contiguous(updates, dtype)?);
    let axes: Vec<usize> = ints(attrs, "axes")
        .iter()
        .map(|axis| *axis as usize)
        .collect();
    let strides = contiguous_strides(out.shape);
    let kept = (0..out.shape.len()).filter(|axis| !axes.contains(axis));
    let (shape, steps): (Vec<u64>, Vec<i64>) =
        kept.map(|axis| (out.shape[axis], strides[axis])).unzip();
    let part = Place {
        at: 0,
        strides: steps,
    };
    let elements = shape.iter().product::<u64>() as usize;
    let rows = updates.len().checked_div(elements * size).unwrap_or(0);
    let mut sums = Sums::new(dtype, out.bytes.len() / size);
    for row in 0..rows {
        let mut at = 0;
        for (k, &axis) in axes.iter().enumerate() {
            let index = indices[row * axes.len() + k];
            if !(0..i128::from(out.shape[axis])).contains(&index) {
                return Err(INDEX.reason.to_owned());
            }
            at += index as i64 * strides[axis];
        }
        let target = part.shifted(at);
        let own = &updates[row * elements * size..][..elements * size];
        if op == "indexed_put" {
            copy(
                &shape,
                size,
                (own, &Place::first(&shape)),
                (&mut *out.bytes, &target),
            );
            continue;
        }
        let mut own = own.chunks_exact(size);
        each_index(&shape, |index| {
            let steps = index.iter().zip(&target.strides);
            let at = target.at + steps.map(|(i, step)| *i as i64 * step).sum::<i64>();
            sums.add(at as usize, own.next().ok_or("too few updates")?);
            Ok(())
        })?;
    }
    sums.add_to(out.bytes);
    Ok(())
}

/// What is added to each element: floats in f64 and rounded once, integers modulo 2^64.
struct Sums {
    dtype: DType,
    floats: Vec<f64>,
    integers: Vec<u64>,
    touched: Vec<bool>,
}

impl Sums {
    fn new(dtype: DType, elements: usize) -> Sums {
        let parts = elements * (dtype.size() / dtype.part().size().max(1)) as usize;
        let is_float = dtype.part().is_float();
        Sums {
            dtype: dtype.part(),
            floats: vec![0.0; if is_float { parts } else { 0 }],
            integers: vec![0; if is_float { 0 } else { parts }],
            touched: vec![false; parts],
        }
    }

    fn add(&mut self, at: usize, update: &[u8]) {
        let size = self.dtype.size() as usize;
        let parts = update.len() / size;
        for (part, at) in update.chunks_exact(size).zip(at * parts..) {
            self.touched[at] = true;
            match float(self.dtype, part) {
                Some(value) => self.floats[at] += value,
                None => self.integers[at] = self.integers[at].wrapping_add(word(part)),
            }
        }
    }

    fn add_to(self, bytes: &mut [u8]) {
        let elements = bytes
            .chunks_exact_mut(self.dtype.size() as usize)
            .enumerate();
        for (at, element) in elements.filter(|(at, _)| self.touched[*at]) {
            match float(self.dtype, element) {
                Some(value) => {
                    let mut sum = Vec::with_capacity(8);
                    push_float(self.dtype, value + self.floats[at], &mut sum);
                    element.copy_from_slice(&sum);
                }
                None => {
                    let sum = word(element).wrapping_add(self.integers[at]);
                    i64::store(&[sum as i64], self.dtype, element);
                }
            }
        }
    }
}

/// An integer's bits; those above it do not matter in a sum.
fn word(element: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..element.len()].copy_from_slice(element);
    u64::from_le_bytes(word)
}
