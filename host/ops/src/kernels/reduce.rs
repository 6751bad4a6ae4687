//! Reductions and arg reductions, and the order in which they visit elements. How elements fold is in `fold`.
//!
//! The order depends on the request alone, never on the number of cores: stretches of fixed length fold apart and
//! merge in order.

use std::marker::PhantomData;

use nx_vulkan_abi::dtype::DType;

use super::element::{Complex, FromElement, Register, Truth, by_register};
use super::elementwise::{TASK, is_single};
use super::fold::{Each, Extreme, Fold};
use super::kernel::Sums;
use super::lanes::{self, InPlace};
use super::number::{Number, Ring};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::view::{Out, Outcome, View};

/// Elements that fold before they merge with those before them.
const STRETCH: u64 = 1 << 16;

/// Elements side by side that are not worth a call of their own.
const FEW: u64 = 64;

pub(crate) fn sum(space: &Space, out: &mut Out) -> Outcome {
    match out.dtype.is_complex() {
        true => each(space, out, Complex::<f64>::ZERO, plain, Complex::add),
        false => fold(
            space,
            out,
            (0.0, 0),
            f64::add,
            i64::wrapping_add,
            lanes::SUM,
        ),
    }
}

pub(crate) fn product(space: &Space, out: &mut Out) -> Outcome {
    let one = Complex { re: 1.0, im: 0.0 };
    match out.dtype.is_complex() {
        true => each(space, out, one, plain, Complex::<f64>::multiply),
        false => fold(
            space,
            out,
            (1.0, 1),
            f64::multiply,
            i64::wrapping_mul,
            lanes::PRODUCT,
        ),
    }
}

pub(crate) fn max(space: &Space, out: &mut Out) -> Outcome {
    if space.is_in_place(out) {
        return visit(space, &in_place(f32::LOWEST, f32::larger, lanes::MAX), out);
    }
    by_register!(out.dtype, R => each(space, out, R::LOWEST, plain, R::larger))
}

pub(crate) fn min(space: &Space, out: &mut Out) -> Outcome {
    if space.is_in_place(out) {
        return visit(
            space,
            &in_place(f32::HIGHEST, f32::smaller, lanes::MIN),
            out,
        );
    }
    by_register!(out.dtype, R => each(space, out, R::HIGHEST, plain, R::smaller))
}

pub(crate) fn all(space: &Space, out: &mut Out) -> Outcome {
    each(space, out, 1, truth, |all, x| all & x)
}

pub(crate) fn any(space: &Space, out: &mut Out) -> Outcome {
    each(space, out, 0, truth, |any, x| any | x)
}

/// The index of the largest element; with `last` the last of equal ones.
pub(crate) fn largest(space: &Space, from: DType, last: bool, out: &mut Out) -> Outcome {
    by_register!(from, R => visit(space, &Extreme { largest: true, last, register: PhantomData::<fn(R)> }, out))
}

/// The index of the smallest element; with `last` the last of equal ones.
pub(crate) fn smallest(space: &Space, from: DType, last: bool, out: &mut Out) -> Outcome {
    by_register!(from, R => visit(space, &Extreme { largest: false, last, register: PhantomData::<fn(R)> }, out))
}

/// Floats in f64 from what they are in the result's type, integers wrapping in 64 bits.
fn fold(
    space: &Space,
    out: &mut Out,
    start: (f64, i64),
    floats: impl Fn(f64, f64) -> f64 + Sync,
    integers: impl Fn(i64, i64) -> i64 + Sync,
    cells: InPlace<f64>,
) -> Outcome {
    if space.is_in_place(out) {
        return visit(space, &in_place(start.0, floats, cells), out);
    }
    let single = is_single(out.dtype);
    let wide = |o: &Operand, shift: i64, start: u64, to: &mut [f64]| {
        o.gather_wide(single, shift, start, to)
    };
    match out.dtype.is_float() {
        true => each(space, out, start.0, wide, floats),
        false => each(space, out, start.1, plain, integers),
    }
}

/// The kept and the reduced axes of an operand.
pub(crate) struct Space<'a> {
    /// Nothing when there are no elements at all.
    axes: Option<(Operand<'a>, Operand<'a>)>,
    sums: Sums,
}

impl<'a> Space<'a> {
    pub(super) fn new(x: &View<'a>, reduced: impl Fn(i64) -> bool, sums: Sums) -> Space<'a> {
        if x.shape.contains(&0) {
            return Space { axes: None, sums };
        }
        let part = |wanted: bool| {
            let axes = || (0..x.shape.len()).filter(|axis| reduced(*axis as i64) == wanted);
            let shape: Vec<u64> = axes().map(|axis| x.shape[axis]).collect();
            Operand::new(x, &shape, axes().map(|axis| x.strides[axis]).collect())
        };
        Space {
            axes: Some((part(false), part(true))),
            sums,
        }
    }

    /// Whether f32 becomes f32, and in the fast way.
    fn is_in_place(&self, out: &Out) -> bool {
        let from = self.axes.as_ref().map(|(kept, _)| kept.dtype);
        self.sums == Sums::Own && out.dtype == DType::F32 && from == Some(DType::F32)
    }
}

fn plain<R: FromElement>(from: &Operand, shift: i64, start: u64, to: &mut [R]) {
    from.gather(shift, start, to);
}

fn truth(from: &Operand, shift: i64, start: u64, to: &mut [u8]) {
    let mut truths = [Truth(false); BLOCK];
    from.gather(shift, start, &mut truths[..to.len()]);
    to.iter_mut()
        .zip(truths)
        .for_each(|(to, x)| *to = u8::from(x.0));
}

fn each<R: Register>(
    space: &Space,
    out: &mut Out,
    start: R,
    read: impl Fn(&Operand, i64, u64, &mut [R]) + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> Outcome {
    visit(
        space,
        &Each {
            start,
            read,
            combine,
            cells: None,
        },
        out,
    )
}

/// An associative function of f32 numbers, taken where they lie side by side.
fn in_place<R: Register>(
    start: R,
    combine: impl Fn(R, R) -> R + Sync,
    cells: InPlace<R>,
) -> impl Fold {
    Each {
        start,
        read: plain,
        combine,
        cells: Some(cells),
    }
}

fn visit<F: Fold>(space: &Space, fold: &F, out: &mut Out) -> Outcome {
    let (dtype, size) = (out.dtype, out.dtype.size() as usize);
    let Some((kept, reduced)) = &space.axes else {
        let states = vec![fold.start(); out.bytes.len() / size];
        fold.store(&states, dtype, out.bytes);
        return Ok(());
    };
    // Results side by side where the reduced axes lie further apart in memory, or where each takes few elements.
    let ((extent, near), (_, far)) = (kept.inner(), reduced.inner());
    let side_by_side =
        extent >= 8 && (near.unsigned_abs() < far.unsigned_abs() || reduced.count() <= 16);
    let width = if side_by_side {
        BLOCK
    } else {
        (TASK as u64 / reduced.count()).max(1) as usize
    };
    parallel::for_each_chunk(out.bytes, width * size, &|task, bytes| {
        let first = (task * width) as u64;
        let indices = first..first + (bytes.len() / size) as u64;
        let states = if side_by_side {
            columns(kept, reduced, fold, indices)
        } else {
            let mut buffer = [F::Item::default(); BLOCK];
            indices
                .map(|index| row(reduced, kept.distance(index), fold, &mut buffer))
                .collect()
        };
        fold.store(&states, dtype, bytes);
        Ok(())
    })
}

/// One result: the elements of all reduced axes, from the one at `shift` on.
fn row<F: Fold>(
    reduced: &Operand,
    shift: i64,
    fold: &F,
    buffer: &mut [F::Item; BLOCK],
) -> F::State {
    let (count, (extent, _)) = (reduced.count(), reduced.inner());
    let stretch = |from: u64, buffer: &mut [F::Item; BLOCK]| {
        let (mut state, mut from, until) = (fold.start(), from, count.min(from + STRETCH));
        while from < until {
            let side_by_side = (until - from).min(extent - from % extent);
            if side_by_side >= FEW
                && fold.run_in_place(&mut state, reduced, shift, from..from + side_by_side)
            {
                from += side_by_side;
                continue;
            }
            let items = &mut buffer[..BLOCK.min((until - from) as usize)];
            fold.read(reduced, shift, from, items);
            fold.run(&mut state, items, from);
            from += items.len() as u64;
        }
        state
    };
    if count <= STRETCH {
        return stretch(0, buffer);
    }
    let parts = parallel::collect(count.div_ceil(STRETCH) as usize, |i| {
        stretch(i as u64 * STRETCH, &mut [F::Item::default(); BLOCK])
    });
    merge(fold, parts)
}

/// Results side by side: for each index of the reduced axes, one stretch of the kept ones.
fn columns<F: Fold>(
    kept: &Operand,
    reduced: &Operand,
    fold: &F,
    indices: std::ops::Range<u64>,
) -> Vec<F::State> {
    let width = (indices.end - indices.start) as usize;
    let (count, rows) = (reduced.count(), (STRETCH / width as u64).max(1));
    let stretch = |from: u64| {
        let mut states = vec![fold.start(); width];
        let mut buffer = [F::Item::default(); BLOCK];
        for index in from..count.min(from + rows) {
            let shift = reduced.distance(index);
            if fold.steps_in_place(&mut states, kept, shift, indices.start) {
                continue;
            }
            fold.read(kept, shift, indices.start, &mut buffer[..width]);
            states
                .iter_mut()
                .zip(buffer)
                .for_each(|(state, item)| fold.step(state, item, index));
        }
        states
    };
    let parts = parallel::collect(count.div_ceil(rows) as usize, |i| stretch(i as u64 * rows));
    let mut states = vec![fold.start(); width];
    for part in parts {
        let both = states.iter_mut().zip(part);
        both.for_each(|(state, part)| fold.merge(state, part));
    }
    states
}

fn merge<F: Fold>(fold: &F, parts: impl IntoIterator<Item = F::State>) -> F::State {
    let mut state = fold.start();
    parts
        .into_iter()
        .for_each(|part| fold.merge(&mut state, part));
    state
}
