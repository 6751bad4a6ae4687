//! Reductions of windows: at each position of a window its elements fold into one, in row-major order. What lies in the
//! padding does not take part.

use std::ops::Range;

use super::element::{Complex, Register, by_register};
use super::lanes::{self, Extremes, InPlace, Line};
use super::number::{Number, Ring};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};
use nx_vulkan_abi::{dtype::Class, layout::contiguous_strides};

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

    /// The elements of the window in `range` that lie inside at a position.
    pub(super) fn elements_inside(&self, position: i64, range: &Range<i64>) -> Range<i64> {
        self.span(-self.place(position, 0), self.dilation, range)
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
        let steps = |distance: i64| match step {
            1 => distance.max(0),
            _ => (distance.max(0) as u64).div_ceil(step as u64) as i64,
        };
        let within = |at: i64| at.clamp(range.start, range.end);
        within(steps(low))..within(steps(low.saturating_add(self.extent)))
    }
}

pub(crate) fn sum(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    let from = inputs[0].dtype;
    let cells = match lanes::is_narrow(from) {
        true => None,
        false => lanes::sum_of_floats(from),
    };
    match out.dtype.class() {
        Some(Class::Complex) => fold(inputs, out, attrs, Complex::<f64>::ZERO, Complex::add, None),
        Some(Class::Float) => fold(inputs, out, attrs, 0.0, f64::add, cells),
        Some(Class::Unsigned | Class::Signed) => fold(
            inputs,
            out,
            attrs,
            0,
            i64::wrapping_add,
            lanes::sum_of_integers(from),
        ),
        None => Err(format!("it is not computed in {}", out.dtype)),
    }
}

pub(crate) fn product(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    let one = Complex { re: 1.0, im: 0.0 };
    let from = Some(inputs[0].dtype).filter(|from| !lanes::is_narrow(*from));
    let cells = from.and_then(lanes::product_of_floats);
    match out.dtype.class() {
        Some(Class::Complex) => fold(inputs, out, attrs, one, Complex::<f64>::multiply, None),
        Some(Class::Float) => fold(inputs, out, attrs, 1.0, f64::multiply, cells),
        Some(Class::Unsigned | Class::Signed) => {
            fold(inputs, out, attrs, 1, i64::wrapping_mul, None)
        }
        None => Err(format!("it is not computed in {}", out.dtype)),
    }
}

pub(crate) fn max(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    by_register!(out.dtype, R => {
        let cells = R::LARGEST.filter(|_| is_own::<R>(&inputs[0], out));
        fold(inputs, out, attrs, R::LOWEST, R::larger, cells)
    })
}

pub(crate) fn min(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let [out, ..] = outputs else { return missing() };
    by_register!(out.dtype, R => {
        let cells = R::SMALLEST.filter(|_| is_own::<R>(&inputs[0], out));
        fold(inputs, out, attrs, R::HIGHEST, R::smaller, cells)
    })
}

fn missing() -> Outcome {
    Err("expected a result".to_owned())
}

/// Whether elements lie in memory as `R`, the register of the result, does.
fn is_own<R>(x: &View, out: &Out) -> bool {
    x.dtype == out.dtype && x.dtype.size() as usize == size_of::<R>()
}

/// The elements of a view in row-major order, where they lie so.
fn in_order<'a>(x: &View<'a>) -> Option<&'a [u8]> {
    let (rows, size) = (contiguous_strides(x.shape), x.dtype.size() as usize);
    let mut axes = x.shape.iter().zip(x.strides).zip(rows);
    let count = x.shape.iter().product::<u64>() as usize;
    let is_so = axes.all(|((extent, step), own)| *extent == 1 || *step == own);
    (is_so && count > 0).then(|| &x.bytes[x.offset as usize * size..][..count * size])
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

/// Lines of elements that are taken at a time.
const LINES: usize = 256;

fn fold<R: Register>(
    inputs: &[View],
    out: &mut Out,
    attrs: &[Attr],
    start: R,
    combine: impl Fn(R, R) -> R + Sync,
    cells: Option<InPlace<R>>,
) -> Outcome {
    let x = &inputs[0];
    let space = Space::new(x.shape, out.shape, attrs);
    let stride = space.inner.stride as usize;
    if let (Some(cells), Some(bytes)) = (cells, in_order(x)) {
        return results(&space, out, start, |results, lines| {
            (cells.lines)(results, bytes, lines, stride);
        });
    }
    let cells = elements(
        x,
        x.shape,
        x.strides.to_vec(),
        |from, start, to: &mut [R]| {
            from.gather(0, start, to);
        },
    );
    results(&space, out, start, |results, lines| {
        for line in lines {
            let cells = cells[line.first..].iter().step_by(stride);
            let both = results[line.states.clone()].iter_mut().zip(cells);
            both.for_each(|(result, x)| *result = combine(*result, *x));
        }
    })
}

/// Every result, where `take` takes lines of elements into results side by side.
fn results<R: Register>(
    space: &Space,
    out: &mut Out,
    start: R,
    take: impl Fn(&mut [R], &[Line]) + Sync,
) -> Outcome {
    let (dtype, size) = (out.dtype, out.dtype.size() as usize);
    parallel::for_each_chunk(out.bytes, BLOCK * size, &|task, bytes| {
        let mut results = [start; BLOCK];
        let results = &mut results[..bytes.len() / size];
        let (mut at, mut bases, mut lines) = (0, Vec::new(), Lines::default());
        while at < results.len() {
            let (row, from) = space.split((task * BLOCK + at) as u64);
            let until = space.columns.min(from + (results.len() - at) as i64);
            let length = (until - from) as usize;
            space.bases(row, &mut bases);
            let own = &mut results[at..at + length];
            space.row(&bases, &(from..until), &mut lines, &mut |lines| {
                take(own, lines)
            });
            at += length;
        }
        R::store(results, dtype, bytes);
        Ok(())
    })
}

/// Elements of a row that go into windows side by side: the first of them lies at `place`.
#[derive(Debug)]
struct Tap {
    states: Range<usize>,
    place: i64,
}

/// Lines that are to be taken, and those that some elements of the window have at the positions in `range`.
#[derive(Debug, Default)]
struct Lines {
    range: Range<i64>,
    elements: Range<i64>,
    known: Vec<Tap>,
    some: Vec<Line>,
}

impl Lines {
    fn push(&mut self, base: i64, tap: &Tap, take: &mut impl FnMut(&[Line])) {
        self.some.push(Line {
            states: tap.states.clone(),
            first: (base + tap.place) as usize,
        });
        if self.some.len() == LINES {
            take(&self.some);
            self.some.clear();
        }
    }

    /// The known ones of a row that begins at `base`.
    fn push_known(&mut self, base: i64, take: &mut impl FnMut(&[Line])) {
        let known = std::mem::take(&mut self.known);
        known.iter().for_each(|tap| self.push(base, tap, take));
        self.known = known;
    }
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
        let mut steps = contiguous_strides(shape);
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

    /// Has the lines taken that make up the windows of one row whose positions along the last axis are in `range`, some of them
    /// at a time.
    fn row(
        &self,
        bases: &[i64],
        range: &Range<i64>,
        lines: &mut Lines,
        take: &mut impl FnMut(&[Line]),
    ) {
        let length = (range.end - range.start).max(self.inner.extent);
        let all = self.inner.elements(range);
        for base in bases {
            if all.end - all.start <= length {
                for from in all.clone().step_by(LINES) {
                    let elements = from..all.end.min(from + LINES as i64);
                    self.learn(range, &elements, lines);
                    lines.push_known(*base, take);
                }
                continue;
            }
            // A window that is mostly padding would take a step for each of its elements.
            for at in range.clone() {
                let one = at..at + 1;
                let taps = self.inner.elements(&one);
                for tap in taps.filter_map(|element| self.tap(element, &one, range.start)) {
                    lines.push(*base, &tap, take);
                }
            }
        }
        take(&lines.some);
        lines.some.clear();
    }

    /// What such an element of the window has at the positions in `range`; its states are counted from `first` on.
    fn tap(&self, element: i64, range: &Range<i64>, first: i64) -> Option<Tap> {
        let inside = self.inner.inside(element, range);
        (!inside.is_empty()).then(|| Tap {
            states: (inside.start - first) as usize..(inside.end - first) as usize,
            place: self.inner.place(inside.start, element),
        })
    }

    /// Has `lines` know what those elements of the window have at the positions in `range`, which is the same for most rows.
    fn learn(&self, range: &Range<i64>, elements: &Range<i64>, lines: &mut Lines) {
        if (&lines.range, &lines.elements) == (range, elements) {
            return;
        }
        (lines.range, lines.elements) = (range.clone(), elements.clone());
        lines.known.clear();
        let taps = elements
            .clone()
            .filter_map(|element| self.tap(element, range, range.start));
        lines.known.extend(taps);
    }

    /// The starts of the rows of elements that the windows of a row of results have, in order.
    fn bases(&self, mut row: u64, bases: &mut Vec<i64>) {
        bases.clear();
        bases.push(0);
        let axes = self.outer.iter().zip(&self.positions).zip(&self.steps);
        for ((axis, positions), step) in axes.rev() {
            let at = (row % positions) as i64;
            row /= positions;
            let elements = axis.elements(&(at..at + 1));
            let inner = bases.len();
            for element in elements.clone().skip(1) {
                let place = axis.place(at, element) * step;
                (0..inner).for_each(|i| bases.push(bases[i] + place));
            }
            match elements.is_empty() {
                true => bases.clear(),
                false => {
                    let place = axis.place(at, elements.start) * step;
                    bases[..inner].iter_mut().for_each(|base| *base += place);
                }
            }
        }
    }
}
