//! Discrete Fourier transforms in f64, of each row by rustfft.

#[cfg(test)]
mod tests;

use super::{
    crew::cores,
    element::Register,
    operand::{BLOCK, Operand},
    parallel, room,
};
use crate::{
    attrs::{Attr, ints, number},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, dtype::Class};
use rustfft::{Fft, FftDirection, FftPlanner, num_complex::Complex};
use std::sync::{Arc, Mutex, PoisonError};

type C = Complex<f64>;

/// Elements of the rows that are one piece of work.
const PIECE: usize = 1 << 14;
/// Rows that a transform takes at most, with its own: those of Bluestein's are up to four times as long.
const WORK: usize = 10;
/// Rows along an axis that is not the last which are read together.
const COLUMNS: usize = 16;

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([x], [out]) = (inputs, outputs) else {
        return Err("expected one operand and one result".to_owned());
    };
    let eps = number(attrs, "eps").unwrap_or(0.0);
    let inverse = matches!(op, "ifft" | "Nx.Block.IFFT2" | "Nx.Block.IRFFT");
    let (axes, lengths) = match ints(attrs, "axes") {
        [] => (ints(attrs, "axis"), ints(attrs, "length")),
        axes => (axes, ints(attrs, "lengths")),
    };
    room::take(taken(x, axes, lengths))?;
    let transform = |length: usize| {
        let transform = Transform::kept(length, inverse);
        move |row: &[C], work: &mut Work, to: &mut [C]| {
            match op {
                "Nx.Block.IRFFT" => transform.run(&mirror(row, length), work, to),
                _ => transform.run(row, work, to),
            }
            clean(to, eps);
        }
    };
    // Rows that are neighbours, and those side by side in blocks, need no memory but their own.
    if let (Some(axis), &[length]) = (alone(x, axes), lengths) {
        let of = transform(length as usize);
        return match axis + 1 == x.shape.len() {
            true => rows(x, out, &of),
            false => blocks(x, out, axis, &of),
        };
    }
    let mut field = Field::read(x);
    for (&axis, &length) in axes.iter().zip(lengths).rev() {
        let (axis, length) = (axis as usize, length as usize);
        let extent = match op {
            "Nx.Block.RFFT" => length / 2 + 1,
            _ => length,
        };
        field = field.along(axis, extent, &transform(length));
    }
    field.write(out)
}

/// The only axis, where its rows are neighbours or lie side by side in several blocks.
fn alone(x: &View, axes: &[i64]) -> Option<usize> {
    let &[axis] = axes else { return None };
    let axis = axis as usize;
    let is_apart = axis + 1 == x.shape.len() || x.shape[..axis].iter().product::<u64>() > 1;
    (is_apart && !x.shape.contains(&0)).then_some(axis)
}

/// About the bytes that transforms take: of each core some rows, and columns where these are read together; and of all elements what
/// comes of one axis after the other.
fn taken(x: &View, axes: &[i64], lengths: &[i64]) -> usize {
    let count = |shape: &[u64]| shape.iter().copied().fold(1, u64::saturating_mul);
    let mut shape = x.shape.to_vec();
    let (mut most, mut longest) = (count(&shape), 1);
    for (&axis, &length) in axes.iter().zip(lengths).rev() {
        let extent = std::mem::replace(&mut shape[axis as usize], length as u64);
        longest = longest.max(extent).max(length as u64);
        most = most.max(count(&shape));
    }
    let is_last = |axis: &i64| *axis as usize + 1 == x.shape.len();
    let columns = if axes.iter().all(is_last) {
        0
    } else {
        2 * COLUMNS
    };
    let rows = (most / longest.max(1)).clamp(1, cores() as u64);
    let of_rows = (rows * (columns + WORK) as u64).saturating_mul(longest);
    let of_fields = if alone(x, axes).is_some() { 0 } else { 3 };
    let elements = of_rows.saturating_add(most.saturating_mul(of_fields));
    usize::try_from(elements).map_or(usize::MAX, |all| all.saturating_mul(size_of::<C>()))
}

/// The rows of `x` along its last axis, as `of` makes them.
fn rows(x: &View, out: &mut Out, of: &Rows) -> Outcome {
    let source = Source::of(x);
    let own = x.shape.last().map_or(1, |extent| *extent as usize);
    let extent = out.shape.last().map_or(1, |extent| *extent as usize);
    let (dtype, size) = (out.dtype, extent * out.dtype.size() as usize);
    let piece = (PIECE / extent).max(1);
    parallel::for_each_chunk(out.bytes, piece * size, &|at, bytes| {
        let mut work = Work::default();
        let (mut row, mut made) = (vec![C::default(); own], vec![C::default(); extent]);
        for (bytes, at) in bytes.chunks_mut(size).zip(at * piece..) {
            source.read(at * own, &mut row);
            of(&row, &mut work, &mut made);
            store(&made, dtype, bytes);
        }
        Ok(())
    })
}

/// The rows of `x` along `axis`, as `of` makes them: some columns of a block at a time.
fn blocks(x: &View, out: &mut Out, axis: usize, of: &Rows) -> Outcome {
    let source = Source::of(x);
    let inner = x.shape[axis + 1..].iter().product::<u64>() as usize;
    let (own, extent) = (x.shape[axis] as usize, out.shape[axis] as usize);
    let (dtype, size) = (out.dtype, out.dtype.size() as usize);
    let columns = COLUMNS.min(inner);
    parallel::for_each_chunk(out.bytes, extent * inner * size, &|at, bytes| {
        let mut work = Work::default();
        let (mut from, mut to) = (vec![C::default(); own], vec![C::default(); extent]);
        let mut block = vec![C::default(); columns * own];
        let mut made = vec![C::default(); columns * extent];
        for first in (0..inner).step_by(columns) {
            let count = columns.min(inner - first);
            for (i, row) in block.chunks_exact_mut(columns).enumerate() {
                source.read((at * own + i) * inner + first, &mut row[..count]);
            }
            for column in 0..count {
                let all = block[column..].iter().step_by(columns);
                from.iter_mut()
                    .zip(all)
                    .for_each(|(to, value)| *to = *value);
                of(&from, &mut work, &mut to);
                let all = made[column..].iter_mut().step_by(columns);
                all.zip(&to).for_each(|(to, value)| *to = *value);
            }
            for (i, row) in made.chunks_exact(columns).enumerate() {
                let at = (i * inner + first) * size;
                store(&row[..count], dtype, &mut bytes[at..][..count * size]);
            }
        }
        Ok(())
    })
}

/// An operand that is read as complex numbers.
struct Source<'a> {
    operand: Operand<'a>,
    /// Floats of a number.
    parts: usize,
}

impl<'a> Source<'a> {
    fn of(x: &View<'a>) -> Source<'a> {
        // A complex number is an axis of two floats.
        let parts = parts(x.dtype) as u64;
        let all = [x.shape, &[parts]].concat();
        let mut strides: Vec<i64> = x.strides.iter().map(|s| s * parts as i64).collect();
        strides.push(1);
        let view = View {
            dtype: x.dtype.part(),
            offset: x.offset * parts,
            ..*x
        };
        Source {
            operand: Operand::new(&view, &all, strides),
            parts: parts as usize,
        }
    }

    /// Reads the numbers from the row-major index `start` on.
    fn read(&self, start: usize, to: &mut [C]) {
        let mut floats = [0f64; BLOCK];
        for (to, start) in to.chunks_mut(BLOCK / 2).zip((start..).step_by(BLOCK / 2)) {
            let floats = &mut floats[..to.len() * self.parts];
            self.operand.gather(0, (start * self.parts) as u64, floats);
            for (to, part) in to.iter_mut().zip(floats.chunks_exact(self.parts)) {
                *to = C::new(part[0], part.get(1).copied().unwrap_or(0.0));
            }
        }
    }
}

/// Stores numbers, or their real parts.
fn store(values: &[C], dtype: DType, bytes: &mut [u8]) {
    let (parts, size) = (parts(dtype), dtype.size() as usize);
    let mut floats = [0.0; BLOCK];
    let blocks = bytes.chunks_mut(BLOCK / 2 * size);
    for (values, bytes) in values.chunks(BLOCK / 2).zip(blocks) {
        for (to, value) in floats.chunks_exact_mut(parts).zip(values) {
            to.copy_from_slice(&[value.re, value.im][..parts]);
        }
        f64::store(&floats[..values.len() * parts], dtype.part(), bytes);
    }
}

/// A tensor in row-major order.
struct Field {
    shape: Vec<u64>,
    values: Vec<C>,
}

impl Field {
    fn read(x: &View) -> Field {
        let shape = x.shape.to_vec();
        let count = shape.iter().product::<u64>() as usize;
        if count == 0 {
            let values = Vec::new();
            return Field { shape, values };
        }
        let source = Source::of(x);
        let mut values = vec![C::default(); count];
        parallel::for_each_part(&mut values, PIECE, &|at, to| source.read(at * PIECE, to));
        Field { shape, values }
    }

    /// The rows along `axis` as `of` makes them, of `extent` elements each.
    fn along(&self, axis: usize, extent: usize, of: &Rows) -> Field {
        let own = self.shape[axis] as usize;
        let inner = self.shape[axis + 1..].iter().product::<u64>() as usize;
        let outer = self.shape[..axis].iter().product::<u64>() as usize;
        let mut shape = self.shape.clone();
        shape[axis] = extent as u64;
        let rows = outer * inner;
        let mut values = vec![C::default(); rows * extent];
        if rows == 0 {
            return Field { shape, values };
        }
        let piece = (PIECE / extent).clamp(1, rows);
        if inner == 1 {
            parallel::for_each_part(&mut values, piece * extent, &|at, to| {
                let mut work = Work::default();
                for (to, at) in to.chunks_mut(extent).zip(at * piece..) {
                    of(&self.values[at * own..][..own], &mut work, to);
                }
            });
            return Field { shape, values };
        }
        // Neighbours are read and stored together.
        let columns = COLUMNS.min(inner);
        let strips = inner.div_ceil(columns);
        let done = parallel::collect(outer * strips, |at| {
            let first = at % strips * columns;
            let count = columns.min(inner - first);
            let start = at / strips * own * inner + first;
            let mut block = vec![C::default(); count * own];
            // An axis may be empty: its rows are zeros.
            let from = self.values.get(start..).unwrap_or_default();
            for (i, row) in from.chunks(inner).take(own).enumerate() {
                let to = block[i..].iter_mut().step_by(own);
                to.zip(&row[..count]).for_each(|(to, value)| *to = *value);
            }
            // As they are stored: all first elements, then all second ones.
            let mut made = vec![C::default(); count * extent];
            let mut work = Work::default();
            let mut row = vec![C::default(); extent];
            for (at, own) in block.chunks_exact(own.max(1)).enumerate() {
                of(own, &mut work, &mut row);
                let to = made[at..].iter_mut().step_by(count);
                to.zip(&row).for_each(|(to, value)| *to = *value);
            }
            made
        });
        let piece = (PIECE / inner).max(1);
        parallel::for_each_part(&mut values, piece * inner, &|at, rows| {
            for (row, at) in rows.chunks_mut(inner).zip(at * piece..) {
                let strips = &done[at / extent * strips..][..strips];
                for (to, made) in row.chunks_mut(columns).zip(strips) {
                    to.copy_from_slice(&made[at % extent * to.len()..][..to.len()]);
                }
            }
        });
        Field { shape, values }
    }

    fn write(&self, out: &mut Out) -> Outcome {
        let (dtype, size) = (out.dtype, out.dtype.size() as usize);
        parallel::for_each_chunk(out.bytes, PIECE * size, &|at, bytes| {
            store(
                &self.values[at * PIECE..][..bytes.len() / size],
                dtype,
                bytes,
            );
            Ok(())
        })
    }
}

/// Floats of a number, computed with elsewhere or not.
fn parts(dtype: DType) -> usize {
    match dtype.class() {
        Some(Class::Complex) => 2,
        _ => 1,
    }
}

/// The whole spectrum of a real row of `length` elements from its first half.
fn mirror(row: &[C], length: usize) -> Vec<C> {
    let half = length / 2 + 1;
    let mut row = row[..row.len().min(half)].to_vec();
    row.resize(half, C::default());
    row.extend(
        (half..length)
            .map(|i| length - i)
            .map(|i| row[i].conj())
            .collect::<Vec<_>>(),
    );
    row
}

fn clean(row: &mut [C], eps: f64) {
    let part = |x: f64| if x.abs() <= eps { 0.0 } else { x };
    for value in row {
        *value = C::new(part(value.re), part(value.im));
    }
}

/// What becomes of a row.
type Rows<'a> = dyn Fn(&[C], &mut Work, &mut [C]) + Sync + 'a;

/// What a transform computes in.
#[derive(Default)]
struct Work {
    row: Vec<C>,
    scratch: Vec<C>,
}

/// A transform of one length in one direction.
#[derive(Clone)]
struct Transform(Arc<dyn Fft<f64>>);

/// Transforms that were used last, the latest one first.
static KEPT: Mutex<Vec<Transform>> = Mutex::new(Vec::new());
/// Elements of all that are kept, of which each takes some tens of bytes.
const MOST_KEPT: usize = 1 << 21;

impl Transform {
    /// One that was used before, or a new one.
    fn kept(length: usize, inverse: bool) -> Transform {
        let direction = match inverse {
            true => FftDirection::Inverse,
            false => FftDirection::Forward,
        };
        let is_it =
            |Transform(of): &Transform| of.len() == length && of.fft_direction() == direction;
        let lock = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        if let Some(at) = kept.iter().position(is_it) {
            kept[..=at].rotate_right(1);
            return kept[0].clone();
        }
        drop(kept);
        // A planner keeps all that it plans.
        let made = Transform(FftPlanner::new().plan_fft(length, direction));
        let mut kept = lock();
        kept.insert(0, made.clone());
        let mut elements = 0;
        kept.retain(|Transform(of)| {
            elements += of.len();
            elements <= MOST_KEPT
        });
        made
    }

    /// The first elements of the transform of a row, which is cut or goes on with zeros.
    fn run(&self, row: &[C], work: &mut Work, to: &mut [C]) {
        let Transform(of) = self;
        let row = &row[..row.len().min(of.len())];
        work.row.clear();
        work.row.extend_from_slice(row);
        work.row.resize(of.len(), C::default());
        work.scratch
            .resize(of.get_inplace_scratch_len(), C::default());
        of.process_with_scratch(&mut work.row, &mut work.scratch);
        to.copy_from_slice(&work.row[..to.len()]);
        if of.fft_direction() == FftDirection::Inverse {
            let length = of.len() as f64;
            to.iter_mut().for_each(|x| *x /= length);
        }
    }
}
