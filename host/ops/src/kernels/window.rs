//! Reductions of windows: at each position of a window its elements fold into one, in row-major order. What lies in the
//! padding does not take part.

use std::ops::Range;

use super::element::{Complex, Register, by_register};
use super::number::{Number, Ring};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};
use nx_vulkan_abi::dtype::Class;

/// A window along one axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Elements of the axis, without padding.
    pub(super) extent: i64,
    pub(super) window: i64,
    pub(super) stride: i64,
    pub(super) dilation: i64,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// The windows of a request whose attributes are complete.
pub(crate) fn axes(shape: &[u64], attrs: &[Attr]) -> Vec<Axis> {
    let at = |name: &str, index: usize| ints(attrs, name).get(index).copied();
    let axis = |(index, &extent): (usize, &u64)| Axis {
        extent: extent as i64,
        window: at("window", index).unwrap_or(1),
        stride: at("strides", index).unwrap_or(1),
        dilation: at("window_dilations", index).unwrap_or(1),
        low: at("padding", 2 * index).unwrap_or(0),
        high: at("padding", 2 * index + 1).unwrap_or(0),
    };
    shape.iter().enumerate().map(axis).collect()
}

impl Axis {
    /// One window over all of an axis.
    pub(super) fn whole(extent: i64) -> Axis {
        Axis {
            extent,
            window: extent,
            stride: 1,
            dilation: 1,
            low: 0,
            high: 0,
        }
    }

    /// How many positions the window has, as Nx counts them.
    pub(crate) fn positions(&self) -> u64 {
        let [extent, low, high] = [self.extent, self.low, self.high].map(i128::from);
        let reach = i128::from(self.window - 1) * i128::from(self.dilation) + 1;
        let positions = (extent + low + high - reach) / i128::from(self.stride) + 1;
        u64::try_from(positions.max(0)).unwrap_or(u64::MAX)
    }

    /// Where an element of the window at `position` lies, which may be in the padding.
    pub(super) fn place(&self, position: i64, element: i64) -> i64 {
        position * self.stride + element * self.dilation - self.low
    }

    /// The positions in `range` at which an element of the window lies inside.
    pub(super) fn inside(&self, element: i64, range: &Range<i64>) -> Range<i64> {
        self.span(-self.place(0, element), self.stride, range)
    }

    /// The elements of the window that lie inside at some of the `positions`, which are not none.
    pub(super) fn elements(&self, positions: &Range<i64>) -> Range<i64> {
        let steps = |low| self.span(low, self.dilation, &(0..self.window));
        let last = steps(-self.place(positions.end - 1, 0));
        last.start..steps(-self.place(positions.start, 0)).end
    }

    /// The steps of width `step` in `range` that lead from `-low` to somewhere inside.
    fn span(&self, low: i64, step: i64, range: &Range<i64>) -> Range<i64> {
        let steps = |distance: i64| (distance.max(0) as u64).div_ceil(step as u64) as i64;
        let within = |at: i64| at.clamp(range.start, range.end);
        within(steps(low))..within(steps(low.saturating_add(self.extent)))
    }
}

pub(crate) fn sum(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    match out.dtype.class() {
        Some(Class::Complex) => fold(inputs, out, attrs, Complex::<f64>::ZERO, Complex::add),
        Some(Class::Float) => fold(inputs, out, attrs, 0.0, f64::add),
        Some(Class::Unsigned | Class::Signed) => fold(inputs, out, attrs, 0, i64::wrapping_add),
        None => Err(format!("it is not computed in {}", out.dtype)),
    }
}

pub(crate) fn product(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    let one = Complex { re: 1.0, im: 0.0 };
    match out.dtype.class() {
        Some(Class::Complex) => fold(inputs, out, attrs, one, Complex::<f64>::multiply),
        Some(Class::Float) => fold(inputs, out, attrs, 1.0, f64::multiply),
        Some(Class::Unsigned | Class::Signed) => fold(inputs, out, attrs, 1, i64::wrapping_mul),
        None => Err(format!("it is not computed in {}", out.dtype)),
    }
}

pub(crate) fn max(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    by_register!(out.dtype, R => fold(inputs, out, attrs, R::LOWEST, R::larger))
}

pub(crate) fn min(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    by_register!(out.dtype, R => fold(inputs, out, attrs, R::HIGHEST, R::smaller))
}

fn missing() -> Outcome {
    Err("expected a result".to_owned())
}

/// The elements of a view in row-major order.
pub(super) fn elements<R: Register>(
    x: &View,
    shape: &[u64],
    strides: Vec<i64>,
    read: impl Fn(&Operand, u64, &mut [R]) + Sync,
) -> Vec<R> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let operand = Operand::new(x, shape, strides);
    let count = operand.count();
    let mut all = vec![R::default(); count as usize];
    parallel::for_each_part(&mut all, PART, &|part, cells| {
        let start = (part * PART) as u64;
        for (cells, start) in cells.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
            read(&operand, start, cells);
        }
    });
    all
}

const PART: usize = 16 * BLOCK;

fn fold<R: Register>(
    inputs: &[View],
    out: &mut Out,
    attrs: &[Attr],
    start: R,
    combine: impl Fn(R, R) -> R + Sync,
) -> Outcome {
    let x = &inputs[0];
    let cells = elements(
        x,
        x.shape,
        x.strides.to_vec(),
        |from, start, to: &mut [R]| {
            from.gather(0, start, to);
        },
    );
    let space = Space::new(x.shape, out.shape, attrs);
    let (dtype, size) = (out.dtype, out.dtype.size() as usize);
    parallel::for_each_chunk(out.bytes, BLOCK * size, &|task, bytes| {
        let mut results = [start; BLOCK];
        let results = &mut results[..bytes.len() / size];
        let mut at = 0;
        while at < results.len() {
            let (row, from) = space.split((task * BLOCK + at) as u64);
            let until = space.columns.min(from + (results.len() - at) as i64);
            let range = from..until;
            let length = (until - from) as usize;
            space.row(row, &range, &cells, &mut results[at..at + length], &combine);
            at += length;
        }
        R::store(results, dtype, bytes);
        Ok(())
    })
}

/// Where windows lie: the last axis, and those before it.
struct Space {
    outer: Vec<Axis>,
    /// Positions along each of them, and steps from one of their indices to the next.
    positions: Vec<u64>,
    steps: Vec<i64>,
    inner: Axis,
    columns: i64,
}

impl Space {
    fn new(shape: &[u64], out: &[u64], attrs: &[Attr]) -> Space {
        let mut outer = axes(shape, attrs);
        let inner = outer.pop().unwrap_or(Axis::whole(1));
        let mut steps = nx_vulkan_abi::layout::contiguous_strides(shape);
        steps.pop();
        let (columns, positions) = out.split_last().unwrap_or((&1, &[]));
        Space {
            outer,
            positions: positions.to_vec(),
            steps,
            inner,
            columns: *columns as i64,
        }
    }

    /// Row and column of a result.
    fn split(&self, index: u64) -> (u64, i64) {
        let columns = self.columns as u64;
        (index / columns, (index % columns) as i64)
    }

    /// Folds the windows of one row whose positions along the last axis are in `range`.
    fn row<R: Register>(
        &self,
        row: u64,
        range: &Range<i64>,
        cells: &[R],
        results: &mut [R],
        combine: impl Fn(R, R) -> R,
    ) {
        let length = (range.end - range.start).max(self.inner.extent);
        for base in self.bases(row) {
            let fold = |element: i64, range: &Range<i64>, results: &mut [R]| {
                let inside = self.inner.inside(element, range);
                let first = base + self.inner.place(inside.start, element);
                let own = inside.start - range.start..inside.end - range.start;
                let own = &mut results[own.start as usize..own.end as usize];
                let places = (first..).step_by(self.inner.stride as usize);
                for (result, place) in own.iter_mut().zip(places) {
                    *result = combine(*result, cells[place as usize]);
                }
            };
            let all = self.inner.elements(range);
            if all.end - all.start <= length {
                all.for_each(|element| fold(element, range, results));
                continue;
            }
            // A window that is mostly padding would take a step for each of its elements.
            for (result, at) in results.chunks_mut(1).zip(range.clone()) {
                let one = at..at + 1;
                let elements = self.inner.elements(&one);
                elements.for_each(|element| fold(element, &one, result));
            }
        }
    }

    /// The starts of the rows of elements that the windows of a row of results have, in order.
    fn bases(&self, mut row: u64) -> Vec<i64> {
        let mut bases = vec![0];
        let mut corner = vec![0; self.outer.len()];
        for (at, positions) in corner.iter_mut().zip(&self.positions).rev() {
            (*at, row) = ((row % positions) as i64, row / positions);
        }
        for ((axis, at), step) in self.outer.iter().zip(corner).zip(&self.steps) {
            let elements = axis.elements(&(at..at + 1));
            let along = |base: i64| {
                elements
                    .clone()
                    .map(move |element| base + axis.place(at, element) * step)
            };
            bases = bases.into_iter().flat_map(along).collect();
        }
        bases
    }
}
