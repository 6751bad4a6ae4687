//! Reductions of elements where they lie: into one, or into results side by side.

use super::index::{self, Indices};
use super::lines::{Line, Rows, any_line, each_line, may_have_nan, some_at_once, together};
use super::widest;
use crate::kernels::number::{Number, Ring};
use crate::kernels::small::{S2, S4, U2, U4};
use nx_vulkan_abi::DType;

/// How many elements become one `R`, and how rows of elements are taken into as many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InPlace<R> {
    pub(in crate::kernels) run: fn(&[u8]) -> R,
    pub(in crate::kernels) steps: fn(&mut [R], &[u8], Rows),
    /// Takes each of some rows, of so many elements, into a state.
    pub(in crate::kernels) each: fn(&mut [R], &[u8], Rows, usize),
    /// Takes lines of elements, so many apart, into states.
    pub(in crate::kernels) lines: fn(&mut [R], &[u8], &[Line], usize),
    /// The same as `run`, of bf16 as they lie; nothing where they become f32 first.
    pub(in crate::kernels) of_bf16: Option<fn(&[u8]) -> R>,
}

/// Accumulators that are independent of each other: as many as hide the latency of the widest vectors.
const LANES: usize = 64;
/// As many as a short row is worth.
const FEW: usize = LANES / 4;
/// Results side by side from which on all rows are taken one after the other, not so many results at a time.
const WIDE: usize = 128;

/// The lower half of the lanes, each with one of the upper half.
#[inline(always)]
fn halve<R: Copy, const N: usize, const HALF: usize>(
    lanes: [R; N],
    combine: impl Fn(R, R) -> R,
) -> [R; HALF] {
    let mut half = [lanes[0]; HALF];
    for (i, to) in half.iter_mut().enumerate() {
        *to = combine(lanes[i], lanes[i + HALF]);
    }
    half
}

/// Takes one element after the other into each lane; what fills no row of lanes is left.
#[inline(always)]
fn take<R: Copy, const SIZE: usize, const N: usize>(
    mut lanes: [R; N],
    cells: &[[u8; SIZE]],
    read: impl Fn([u8; SIZE]) -> R,
    combine: impl Fn(R, R) -> R,
) -> ([R; N], &[[u8; SIZE]]) {
    let (chunks, rest) = cells.as_chunks::<N>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, read(*x));
        }
    }
    (lanes, rest)
}

/// All of them, with ever fewer lanes: a row is often short, and seldom fills all of them.
#[inline(always)]
fn all<R: Copy, const SIZE: usize>(
    from: &[u8],
    start: R,
    read: impl Fn([u8; SIZE]) -> R + Copy,
    combine: impl Fn(R, R) -> R + Copy,
) -> R {
    let cells = from.as_chunks().0;
    if cells.len() < FEW {
        return cells.iter().fold(start, |all, x| combine(all, read(*x)));
    }
    let (lanes, rest) = if cells.len() < LANES {
        ([start; FEW], cells)
    } else {
        let (lanes, rest) = take([start; LANES], cells, read, combine);
        let half: [R; LANES / 2] = halve(lanes, combine);
        (halve(half, combine), rest)
    };
    let (lanes, rest) = take(lanes, rest, read, combine);
    let half: [R; FEW / 2] = halve(lanes, combine);
    let (lanes, rest) = take(halve::<_, _, 4>(half, combine), rest, read, combine);
    let half: [R; 2] = halve(lanes, combine);
    take(halve::<_, _, 1>(half, combine), rest, read, combine).0[0]
}

/// The one of all floats that no other beats, or NaN where one of them is: without a look at each whether it is.
#[inline(always)]
fn best<R: Number, const SIZE: usize>(
    from: &[u8],
    start: R,
    read: impl Fn([u8; SIZE]) -> R + Copy,
    combine: impl Fn(R, R) -> R + Copy,
    beats: impl Fn(R, R) -> bool + Copy,
) -> R {
    let take = |best, x| if beats(x, best) { x } else { best };
    let found = all(from, start, read, take);
    let cells = from.as_chunks().0.iter();
    match cells.fold(false, |any, x| any | read(*x).is_nan()) {
        true => all(from, start, read, combine),
        false => found,
    }
}

/// Rows into as many states.
#[inline(always)]
fn rows<R: Copy, const SIZE: usize>(
    states: &mut [R],
    from: &[u8],
    rows: Rows,
    read: impl Fn([u8; SIZE]) -> R + Copy,
    combine: impl Fn(R, R) -> R + Copy,
) {
    if states.len() >= WIDE || rows.count == 1 {
        let mut starts = rows.starts().map(|at| from[at..].as_chunks::<SIZE>().0);
        let combine = |state, x| combine(state, read(x));
        let mut next = || starts.next().unwrap_or_default();
        some_at_once!(rows.count, next, |some| together(states, some, combine));
        return;
    }
    let mut rows = rows;
    let mut rest = states;
    while rest.len() > 16 {
        let (own, others) = rest.split_at_mut(rest.len().min(32));
        strip::<R, SIZE, 32>(own, from, rows, read, combine);
        (rest, rows.first) = (others, rows.first + 32 * SIZE);
    }
    if !rest.is_empty() {
        strip::<R, SIZE, 16>(rest, from, rows, read, combine);
    }
}

/// The same of at most `N` states, which stay in registers. What lies behind them in a row is read too, and forgotten.
#[inline(always)]
fn strip<R: Copy, const SIZE: usize, const N: usize>(
    states: &mut [R],
    from: &[u8],
    rows: Rows,
    read: impl Fn([u8; SIZE]) -> R,
    combine: impl Fn(R, R) -> R,
) {
    let mut lanes = [states[0]; N];
    lanes[..states.len()].copy_from_slice(states);
    // As many rows as have so many elements behind their first: with steps forward the last ones may not.
    let room = from.len().checked_sub(N * SIZE);
    let whole = match room.and_then(|room| room.checked_sub(rows.first)) {
        None => 0,
        Some(room) if rows.step > 0 => rows.count.min(room / rows.step as usize + 1),
        Some(_) => rows.count,
    };
    // Nothing that could go two ways is in this loop: the lanes would not stay in registers.
    let all = Rows {
        count: whole,
        ..rows
    };
    for at in all.starts() {
        let cells = from[at..at + N * SIZE].as_chunks::<SIZE>().0;
        for (lane, x) in lanes.iter_mut().zip(cells) {
            *lane = combine(*lane, read(*x));
        }
    }
    for at in rows.starts().skip(whole) {
        let cells = from[at..].as_chunks::<SIZE>().0;
        for (lane, x) in lanes.iter_mut().zip(cells) {
            *lane = combine(*lane, read(*x));
        }
    }
    states.copy_from_slice(&lanes[..states.len()]);
}

macro_rules! folds {
    ($($name:ident: $t:ty => $r:ty, $start:expr, $combine:expr $(, $beats:tt)?;)*) => { $(
        mod $name {
            use super::*;

            pub(super) const IN_PLACE: InPlace<$r> = InPlace { run, steps, each, lines, of_bf16: None };

            #[inline(always)]
            fn read(cell: [u8; size_of::<$t>()]) -> $r {
                <$t>::from_ne_bytes(cell) as $r
            }

            #[inline(always)]
            fn whole(from: &[u8]) -> $r {
                $( return best(from, $start, read, $combine, |x, y| x $beats y); )?
                #[allow(unreachable_code, reason = "some have a faster way")]
                all(from, $start, read, $combine)
            }

            widest! {
                fn run(from: &[u8]) -> $r {
                    whole(from)
                }

                fn each(states: &mut [$r], from: &[u8], rows: Rows, length: usize) {
                    let states = states.iter_mut().zip(rows.starts());
                    let row = |at: usize| &from[at..at + length * size_of::<$t>()];
                    $(
                        if length < LANES && !may_have_nan(from, rows, length, read) {
                            let take = |best, x| if x $beats best { x } else { best };
                            for (state, at) in states {
                                *state = $combine(*state, all(row(at), $start, read, take));
                            }
                            return;
                        }
                    )?
                    for (state, at) in states {
                        *state = $combine(*state, whole(row(at)));
                    }
                }

                fn steps(states: &mut [$r], from: &[u8], all: Rows) {
                    rows(states, from, all, read, $combine);
                }

                fn lines(states: &mut [$r], from: &[u8], all: &[Line], step: usize) {
                    match step {
                        1 => each_line::<$r, { size_of::<$t>() }, 1>(states, from, all, read, $combine),
                        2 => each_line::<$r, { size_of::<$t>() }, 2>(states, from, all, read, $combine),
                        3 => each_line::<$r, { size_of::<$t>() }, 3>(states, from, all, read, $combine),
                        _ => any_line(states, from, all, step, read, $combine),
                    }
                }
            }
        }
    )* };
}
folds! {
    sum_f32: f32 => f64, 0.0, Ring::add;
    sum_f64: f64 => f64, 0.0, Ring::add;
    sum_u8: u8 => i64, 0, Ring::add;
    sum_s32: i32 => i64, 0, Ring::add;
    sum_u32: u32 => i64, 0, Ring::add;
    sum_s64: i64 => i64, 0, Ring::add;
    product_f32: f32 => f64, 1.0, Ring::multiply;
    product_f64: f64 => f64, 1.0, Ring::multiply;
    max_f32: f32 => f32, f32::LOWEST, Number::larger, >;
    max_f64: f64 => f64, f64::LOWEST, Number::larger, >;
    max_u8: u8 => u8, u8::LOWEST, Number::larger;
    max_s32: i32 => i32, i32::LOWEST, Number::larger;
    max_s64: i64 => i64, i64::LOWEST, Number::larger;
    min_f32: f32 => f32, f32::HIGHEST, Number::smaller, <;
    min_f64: f64 => f64, f64::HIGHEST, Number::smaller, <;
    min_u8: u8 => u8, u8::HIGHEST, Number::smaller;
    min_s32: i32 => i32, i32::HIGHEST, Number::smaller;
    min_s64: i64 => i64, i64::HIGHEST, Number::smaller;
}

/// Elements of bf16 that a lane adds up as f32: what that rounds is far below what bf16 does.
const SHORT: usize = 32;

#[inline(always)]
fn read_bf16(cell: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(cell)) << 16)
}

widest! {
    fn sum_bf16(from: &[u8]) -> f64 {
        let mut sum = 0.0;
        for block in from.as_chunks::<2>().0.chunks(LANES * SHORT) {
            let (lanes, rest) = take([0f32; LANES], block, read_bf16, Ring::add);
            let half: [f32; LANES / 2] = halve(lanes, Ring::add);
            let (lanes, rest) = take(halve::<_, _, 16>(half, Ring::add), rest, read_bf16, Ring::add);
            let rest = rest.iter().map(|cell| f64::from(read_bf16(*cell)));
            sum += lanes.into_iter().map(f64::from).chain(rest).sum::<f64>();
        }
        sum
    }
}

/// The sum of elements of that type, if it is a float; those of f16 become f32 first, as those of bf16 do where they are rows.
pub(in crate::kernels) fn sum_of_floats(dtype: DType) -> Option<InPlace<f64>> {
    match dtype {
        DType::F16 | DType::F32 => Some(sum_f32::IN_PLACE),
        DType::BF16 => Some(InPlace {
            of_bf16: Some(sum_bf16),
            ..sum_f32::IN_PLACE
        }),
        DType::F64 => Some(sum_f64::IN_PLACE),
        _ => None,
    }
}

/// The same of their product.
pub(in crate::kernels) fn product_of_floats(dtype: DType) -> Option<InPlace<f64>> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Some(product_f32::IN_PLACE),
        DType::F64 => Some(product_f64::IN_PLACE),
        _ => None,
    }
}

/// The sum of elements of that type, if it is an integer.
pub(in crate::kernels) fn sum_of_integers(dtype: DType) -> Option<InPlace<i64>> {
    match dtype {
        DType::U8 => Some(sum_u8::IN_PLACE),
        DType::S32 => Some(sum_s32::IN_PLACE),
        DType::U32 => Some(sum_u32::IN_PLACE),
        DType::S64 | DType::U64 => Some(sum_s64::IN_PLACE),
        _ => None,
    }
}

/// The largest and the smallest of elements that lie as their register does, where there are loops for it.
pub(in crate::kernels) trait Extremes: Number {
    const LARGEST: Option<InPlace<Self>> = None;
    const SMALLEST: Option<InPlace<Self>> = None;
    const INDICES: Option<Indices<Self>> = None;
}

macro_rules! extremes {
    ($($t:ty: $max:ident, $min:ident, $indices:ident;)*) => { $(
        impl Extremes for $t {
            const LARGEST: Option<InPlace<$t>> = Some($max::IN_PLACE);
            const SMALLEST: Option<InPlace<$t>> = Some($min::IN_PLACE);
            const INDICES: Option<Indices<$t>> = Some(index::$indices);
        }
    )* };
}
extremes! {
    f32: max_f32, min_f32, F32;
    f64: max_f64, min_f64, F64;
    u8: max_u8, min_u8, U8;
    i32: max_s32, min_s32, S32;
    i64: max_s64, min_s64, S64;
}

macro_rules! read_first {
    ($($t:ty),*) => { $( impl Extremes for $t {} )* };
}
read_first!(U2, U4, S2, S4, u16, u32, u64, i8, i16);
