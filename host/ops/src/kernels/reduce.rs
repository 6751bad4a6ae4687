//! Reductions and arg reductions, and the order in which they visit elements. How elements fold is in `fold`.
//!
//! The order depends on the request alone, never on the number of cores: stretches of fixed length fold apart and
//! merge in order.

use std::marker::PhantomData;
use std::ops::Range;

use nx_vulkan_abi::dtype::{Class, DType};

use super::element::{Complex, FromElement, Register, Truth, by_register};
use super::elementwise::{TASK, is_single};
use super::fold::{Each, Extreme, Fold};
use super::kernel::Sums;
use super::lanes::{self, Extremes, InPlace};
use super::number::{Number, Ring};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::view::{Out, Outcome, View};

/// Elements that fold before they merge with those before them.
const STRETCH: u64 = 1 << 16;

/// Elements side by side that are not worth a call of their own.
const FEW: u64 = 64;

/// Results side by side whose elements are worth a call of their own.
const NARROWEST: u64 = 8;

pub(crate) fn sum(space: &Space, out: &mut Out) -> Outcome {
    match out.dtype.class() {
        Some(Class::Complex) => each(space, out, Complex::<f64>::ZERO, plain, Complex::add),
        Some(Class::Float) => floats(space, out, 0.0, f64::add, lanes::sum_of_floats),
        Some(Class::Unsigned | Class::Signed) | None => {
            let cells = space.from().and_then(lanes::sum_of_integers);
            in_place(space, out, 0, i64::wrapping_add, cells)
        }
    }
}

pub(crate) fn product(space: &Space, out: &mut Out) -> Outcome {
    let one = Complex { re: 1.0, im: 0.0 };
    match out.dtype.class() {
        Some(Class::Complex) => each(space, out, one, plain, Complex::<f64>::multiply),
        Some(Class::Float) => floats(space, out, 1.0, f64::multiply, lanes::product_of_floats),
        Some(Class::Unsigned | Class::Signed) | None => {
            each(space, out, 1, plain, i64::wrapping_mul)
        }
    }
}

pub(crate) fn max(space: &Space, out: &mut Out) -> Outcome {
    by_register!(out.dtype, R => {
        let cells = R::LARGEST.filter(|_| space.is_in_place(out));
        in_place(space, out, R::LOWEST, R::larger, cells)
    })
}

pub(crate) fn min(space: &Space, out: &mut Out) -> Outcome {
    by_register!(out.dtype, R => {
        let cells = R::SMALLEST.filter(|_| space.is_in_place(out));
        in_place(space, out, R::HIGHEST, R::smaller, cells)
    })
}

pub(crate) fn all(space: &Space, out: &mut Out) -> Outcome {
    each(space, out, 1, truth, |all, x| all & x)
}

pub(crate) fn any(space: &Space, out: &mut Out) -> Outcome {
    each(space, out, 0, truth, |any, x| any | x)
}

/// The index of the largest element; with `last` the last of equal ones.
pub(crate) fn largest(space: &Space, from: DType, last: bool, out: &mut Out) -> Outcome {
    by_register!(from, R => visit(space, &extreme::<R>(from, true, last), out))
}

/// The index of the smallest element; with `last` the last of equal ones.
pub(crate) fn smallest(space: &Space, from: DType, last: bool, out: &mut Out) -> Outcome {
    by_register!(from, R => visit(space, &extreme::<R>(from, false, last), out))
}

fn extreme<R: Extremes>(from: DType, largest: bool, last: bool) -> Extreme<R> {
    Extreme {
        largest,
        last,
        is_in_place: lanes::is_narrow(from) || from.size() as usize == size_of::<R>(),
        register: PhantomData,
    }
}

/// Floats in f64 from what they are in the result's type.
fn floats(
    space: &Space,
    out: &mut Out,
    start: f64,
    combine: impl Fn(f64, f64) -> f64 + Sync,
    cells: fn(DType) -> Option<InPlace<f64>>,
) -> Outcome {
    let from = space.from().filter(|_| space.is_in_place(out));
    if let Some(cells) = from.and_then(cells) {
        return in_place(space, out, start, combine, Some(cells));
    }
    let single = is_single(out.dtype);
    let wide = |o: &Operand, shift: i64, start: u64, to: &mut [f64]| {
        o.gather_wide(single, shift, start, to)
    };
    each(space, out, start, wide, combine)
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

    fn from(&self) -> Option<DType> {
        self.axes.as_ref().map(|(kept, _)| kept.dtype)
    }

    /// Whether elements of the result's type may be taken where they lie. Floats of either order are as exact, but not the
    /// same.
    fn is_in_place(&self, out: &Out) -> bool {
        let is_exact = out.dtype.is_integer();
        let is_wide = out.dtype.size() > 1;
        self.from() == Some(out.dtype) && (is_exact || is_wide && self.sums == Sums::Own)
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

/// An associative function of elements that are taken where they lie side by side, by `cells` if there are such loops.
fn in_place<R: Register>(
    space: &Space,
    out: &mut Out,
    start: R,
    combine: impl Fn(R, R) -> R + Sync,
    cells: Option<InPlace<R>>,
) -> Outcome {
    let fold = Each {
        start,
        read: plain,
        combine,
        cells,
    };
    visit(space, &fold, out)
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
    let is_short = reduced.count() <= 16 && !are_rows(reduced, fold);
    let side_by_side =
        extent >= NARROWEST && (near.unsigned_abs() < far.unsigned_abs() || is_short);
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
            rows(kept, reduced, fold, indices)
        };
        fold.store(&states, dtype, bytes);
        Ok(())
    })
}

/// Whether each result takes a row of elements that lie side by side, as `fold` takes them where they lie.
fn are_rows(reduced: &Operand, fold: &impl Fold) -> bool {
    let (length, near) = reduced.inner();
    let is_row = near == 1 && reduced.count() == length && length <= STRETCH;
    is_row && fold.takes_rows(reduced, length as usize)
}

/// Results of which each takes elements that lie together.
fn rows<F: Fold>(
    kept: &Operand,
    reduced: &Operand,
    fold: &F,
    indices: Range<u64>,
) -> Vec<F::State> {
    let ((length, _), (width, step)) = (reduced.inner(), kept.inner());
    let are_rows = are_rows(reduced, fold);
    let mut states = vec![fold.start(); (indices.end - indices.start) as usize];
    let mut index = indices.start;
    while are_rows && index < indices.end {
        let own = &mut states[(index - indices.start) as usize..];
        let count = own.len().min((width - index % width) as usize);
        let first = kept.distance(index);
        fold.rows(&mut own[..count], reduced, first, step, length as usize);
        index += count as u64;
    }
    let mut buffer = [F::Item::default(); BLOCK];
    for (state, index) in states[(index - indices.start) as usize..]
        .iter_mut()
        .zip(index..)
    {
        *state = row(reduced, kept.distance(index), fold, &mut buffer);
    }
    states
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
    indices: Range<u64>,
) -> Vec<F::State> {
    let width = (indices.end - indices.start) as usize;
    let (count, rows) = (reduced.count(), (STRETCH / width as u64).max(1));
    let stretch = |from: u64| {
        let mut states = vec![fold.start(); width];
        let mut buffer = [F::Item::default(); BLOCK];
        let range = from..count.min(from + rows);
        if grids(kept, reduced, fold, indices.start, &range, &mut states) {
            return states;
        }
        for index in range {
            let shift = reduced.distance(index);
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

/// The elements of results side by side, from the one at `start` on, where they lie: of as many results at a time as have
/// none of another row between them. Says that it cannot where elements are few or apart.
fn grids<F: Fold>(
    kept: &Operand,
    reduced: &Operand,
    fold: &F,
    start: u64,
    indices: &Range<u64>,
    states: &mut [F::State],
) -> bool {
    let ((width, near), (extent, step)) = (kept.inner(), reduced.inner());
    if near != 1 || width < NARROWEST || !fold.is_in_place() {
        return false;
    }
    let (mut start, mut rest) = (start, states);
    while !rest.is_empty() {
        let length = rest.len().min((width - start % width) as usize);
        let (own, others) = rest.split_at_mut(length);
        let mut from = indices.start;
        while from < indices.end {
            let until = indices.end.min(from - from % extent + extent);
            let shift = reduced.distance(from) + kept.distance(start);
            fold.grid(own, kept, shift, step, from..until);
            from = until;
        }
        (start, rest) = (start + length as u64, others);
    }
    true
}

fn merge<F: Fold>(fold: &F, parts: impl IntoIterator<Item = F::State>) -> F::State {
    let mut state = fold.start();
    parts
        .into_iter()
        .for_each(|part| fold.merge(&mut state, part));
    state
}
