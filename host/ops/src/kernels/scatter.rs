//! `indexed_add` and `indexed_put`: updates to parts of a tensor, in their order.

use super::crew::{self, Wakes};
use super::element::Register;
use super::elementwise::TASK;
use super::movement::{Place, contiguous, copy, integers};
use super::number::Number;
use super::operand::{BLOCK, Operand};
use super::{convert, parallel};
use crate::{
    attrs::{Attr, ints},
    element::push_float,
    partial::INDEX,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

/// Elements of a part that are too few to be converted on their own.
const FEW: usize = 16;
/// Updates from which on several cores share them.
const MANY: usize = 1 << 18;
/// Bytes of a part from which on cores share those that are put.
const LONG: usize = 256;
/// Elements of a piece of a tensor that one core adds to, and how many such tasks each core has.
const PIECE: usize = 4096;
const TASKS: usize = 4;
/// One of so many elements has an update where all elements get a sum, of so many at most.
const DENSE: usize = 2;
const MOST_SUMS: usize = 1 << 20;

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
    let rows = updates.len() / (parts.elements * parts.size).max(1);
    if rows == 0 {
        return Ok(());
    }
    // The first axes alone number parts that lie behind each other.
    let is_rows = axes.iter().copied().eq(0..axes.len());
    let unit = if is_rows { parts.elements as i64 } else { 1 };
    let steps: Vec<(i64, i64)> = axes
        .iter()
        .map(|&axis| (out.shape[axis] as i64, strides[axis] / unit))
        .collect();
    let places = places(&indices, &steps, rows)?;
    if is_rows {
        let rows = Rows {
            parts: &places,
            updates: &updates,
            elements: parts.elements,
            dtype: out.dtype,
        };
        match (op, out.dtype.part().is_float()) {
            ("indexed_put", _) => rows.put(out.bytes),
            // Added to a number, it leaves it as it is, also where that is a zero.
            (_, true) => rows.add(out.bytes, -0.0, |x: f64, y| x + y, store_floats),
            (_, false) => rows.add(out.bytes, 0, i64::wrapping_add, i64::store),
        }
        return Ok(());
    }
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

/// Where the part of each update begins, by its indices along axes of those extents and steps.
fn places(indices: &[i64], axes: &[(i64, i64)], rows: usize) -> Result<Vec<i64>, String> {
    let (mut places, mut are_inside) = (vec![0; rows], true);
    let mut add = |place: &mut i64, index: &i64, (extent, step): (i64, i64)| {
        are_inside &= (0..extent).contains(index);
        *place = place.wrapping_add(index.wrapping_mul(step));
    };
    match *axes {
        [axis] => {
            let both = places.iter_mut().zip(indices);
            both.for_each(|(place, index)| add(place, index, axis));
        }
        _ => {
            for (place, indices) in places.iter_mut().zip(indices.chunks(axes.len().max(1))) {
                let both = indices.iter().zip(axes);
                both.for_each(|(index, axis)| add(place, index, *axis));
            }
        }
    }
    are_inside
        .then_some(places)
        .ok_or_else(|| INDEX.reason.to_owned())
}

/// Updates to parts of a tensor that lie behind each other. Cores that share them have parts of their own.
struct Rows<'a> {
    /// The number of the part that each update goes to.
    parts: &'a [i64],
    updates: &'a [u8],
    /// Elements of a part.
    elements: usize,
    dtype: DType,
}

impl Rows<'_> {
    /// Bytes of a part.
    fn size(&self) -> usize {
        self.elements * self.dtype.size() as usize
    }

    /// Puts the updates, in their order.
    fn put(&self, all: &mut [u8]) {
        let size = self.size();
        match size {
            1 => self.put_cells::<1>(all),
            2 => self.put_cells::<2>(all),
            4 => self.put_cells::<4>(all),
            8 => self.put_cells::<8>(all),
            16 => self.put_cells::<16>(all),
            ..LONG => {
                for (part, own) in self.parts.iter().zip(self.updates.chunks(size)) {
                    all[*part as usize * size..][..size].copy_from_slice(own);
                }
            }
            _ => {
                let own = (all.len() / size).div_ceil(crew::cores());
                parallel::for_each_part(all, own * size, &|core, bytes| {
                    let (first, theirs) = ((core * own) as i64, bytes.len() / size);
                    for (part, update) in self.parts.iter().zip(self.updates.chunks(size)) {
                        let part = (part - first) as usize;
                        if part < theirs {
                            bytes[part * size..][..size].copy_from_slice(update);
                        }
                    }
                });
            }
        }
    }

    /// The same of parts of `SIZE` bytes.
    fn put_cells<const SIZE: usize>(&self, all: &mut [u8]) {
        let cells = all.as_chunks_mut::<SIZE>().0;
        for (part, own) in self.parts.iter().zip(self.updates.as_chunks::<SIZE>().0) {
            cells[*part as usize] = *own;
        }
    }

    /// The updates of so many pieces of `1 << bits` parts each, in their order, and where those of each piece begin among them.
    fn pieces(&self, bits: u32, count: usize) -> (Vec<usize>, Vec<usize>) {
        let mut starts = vec![0; count + 1];
        for part in self.parts {
            starts[(*part as usize >> bits) + 1] += 1;
        }
        for piece in 0..count {
            starts[piece + 1] += starts[piece];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; self.parts.len()];
        for (row, part) in self.parts.iter().enumerate() {
            let at = &mut next[*part as usize >> bits];
            rows[*at] = row;
            *at += 1;
        }
        (rows, starts)
    }

    /// What is added to each of so many elements.
    fn sums<T: Register>(&self, count: usize, nothing: T, plus: impl Fn(T, T) -> T) -> Vec<T> {
        let updates = numbers::<T>(self.updates, self.dtype.part());
        let length = updates.len() / self.parts.len().max(1);
        let mut sums = vec![nothing; count];
        if length == 1 {
            for (part, x) in self.parts.iter().zip(&updates) {
                let sum = &mut sums[*part as usize];
                *sum = plus(*sum, *x);
            }
            return sums;
        }
        for (part, own) in self.parts.iter().zip(updates.chunks(length.max(1))) {
            let both = sums[*part as usize * length..].iter_mut().zip(own);
            both.for_each(|(sum, x)| *sum = plus(*sum, *x));
        }
        sums
    }

    /// Adds the updates as [`Parts::add`] does. A sum begins as `nothing`.
    fn add<T: Number>(
        &self,
        all: &mut [u8],
        nothing: T,
        plus: impl Fn(T, T) -> T + Sync,
        store: fn(&[T], DType, &mut [u8]),
    ) {
        let (dtype, size) = (self.dtype.part(), self.size());
        let length = size / dtype.size() as usize;
        let element = dtype.size() as usize;
        let count = all.len() / element;
        let is_dense = self.updates.len() >= all.len() / DENSE && count <= MOST_SUMS;
        if length < FEW && self.parts.len() < MANY && is_dense {
            let sums = self.sums(count, nothing, &plus);
            parallel::parts(all, TASK * element, Wakes::Late, &|task, bytes| {
                let mut changed = numbers::<T>(bytes, dtype);
                let sums = &sums[task * TASK..][..changed.len()];
                let own = changed.iter_mut().zip(sums);
                own.for_each(|(before, sum)| *before = plus(*before, *sum));
                // A NaN would not keep its bits on the way.
                let kept = changed.iter().any(|x| x.is_nan()).then(|| bytes.to_vec());
                store(&changed, dtype, bytes);
                let parts = bytes
                    .chunks_mut(element)
                    .zip(kept.iter().flat_map(|kept| kept.chunks(element)));
                for ((to, before), (sum, x)) in parts.zip(sums.iter().zip(&changed)) {
                    if x.is_nan() && *sum == nothing {
                        to.copy_from_slice(before);
                    }
                }
            });
            return;
        }
        let bits = (PIECE / length).max(1).ilog2();
        let (own, parts) = (1 << bits, all.len() / size);
        let count = parts.div_ceil(own);
        let (rows, starts) = self.pieces(bits, count);
        let several = count.div_ceil(TASKS * crew::cores());
        parallel::parts(all, several * own * size, Wakes::Late, &|task, bytes| {
            // Of each part 1 more than its number in the order in which they come.
            let mut known = vec![0u32; own];
            let mut distinct = Vec::new();
            let (mut sums, mut block): (Vec<T>, Vec<u8>) = (Vec::new(), Vec::new());
            for (bytes, piece) in bytes.chunks_mut(own * size).zip(task * several..) {
                let rows = &rows[starts[piece]..starts[piece + 1]];
                sums.clear();
                for rows in rows.chunks((BLOCK / length).max(1)) {
                    block.clear();
                    let updates = rows.iter().map(|row| &self.updates[row * size..][..size]);
                    updates.for_each(|update| append(&mut block, update));
                    let updates = numbers::<T>(&block, dtype);
                    for (row, update) in rows.iter().zip(updates.chunks(length)) {
                        let part = self.parts[*row] as usize & (own - 1);
                        let Some(number) = known[part].checked_sub(1) else {
                            distinct.push(part);
                            known[part] = distinct.len() as u32;
                            append(&mut sums, update);
                            continue;
                        };
                        let both = sums[number as usize * length..].iter_mut().zip(update);
                        both.for_each(|(sum, x)| *sum = plus(*sum, *x));
                    }
                }
                block.clear();
                let places = distinct.iter().map(|part| &bytes[part * size..][..size]);
                places.for_each(|before| append(&mut block, before));
                let before = numbers::<T>(&block, dtype);
                let both = sums.iter_mut().zip(before);
                both.for_each(|(sum, before)| *sum = plus(before, *sum));
                store(&sums, dtype, &mut block);
                for (part, changed) in distinct.drain(..).zip(block.chunks(size)) {
                    bytes[part * size..][..size].copy_from_slice(changed);
                    known[part] = 0;
                }
            }
        });
    }
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
        plus: impl Fn(T, T) -> T,
        store: fn(&[T], DType, &mut [u8]),
    ) {
        let dtype = out.dtype.part();
        let updates = numbers::<T>(updates, dtype);
        let length = updates.len() / places.len().max(1);
        // Of each place 1 more than its number in the order in which they come.
        let mut known = vec![0u32; out.bytes.len() / self.size];
        let (mut distinct, mut sums) = (Vec::new(), Vec::new());
        for (at, own) in places.iter().zip(updates.chunks(length.max(1))) {
            let Some(number) = known[*at as usize].checked_sub(1) else {
                distinct.push(*at);
                known[*at as usize] = distinct.len() as u32;
                sums.extend_from_slice(own);
                continue;
            };
            let both = sums[number as usize * length..].iter_mut().zip(own);
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

/// Goes on with a few elements or bytes, without a call where they are one element.
fn append<T: Copy>(to: &mut Vec<T>, own: &[T]) {
    match own {
        [x] => to.push(*x),
        [a, b, c, d] => to.extend_from_slice(&[*a, *b, *c, *d]),
        _ => to.extend_from_slice(own),
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
