//! Lines of elements that go into results side by side, such as rows of a matrix.

use crate::kernels::number::Number;

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
