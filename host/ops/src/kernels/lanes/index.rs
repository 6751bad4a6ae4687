//! Where elements are that reductions look for, where they lie.

use super::{
    lines::{Rows, may_have_nan, some_at_once},
    widest,
};
use crate::kernels::number::Number;

/// Which element is found, and how rows of elements replace as many that were the most extreme so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Indices<R> {
    /// The first element that equals a number, or the last one.
    pub(in crate::kernels) find: fn(&[u8], R, bool) -> usize,
    /// The last NaN.
    pub(in crate::kernels) find_nan: fn(&[u8]) -> usize,
    pub(in crate::kernels) steps: fn(Best<R>, &[u8], Rows),
    /// The most extreme of so many elements of each row and its place among them, whatever was there before.
    pub(in crate::kernels) each: fn(Best<R>, &[u8], Rows, usize),
}

/// The most extreme elements so far, side by side, and where they are: the numbers of their rows, or places in a row of each.
#[derive(Debug)]
pub(in crate::kernels) struct Best<'a, R> {
    pub(in crate::kernels) elements: &'a mut [R],
    pub(in crate::kernels) places: &'a mut [u32],
    /// The number of the first row that is to come.
    pub(in crate::kernels) next: u32,
    pub(in crate::kernels) largest: bool,
    /// Whether the last of equal elements wins, not the first.
    pub(in crate::kernels) last: bool,
}

/// Elements of which it is asked at once whether there is the one that is looked for.
const CHUNK: usize = 64;

#[inline(always)]
fn find<const SIZE: usize>(from: &[u8], last: bool, is_it: impl Fn(&[u8; SIZE]) -> bool) -> usize {
    let cells = from.as_chunks::<SIZE>().0;
    let any = |chunk: &[[u8; SIZE]; CHUNK]| chunk.iter().fold(false, |any, x| any | is_it(x));
    let found = if last {
        let (rest, chunks) = cells.as_rchunks::<CHUNK>();
        let until = chunks.iter().rposition(any).map_or(0, |chunk| chunk + 1);
        cells[..rest.len() + until * CHUNK].iter().rposition(is_it)
    } else {
        let chunks = cells.as_chunks::<CHUNK>().0;
        let from = chunks.iter().position(any).unwrap_or(chunks.len()) * CHUNK;
        let place = cells[from..].iter().position(is_it);
        place.map(|place| from + place)
    };
    found.unwrap_or(0)
}

#[inline(always)]
fn steps<R: Number, const SIZE: usize>(
    best: Best<R>,
    from: &[u8],
    rows: Rows,
    read: impl Fn([u8; SIZE]) -> R + Copy,
    wins: impl Fn(R, R) -> bool + Copy,
) {
    let mut starts = rows.starts().map(|at| from[at..].as_chunks::<SIZE>().0);
    let mut next = || starts.next().unwrap_or_default();
    let mut best = best;
    some_at_once!(rows.count, next, |some| some_rows(
        &mut best, some, read, wins
    ));
}

/// The next `N` rows, for the reason of [`together`](super::lines::together).
#[inline(always)]
fn some_rows<R: Number, const SIZE: usize, const N: usize>(
    best: &mut Best<R>,
    rows: [&[[u8; SIZE]]; N],
    read: impl Fn([u8; SIZE]) -> R,
    wins: impl Fn(R, R) -> bool,
) {
    let count = best.elements.len();
    let rows = rows.map(|row| &row[..count]);
    let numbers = &mut best.places[..count];
    for (i, element) in best.elements.iter_mut().enumerate() {
        let (mut extreme, mut number) = (*element, numbers[i]);
        for (row, next) in rows.iter().zip(best.next..) {
            let x = read(row[i]);
            let wins = wins(x, extreme) | x.is_nan();
            extreme = if wins { x } else { extreme };
            number = if wins { next } else { number };
        }
        (*element, numbers[i]) = (extreme, number);
    }
    best.next += N as u32;
}

#[inline(always)]
fn each<R: Number, const SIZE: usize>(
    best: Best<R>,
    from: &[u8],
    rows: Rows,
    length: usize,
    read: impl Fn([u8; SIZE]) -> R + Copy,
    wins: impl Fn(R, R) -> bool + Copy,
) {
    match may_have_nan(from, rows, length, read) {
        false => each_row(best, from, rows, length, read, wins),
        true => each_row(best, from, rows, length, read, |x, y| {
            wins(x, y) | x.is_nan()
        }),
    }
}

#[inline(always)]
fn each_row<R: Copy, const SIZE: usize>(
    best: Best<R>,
    from: &[u8],
    rows: Rows,
    length: usize,
    read: impl Fn([u8; SIZE]) -> R,
    wins: impl Fn(R, R) -> bool,
) {
    let states = best.elements.iter_mut().zip(best.places);
    for (at, (element, number)) in rows.starts().zip(states) {
        let cells = from[at..at + length * SIZE].as_chunks().0;
        let (mut extreme, mut place) = (read(cells[0]), 0);
        for (x, i) in cells.iter().zip(0..) {
            let x = read(*x);
            let wins = wins(x, extreme);
            extreme = if wins { x } else { extreme };
            place = if wins { i } else { place };
        }
        (*element, *number) = (extreme, place);
    }
}

macro_rules! indices {
    ($($name:ident, $module:ident: $t:ty;)*) => { $(
        pub(super) const $name: Indices<$t> = Indices {
            find: $module::find,
            find_nan: $module::find_nan,
            steps: $module::steps,
            each: $module::each,
        };

        mod $module {
            use super::*;

            widest! {
                pub(super) fn find(from: &[u8], wanted: $t, last: bool) -> usize {
                    super::find(from, last, |x| <$t>::from_ne_bytes(*x) == wanted)
                }

                pub(super) fn find_nan(from: &[u8]) -> usize {
                    super::find(from, true, |x| Number::is_nan(<$t>::from_ne_bytes(*x)))
                }

                pub(super) fn steps(best: Best<$t>, from: &[u8], rows: Rows) {
                    let read = <$t>::from_ne_bytes;
                    match (best.largest, best.last) {
                        (true, false) => super::steps(best, from, rows, read, |x, y| x > y),
                        (true, true) => super::steps(best, from, rows, read, |x, y| x >= y),
                        (false, false) => super::steps(best, from, rows, read, |x, y| x < y),
                        (false, true) => super::steps(best, from, rows, read, |x, y| x <= y),
                    }
                }

                pub(super) fn each(best: Best<$t>, from: &[u8], rows: Rows, length: usize) {
                    let read = <$t>::from_ne_bytes;
                    match (best.largest, best.last) {
                        (true, false) => super::each(best, from, rows, length, read, |x, y| x > y),
                        (true, true) => super::each(best, from, rows, length, read, |x, y| x >= y),
                        (false, false) => super::each(best, from, rows, length, read, |x, y| x < y),
                        (false, true) => super::each(best, from, rows, length, read, |x, y| x <= y),
                    }
                }
            }
        }
    )* };
}
indices! {
    F32, f32: f32;
    F64, f64: f64;
    U8, u8: u8;
    S32, s32: i32;
    S64, s64: i64;
}
