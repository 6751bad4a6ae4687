//! Lines of elements that go into results side by side: rows of a matrix, or what windows have.

use crate::kernels::number::Number;
use std::ops::Range;

/// States, and the first of the elements that they take.
#[derive(Debug, Clone)]
pub(in crate::kernels) struct Line {
    pub(in crate::kernels) states: Range<usize>,
    pub(in crate::kernels) first: usize,
}

/// Rows among bytes: where the first one begins, how far it is from each to the next, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct Rows {
    pub(in crate::kernels) first: usize,
    pub(in crate::kernels) step: isize,
    pub(in crate::kernels) count: usize,
}

impl Rows {
    #[inline(always)]
    pub(super) fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.count as isize).map(move |row| self.first.wrapping_add_signed(row * self.step))
    }
}

/// Whether one of so many elements of some rows may be NaN. Whoever knows that none is takes short rows faster.
#[inline(always)]
pub(super) fn may_have_nan<R: Number, const SIZE: usize>(
    from: &[u8],
    rows: Rows,
    length: usize,
    read: impl Fn([u8; SIZE]) -> R,
) -> bool {
    let last = (rows.count as isize - 1) * rows.step;
    let ends = [rows.first, rows.first.wrapping_add_signed(last)];
    let all = ends[0].min(ends[1])..ends[0].max(ends[1]) + length * SIZE;
    // Others may lie between them.
    if all.len() > 2 * rows.count * length * SIZE {
        return true;
    }
    let cells = from[all].as_chunks().0.iter();
    cells.fold(false, |any, x| any | read(*x).is_nan())
}

/// How many rows or lines are taken at a time.
pub(in crate::kernels) const AT_ONCE: usize = 4;

/// How many of that many to take next: more than one, where there are.
pub(super) fn at_once(left: usize) -> usize {
    match left {
        0..=AT_ONCE => left,
        5 => 3,
        _ => AT_ONCE,
    }
}

/// Has so many that `next` gives taken, some at a time.
macro_rules! some_at_once {
    ($count:expr, $next:ident, |$some:ident| $take:expr) => {{
        let mut left = $count;
        while left > 0 {
            let count = super::lines::at_once(left);
            match count {
                4 => {
                    let $some = [(); 4].map(|()| $next());
                    $take
                }
                3 => {
                    let $some = [(); 3].map(|()| $next());
                    $take
                }
                2 => {
                    let $some = [(); 2].map(|()| $next());
                    $take
                }
                _ => {
                    let $some = [$next()];
                    $take
                }
            }
            left -= count;
        }
    }};
}
pub(super) use some_at_once;

/// Items of `N` lines into states side by side, those of one line after those of the other.
///
/// A state that a line may leave as it is would be a masked store, which on machines without AVX-512 takes as long as one store for
/// each element. Of several lines the last one leaves what the others made, which is stored as a whole.
#[inline(always)]
pub(super) fn together<R: Copy, X: Copy, const N: usize>(
    states: &mut [R],
    lines: [&[X]; N],
    combine: impl Fn(R, X) -> R,
) {
    let lines = lines.map(|line| &line[..states.len()]);
    for (i, state) in states.iter_mut().enumerate() {
        *state = lines
            .iter()
            .fold(*state, |state, line| combine(state, line[i]));
    }
}

/// Lines of elements `STEP` apart: vectors are loaded whole, and of each the elements are taken.
#[inline(always)]
pub(super) fn each_line<R: Copy, const SIZE: usize, const STEP: usize>(
    states: &mut [R],
    from: &[u8],
    lines: &[Line],
    read: impl Fn([u8; SIZE]) -> R + Copy,
    combine: impl Fn(R, R) -> R + Copy,
) {
    let cells = from.as_chunks::<SIZE>().0;
    let combine = |state, x| combine(state, read(x));
    let mut rest = lines;
    while !rest.is_empty() {
        let (own, others) = rest.split_at(at_once(rest.len()));
        match own {
            [a, b, c, d] => some_lines::<R, SIZE, STEP, 4>(states, cells, [a, b, c, d], combine),
            [a, b, c] => some_lines::<R, SIZE, STEP, 3>(states, cells, [a, b, c], combine),
            [a, b] => some_lines::<R, SIZE, STEP, 2>(states, cells, [a, b], combine),
            _ => some_lines::<R, SIZE, STEP, 1>(states, cells, [&own[0]], combine),
        }
        rest = others;
    }
}

/// `N` of them: together where all go into the same states, `from..until`, the rest line by line. Each state takes them in order.
#[inline(always)]
fn some_lines<R: Copy, const SIZE: usize, const STEP: usize, const N: usize>(
    states: &mut [R],
    cells: &[[u8; SIZE]],
    lines: [&Line; N],
    combine: impl Fn(R, [u8; SIZE]) -> R + Copy,
) {
    let groups = lines.map(|line| cells[line.first..].as_chunks::<STEP>().0);
    let (mut from, mut until) = (0, states.len());
    for (line, groups) in lines.iter().zip(groups) {
        from = from.max(line.states.start);
        until = until.min(line.states.start + line.states.len().min(groups.len()));
    }
    let until = until.max(from);
    for line in lines {
        let Range { start, end } = line.states;
        for own in [start..end.min(from), until..end] {
            if own.is_empty() {
                continue;
            }
            let cells = cells[line.first + (own.start - start) * STEP..].iter();
            for (state, x) in states[own].iter_mut().zip(cells.step_by(STEP)) {
                *state = combine(*state, *x);
            }
        }
    }
    if from == until {
        return;
    }
    let mut rest = lines.iter().zip(groups);
    let mut next = || {
        let line = rest.next();
        line.map_or(&[][..], |(line, groups)| {
            &groups[from - line.states.start..]
        })
    };
    let own = [(); N].map(|()| next());
    together(&mut states[from..until], own, |state, x: [_; STEP]| {
        combine(state, x[0])
    });
}

/// Lines of elements that far apart.
#[inline(always)]
pub(super) fn any_line<R: Copy, const SIZE: usize>(
    states: &mut [R],
    from: &[u8],
    lines: &[Line],
    step: usize,
    read: impl Fn([u8; SIZE]) -> R,
    combine: impl Fn(R, R) -> R,
) {
    let cells = from.as_chunks::<SIZE>().0;
    for line in lines {
        let cells = cells[line.first..].iter().step_by(step);
        for (state, x) in states[line.states.clone()].iter_mut().zip(cells) {
            *state = combine(*state, read(*x));
        }
    }
}
