//! How the elements of a reduction fold into one. In which order they are visited is not here.

use std::marker::PhantomData;
use std::ops::Range;

use nx_vulkan_abi::dtype::DType;

use super::element::Register;
use super::lanes::{Best, Extremes, InPlace, is_narrow};
use super::operand::{BLOCK, Operand};

/// A reduction of a sequence of elements.
pub(super) trait Fold: Sync {
    type Item: Register;
    type State: Copy + Send + Sync;

    /// Reads elements as [`Operand::gather`] does.
    fn read(&self, from: &Operand, shift: i64, start: u64, to: &mut [Self::Item]);

    /// The state after no element.
    fn start(&self) -> Self::State;

    /// Takes in one element, the one at `index` of the sequence.
    fn step(&self, state: &mut Self::State, item: Self::Item, index: u64);

    /// Takes in consecutive elements, the first of them at `index`.
    fn run(&self, state: &mut Self::State, items: &[Self::Item], index: u64);

    /// Takes in the elements at those indices where they lie, or says that it cannot.
    fn run_in_place(
        &self,
        _state: &mut Self::State,
        _from: &Operand,
        _shift: i64,
        _indices: Range<u64>,
    ) -> bool {
        false
    }

    /// Whether there is a [`Fold::rows`] for rows of so many elements.
    fn takes_rows(&self, _from: &Operand, _length: usize) -> bool {
        false
    }

    /// Takes rows of so many elements side by side into a state each that has taken none, where they lie: the first row lies
    /// `shift` further, and it is `step` from each to the next.
    fn rows(
        &self,
        _states: &mut [Self::State],
        _from: &Operand,
        _shift: i64,
        _step: i64,
        _length: usize,
    ) {
    }

    /// Whether there is a [`Fold::grid`].
    fn is_in_place(&self) -> bool {
        false
    }

    /// Takes the elements at those indices into states side by side, where they lie: the first one into the first state lies
    /// `shift` further, and it is `step` from each to the next.
    fn grid(
        &self,
        _states: &mut [Self::State],
        _from: &Operand,
        _shift: i64,
        _step: i64,
        _indices: Range<u64>,
    ) {
    }

    /// Takes in the elements of `later`, which follow those of `state`.
    fn merge(&self, state: &mut Self::State, later: Self::State);

    /// Writes what the states amount to.
    fn store(&self, states: &[Self::State], dtype: DType, bytes: &mut [u8]);
}

/// An associative function of two elements, such as a sum.
pub(super) struct Each<R, Read, Combine> {
    pub(super) start: R,
    pub(super) read: Read,
    pub(super) combine: Combine,
    /// The same of elements that lie side by side; nothing where they have to be read.
    pub(super) cells: Option<InPlace<R>>,
}

/// Independent accumulators: they hide the latency of the function and bound the rounding error of a sum.
const LANES: usize = 8;

impl<R, Read, Combine> Fold for Each<R, Read, Combine>
where
    R: Register,
    Read: Fn(&Operand, i64, u64, &mut [R]) + Sync,
    Combine: Fn(R, R) -> R + Sync,
{
    type Item = R;
    type State = R;

    fn read(&self, from: &Operand, shift: i64, start: u64, to: &mut [R]) {
        (self.read)(from, shift, start, to);
    }

    fn start(&self) -> R {
        self.start
    }

    fn step(&self, state: &mut R, item: R, _index: u64) {
        *state = (self.combine)(*state, item);
    }

    fn run(&self, state: &mut R, items: &[R], _index: u64) {
        let (chunks, rest) = items.as_chunks::<LANES>();
        let mut lanes = [self.start; LANES];
        for chunk in chunks {
            lanes
                .iter_mut()
                .zip(chunk)
                .for_each(|(lane, x)| *lane = (self.combine)(*lane, *x));
        }
        let all = lanes
            .iter()
            .chain(rest)
            .fold(self.start, |all, x| (self.combine)(all, *x));
        *state = (self.combine)(*state, all);
    }

    fn run_in_place(&self, state: &mut R, from: &Operand, shift: i64, indices: Range<u64>) -> bool {
        let (Some(cells), (_, 1)) = (&self.cells, from.inner()) else {
            return false;
        };
        let first = shift + from.distance(indices.start);
        let count = (indices.end - indices.start) as usize;
        match cells.of_bf16 {
            Some(run) => *state = (self.combine)(*state, run(from.line(first, count))),
            None => from.each_line(first, count, |line| {
                *state = (self.combine)(*state, (cells.run)(line));
            }),
        }
        true
    }

    fn takes_rows(&self, from: &Operand, _length: usize) -> bool {
        self.cells.is_some() && !is_narrow(from.dtype)
    }

    fn rows(&self, states: &mut [R], from: &Operand, shift: i64, step: i64, length: usize) {
        let Some(cells) = &self.cells else { return };
        from.each_grid(shift, step, states.len(), length, |_, _, bytes, rows| {
            (cells.each)(states, bytes, rows, length);
        });
    }

    fn is_in_place(&self) -> bool {
        self.cells.is_some()
    }

    fn grid(&self, states: &mut [R], from: &Operand, shift: i64, step: i64, indices: Range<u64>) {
        let Some(cells) = &self.cells else { return };
        let count = (indices.end - indices.start) as usize;
        from.each_grid(shift, step, count, states.len(), |_, own, bytes, rows| {
            (cells.steps)(&mut states[own], bytes, rows);
        });
    }

    fn merge(&self, state: &mut R, later: R) {
        *state = (self.combine)(*state, later);
    }

    fn store(&self, states: &[R], dtype: DType, bytes: &mut [u8]) {
        R::store(states, dtype, bytes);
    }
}

/// The index of the extreme element.
pub(super) struct Extreme<R> {
    /// Whether the largest is sought, not the smallest.
    pub(super) largest: bool,
    /// Whether the last of equal elements wins, not the first.
    pub(super) last: bool,
    /// Whether elements are as wide in memory as `R`, or floats of 16 bits.
    pub(super) is_in_place: bool,
    pub(super) register: PhantomData<fn(R)>,
}

impl<R: Extremes> Extreme<R> {
    /// Whether `item`, which comes later, takes the place of `best`.
    fn beats(&self, item: R, best: R) -> bool {
        let beyond = if self.largest {
            item > best
        } else {
            item < best
        };
        item.is_nan() || !best.is_nan() && (beyond || self.last && item == best)
    }

    /// The most extreme of a block of elements if it takes the place of the one so far, and where it is.
    fn block(&self, bytes: &[u8], so_far: Candidate<R>) -> Candidate<R> {
        let run = if self.largest {
            R::LARGEST
        } else {
            R::SMALLEST
        };
        let best = (run?.run)(bytes);
        if so_far.is_some_and(|(other, _)| !self.beats(best, other)) {
            return None;
        }
        let at = match best.is_nan() {
            true => (R::INDICES?.find_nan)(bytes),
            false => (R::INDICES?.find)(bytes, best, self.last),
        };
        Some((best, at as u64))
    }
}

/// Elements of a row from which on it is faster to find the most extreme one first, and then where it is.
const MANY: usize = 64;

/// An element and its index, or nothing yet.
type Candidate<R> = Option<(R, u64)>;

impl<R: Extremes> Fold for Extreme<R> {
    type Item = R;
    type State = Candidate<R>;

    fn read(&self, from: &Operand, shift: i64, start: u64, to: &mut [R]) {
        from.gather(shift, start, to);
    }

    fn start(&self) -> Candidate<R> {
        None
    }

    fn step(&self, state: &mut Candidate<R>, item: R, index: u64) {
        if state.is_none_or(|(best, _)| self.beats(item, best)) {
            *state = Some((item, index));
        }
    }

    fn run(&self, state: &mut Candidate<R>, items: &[R], index: u64) {
        let [first, rest @ ..] = items else { return };
        let (mut best, mut at) = (*first, 0);
        for (item, i) in rest.iter().zip(1..) {
            if self.beats(*item, best) {
                (best, at) = (*item, i);
            }
        }
        self.step(state, best, index + at);
    }

    fn is_in_place(&self) -> bool {
        self.is_in_place && R::INDICES.is_some()
    }

    fn takes_rows(&self, from: &Operand, length: usize) -> bool {
        (1..MANY).contains(&length) && self.is_in_place() && !is_narrow(from.dtype)
    }

    fn rows(
        &self,
        states: &mut [Candidate<R>],
        from: &Operand,
        shift: i64,
        step: i64,
        length: usize,
    ) {
        const SOME: usize = 256;
        let Some(cells) = R::INDICES else { return };
        let (mut elements, mut places) = ([R::LOWEST; SOME], [0; SOME]);
        for (states, part) in states.chunks_mut(SOME).zip(0..) {
            let (count, shift) = (states.len(), shift + part * step * SOME as i64);
            from.each_grid(shift, step, count, length, |_, _, bytes, rows| {
                let best = Best {
                    elements: &mut elements[..count],
                    places: &mut places[..count],
                    next: 0,
                    largest: self.largest,
                    last: self.last,
                };
                (cells.each)(best, bytes, rows, length);
            });
            for (state, (best, at)) in states.iter_mut().zip(elements.iter().zip(places)) {
                *state = Some((*best, u64::from(at)));
            }
        }
    }

    fn run_in_place(
        &self,
        state: &mut Candidate<R>,
        from: &Operand,
        shift: i64,
        indices: Range<u64>,
    ) -> bool {
        if !self.is_in_place() || from.inner().1 != 1 {
            return false;
        }
        let first = shift + from.distance(indices.start);
        let mut index = indices.start;
        from.each_line(first, (indices.end - indices.start) as usize, |line| {
            for block in line.chunks(BLOCK * size_of::<R>()) {
                if let Some((best, at)) = self.block(block, *state) {
                    *state = Some((best, index + at));
                }
                index += (block.len() / size_of::<R>()) as u64;
            }
        });
        true
    }

    fn grid(
        &self,
        states: &mut [Candidate<R>],
        from: &Operand,
        shift: i64,
        step: i64,
        indices: Range<u64>,
    ) {
        let Some(cells) = R::INDICES else { return };
        const NONE: u32 = u32::MAX;
        let least = if self.largest { R::LOWEST } else { R::HIGHEST };
        let so_far = states
            .iter()
            .map(|state| state.map_or(least, |(best, _)| best));
        let mut elements: Vec<R> = so_far.collect();
        let mut found = vec![NONE; states.len()];
        let count = (indices.end - indices.start) as usize;
        from.each_grid(
            shift,
            step,
            count,
            states.len(),
            |next, own, bytes, rows| {
                let best = Best {
                    elements: &mut elements[own.clone()],
                    places: &mut found[own],
                    next: next as u32,
                    largest: self.largest,
                    last: self.last,
                };
                (cells.steps)(best, bytes, rows);
            },
        );
        for ((state, best), row) in states.iter_mut().zip(elements).zip(found) {
            match (row, &state) {
                (NONE, Some(_)) => {}
                // None is beyond the least: all are the least.
                (NONE, None) => *state = Some((best, indices.start)),
                _ => *state = Some((best, indices.start + u64::from(row))),
            }
        }
    }

    fn merge(&self, state: &mut Candidate<R>, later: Candidate<R>) {
        if let Some((item, index)) = later {
            self.step(state, item, index);
        }
    }

    fn store(&self, states: &[Candidate<R>], dtype: DType, bytes: &mut [u8]) {
        let indices = states
            .iter()
            .map(|state| state.map_or(0, |(_, index)| index as i64));
        if dtype.is_float() {
            f64::store(
                &indices.map(|index| index as f64).collect::<Vec<_>>(),
                dtype,
                bytes,
            );
        } else {
            i64::store(&indices.collect::<Vec<_>>(), dtype, bytes);
        }
    }
}
