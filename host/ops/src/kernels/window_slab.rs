//! Windows that lie close together: a slab of elements, with its padding, is folded along one axis after the other. Along each
//! the windows at all places are made side by side, as if the slab were one line; those that reach from one row into the next
//! are left out at the end.

use super::crew::cores;
use super::element::Register;
use super::lanes::Shifts;
use super::operand::{BLOCK, Operand};
use super::parallel;
use super::window::Axis;
use crate::view::{Out, Outcome, View};

/// Elements of a slab, which several of fit the second-level cache, and as many as one may have where its rows are long.
const SLAB: usize = 2048;
const MOST: usize = 1 << 18;
/// Pieces of the work for each core.
const TASKS: usize = 4;
/// Elements from which on a row is worth a call of its own.
const ROW: usize = 16;

/// How windows of a tensor are made slab by slab.
#[derive(Debug)]
pub(super) struct Slabs {
    /// The axes of a tensor, of which several may lie behind each other. A slab is as long as all of them but the first.
    axes: Vec<Side>,
    /// Positions along the first axis that a slab has.
    length: usize,
    /// Whether windows are made of windows, which take fewer steps.
    grouped: bool,
}

/// An axis of a tensor, those that have no windows as one with their neighbours.
#[derive(Debug, Clone, Copy)]
struct Side {
    axis: Axis,
    positions: usize,
    /// Elements with the padding.
    padded: usize,
    /// Elements from one index to the next, without the padding and with it.
    own: usize,
    step: usize,
}

impl Side {
    fn reach(&self) -> usize {
        ((self.axis.window - 1) * self.axis.dilation + 1) as usize
    }

    fn stride(&self) -> usize {
        self.axis.stride as usize
    }

    /// Whether no window reaches beyond the padding, as the only one may where a stride rounds a number of positions up.
    fn has_all(&self) -> bool {
        (self.positions - 1) * self.stride() + self.reach() <= self.padded
    }

    fn is_whole(&self) -> bool {
        (self.axis.low, self.axis.high) == (0, 0)
    }

    /// Whether all windows along it are made side by side, also those that a stride leaves out.
    fn is_flat(&self) -> bool {
        self.axis.stride == 1 || self.step < ROW
    }
}

impl Slabs {
    /// Nothing where the windows lie too far apart for it, where there is little but padding, or no result; nor along several axes
    /// unless elements may be `grouped`.
    pub(super) fn of(axes: &[Axis], grouped: bool) -> Option<Slabs> {
        if !grouped && axes.iter().filter(|axis| axis.window > 1).count() > 1 {
            return None;
        }
        let mut merged: Vec<Axis> = Vec::new();
        for axis in axes {
            match merged.last_mut() {
                Some(last) if is_trivial(last) && is_trivial(axis) => {
                    *last = Axis::trivial(last.extent * axis.extent);
                }
                _ => merged.push(*axis),
            }
        }
        let (mut own, mut step) = (1usize, 1usize);
        let mut sides = Vec::new();
        for axis in merged.into_iter().rev() {
            let side = Side {
                positions: usize::try_from(axis.positions()).ok()?,
                padded: usize::try_from(axis.extent + axis.low + axis.high).ok()?,
                axis,
                own,
                step,
            };
            let is_close = axis.stride <= 2 * side.reach() as i64;
            if side.positions == 0 || axis.extent == 0 || !side.has_all() || !is_close {
                return None;
            }
            own = own.checked_mul(axis.extent as usize)?;
            step = step.checked_mul(side.padded)?;
            sides.push(side);
        }
        sides.reverse();
        let first = *sides.first()?;
        let is_outer = is_trivial(&first.axis) && first.step > SLAB && sides.len() > 1;
        if is_outer {
            sides.remove(0);
        }
        let first = sides[0];
        let length = (SLAB / first.step).max(4 * first.reach()) / first.stride();
        let slabs = Slabs {
            length: length.clamp(1, first.positions),
            axes: sides,
            grouped,
        };
        (step <= own.saturating_mul(4) && slabs.most() <= MOST).then_some(slabs)
    }

    /// Elements of a slab.
    fn most(&self) -> usize {
        self.rows(self.length).saturating_mul(self.axes[0].step)
    }

    /// Indices along the first axis that so many positions take.
    fn rows(&self, positions: usize) -> usize {
        (positions - 1) * self.axes[0].stride() + self.axes[0].reach()
    }

    /// The windows of `x` that [`Slabs::of`] was told of.
    pub(super) fn fold<R: Register>(
        &self,
        x: &View,
        out: &mut Out,
        start: R,
        shifts: Shifts<R>,
    ) -> Outcome {
        let source = Operand::new(x, x.shape, x.strides.to_vec());
        let (dtype, size) = (out.dtype, out.dtype.size() as usize);
        let of_row: usize = self.axes[1..].iter().map(|side| side.positions).product();
        let own = self.axes[0].axis.extent as usize * self.axes[0].own;
        let positions = self.axes[0].positions;
        let slabs = out.bytes.len().div_ceil(self.length * of_row * size);
        let rows = self.length * slabs.div_ceil(TASKS * cores());
        parallel::for_each_chunk(out.bytes, rows * of_row * size, &|task, bytes| {
            let mut slab = Slab {
                from: vec![start; self.most()],
                to: vec![start; self.most()],
                sides: Vec::new(),
            };
            let (mut rest, mut row) = (bytes, task * rows);
            while !rest.is_empty() {
                let at = row % positions;
                let count = (positions - at).min(rest.len() / (of_row * size));
                let count = count.min(self.length);
                let (now, others) = rest.split_at_mut(count * of_row * size);
                slab.sides.clone_from(&self.axes);
                let first = &mut slab.sides[0];
                first.axis.low -= (at * first.stride()) as i64;
                (first.padded, first.positions) = (self.rows(count), count);
                slab.read(&source, row / positions * own, start);
                slab.fold(start, shifts, self.grouped);
                R::store(slab.results(count * of_row), dtype, now);
                (rest, row) = (others, row + count);
            }
            Ok(())
        })
    }
}

fn is_trivial(axis: &Axis) -> bool {
    (axis.window, axis.stride, axis.low, axis.high) == (1, 1, 0, 0)
}

/// Elements that are folded, and where.
struct Slab<R> {
    from: Vec<R>,
    to: Vec<R>,
    sides: Vec<Side>,
}

impl<R: Register> Slab<R> {
    fn read(&mut self, source: &Operand, first: usize, padding: R) {
        let length = self.sides[0].padded * self.sides[0].step;
        read(
            source,
            first,
            &self.sides,
            padding,
            &mut self.from[..length],
        );
    }

    /// Along each axis, the last one first, so that every window takes its elements in row-major order.
    fn fold(&mut self, start: R, shifts: Shifts<R>, grouped: bool) {
        let mut length = self.sides[0].padded * self.sides[0].step;
        let (mut step, mut has_begun) = (1, false);
        for index in (0..self.sides.len()).rev() {
            let side = self.sides[index];
            let stride = side.stride();
            let (window, dilation) = (side.axis.window as usize, side.axis.dilation as usize);
            if side.is_flat() {
                let (mut apart, mut window) = (dilation * step, window);
                // Once at least: what is folded begins with `start`.
                while window > 1 || step == 1 && !has_begun {
                    has_begun = true;
                    let count = if grouped { factor(window) } else { window };
                    let to = &mut self.to[..length - (count - 1) * apart];
                    shifts(to, &self.from[..length], start, apart, count);
                    std::mem::swap(&mut self.from, &mut self.to);
                    (apart, window) = (apart * count, window / count);
                }
            }
            let outer = length / (side.padded * step);
            if stride > 1 {
                for at in 0..outer {
                    let from = &self.from[at * side.padded * step..];
                    let to = &mut self.to[at * side.positions * step..][..side.positions * step];
                    match step {
                        1 => to
                            .iter_mut()
                            .zip(from.iter().step_by(stride))
                            .for_each(|(to, x)| *to = *x),
                        _ => {
                            for (row, to) in to.chunks_mut(step).enumerate() {
                                let from = &from[row * stride * step..];
                                match side.is_flat() {
                                    true => to.copy_from_slice(&from[..step]),
                                    false => shifts(to, from, start, dilation * step, window),
                                }
                            }
                        }
                    }
                }
                std::mem::swap(&mut self.from, &mut self.to);
                self.sides[index].padded = side.positions;
                length = outer * side.positions * step;
            }
            self.sides[index].step = step;
            step *= self.sides[index].padded;
        }
    }

    /// So many, that were folded.
    fn results(&mut self, count: usize) -> &[R] {
        if are_all_results(&self.sides) {
            return &self.from[..count];
        }
        pick(&self.from, &self.sides, &mut self.to[..count]);
        &self.to[..count]
    }
}

/// How many elements of so many are made one at a time, which divides them: windows of windows take fewer steps.
fn factor(window: usize) -> usize {
    let divides = |by: &usize| window.is_multiple_of(*by);
    [4, 3, 2, 5, 7].into_iter().find(divides).unwrap_or(window)
}

/// Elements from the row-major index `first` on, and `padding` where they are not inside.
fn read<R: Register>(source: &Operand, first: usize, sides: &[Side], padding: R, to: &mut [R]) {
    let Some((side, rest)) = sides.split_first() else {
        return;
    };
    let within = |at: i64| at.clamp(0, side.padded as i64) as usize;
    let inside = within(side.axis.low)..within(side.axis.low.saturating_add(side.axis.extent));
    let (inner, after) = to.split_at_mut(inside.end * side.step);
    let (before, inner) = inner.split_at_mut(inside.start.min(inside.end) * side.step);
    before.fill(padding);
    after.fill(padding);
    if inner.is_empty() {
        return;
    }
    let index = (inside.start as i64 - side.axis.low) as usize;
    let first = first + index * side.own;
    if rest.iter().all(Side::is_whole) {
        for (to, at) in inner.chunks_mut(BLOCK).zip((first as u64..).step_by(BLOCK)) {
            source.gather(0, at, to);
        }
        return;
    }
    for (to, at) in inner.chunks_mut(side.step).zip((first..).step_by(side.own)) {
        read(source, at, rest, padding, to);
    }
}

/// Copies the results among what was made side by side.
fn pick<R: Copy>(from: &[R], sides: &[Side], to: &mut [R]) {
    if are_all_results(sides) {
        return to.copy_from_slice(&from[..to.len()]);
    }
    let own = to.len() / sides[0].positions;
    for (to, from) in to.chunks_mut(own).zip(from.chunks(sides[0].step)) {
        pick(from, &sides[1..], to);
    }
}

/// Whether nothing but results is behind one index of the first axis.
fn are_all_results(sides: &[Side]) -> bool {
    let mut inner = sides.iter().skip(1);
    inner.all(|side| side.padded == side.positions)
}
