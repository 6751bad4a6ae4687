//! `indexed_add` and `indexed_put`: updates to parts of a tensor, in their order.

use super::element::Register;
use super::movement::{Place, contiguous, copy, integers};
use super::{convert, operand::Operand};
use crate::{
    attrs::{Attr, ints},
    element::push_float,
    partial::INDEX,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([tensor, indices, updates], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let whole = Operand::broadcast(tensor, out.shape).ok_or("it does not fit its own shape")?;
    convert::as_type(&[whole], out)?;
    let (indices, updates) = (integers(indices)?, contiguous(updates, out.dtype)?);
    let axes: Vec<usize> = ints(attrs, "axes")
        .iter()
        .map(|axis| *axis as usize)
        .collect();
    let strides = contiguous_strides(out.shape);
    let kept = (0..out.shape.len()).filter(|axis| !axes.contains(axis));
    let (shape, steps): (Vec<u64>, Vec<i64>) =
        kept.map(|axis| (out.shape[axis], strides[axis])).unzip();
    let parts = Parts {
        elements: shape.iter().product::<u64>() as usize,
        size: out.dtype.size() as usize,
        shape,
        strides: steps,
    };
    let rows = updates.len() / (parts.elements * parts.size);
    let place = |row: usize| {
        let mut at = 0;
        for (index, &axis) in indices[row * axes.len()..].iter().zip(&axes) {
            if !(0..i128::from(out.shape[axis])).contains(index) {
                return Err(INDEX.reason.to_owned());
            }
            at += *index as i64 * strides[axis];
        }
        Ok(at)
    };
    let places = (0..rows).map(place).collect::<Result<Vec<i64>, _>>()?;
    if op == "indexed_put" {
        parts.write(&updates, out.bytes, &places);
        return Ok(());
    }
    match out.dtype.part().is_float() {
        true => parts.add(&updates, out, &places, |x: f64, y| x + y, store_floats),
        false => parts.add(&updates, out, &places, i64::wrapping_add, i64::store),
    }
    Ok(())
}

/// Parts of a tensor, all of one form.
struct Parts {
    shape: Vec<u64>,
    strides: Vec<i64>,
    elements: usize,
    size: usize,
}

impl Parts {
    /// Adds updates to the parts at those places: what is added to each element is summed before, floats in f64 and rounded
    /// once, integers modulo 2^64.
    fn add<T: Register>(
        &self,
        updates: &[u8],
        out: &mut Out,
        places: &[i64],
        plus: fn(T, T) -> T,
        store: fn(&[T], DType, &mut [u8]),
    ) {
        let dtype = out.dtype.part();
        let updates = numbers::<T>(updates, dtype);
        let length = updates.len() / places.len().max(1);
        // Of each place 1 more than its number in the order in which they come.
        let mut known = vec![0u32; out.bytes.len() / self.size];
        let (mut distinct, mut sums) = (Vec::new(), Vec::new());
        for (at, own) in places.iter().zip(updates.chunks(length.max(1))) {
            let number = &mut known[*at as usize];
            if *number == 0 {
                distinct.push(*at);
                *number = distinct.len() as u32;
                sums.resize(distinct.len() * length, T::default());
            }
            let sums = &mut sums[(*number as usize - 1) * length..];
            let both = sums.iter_mut().zip(own);
            both.for_each(|(sum, x)| *sum = plus(*sum, *x));
        }
        let mut own = vec![0; distinct.len() * self.elements * self.size];
        self.read(out.bytes, &distinct, &mut own);
        let before = numbers::<T>(&own, dtype);
        let both = sums.iter_mut().zip(before);
        both.for_each(|(sum, before)| *sum = plus(before, *sum));
        store(&sums, dtype, &mut own);
        self.write(&own, out.bytes, &distinct);
    }

    /// Copies the parts at those places next to each other.
    fn read(&self, from: &[u8], places: &[i64], to: &mut [u8]) {
        self.each(places, |own, far| {
            copy(&self.shape, self.size, (from, far), (&mut *to, own))
        });
    }

    /// Copies what lies next to each other to the parts at those places.
    fn write(&self, from: &[u8], to: &mut [u8], places: &[i64]) {
        self.each(places, |own, far| {
            copy(&self.shape, self.size, (from, own), (&mut *to, far))
        });
    }

    /// Calls `f` with where each part lies next to the others, and where in the tensor.
    fn each(&self, places: &[i64], mut f: impl FnMut(&Place, &Place)) {
        let mut own = Place::first(&self.shape);
        let mut far = Place {
            at: 0,
            strides: self.strides.clone(),
        };
        for at in places {
            far.at = *at;
            f(&own, &far);
            own.at += self.elements as i64;
        }
    }
}

/// Elements next to each other.
fn numbers<T: Register>(bytes: &[u8], dtype: DType) -> Vec<T> {
    let shape = [bytes.len() as u64 / dtype.size()];
    let mut numbers = vec![T::default(); shape[0] as usize];
    if !numbers.is_empty() {
        let view = View {
            dtype,
            shape: &shape,
            strides: &[1],
            offset: 0,
            bytes,
        };
        Operand::new(&view, &shape, vec![1]).gather(0, 0, &mut numbers);
    }
    numbers
}

fn store_floats(values: &[f64], dtype: DType, bytes: &mut [u8]) {
    if dtype.size() >= 4 {
        return f64::store(values, dtype, bytes);
    }
    let mut rounded = Vec::with_capacity(bytes.len());
    values
        .iter()
        .for_each(|value| push_float(dtype, *value, &mut rounded));
    bytes.copy_from_slice(&rounded);
}
