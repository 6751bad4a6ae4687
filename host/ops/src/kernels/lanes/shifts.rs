//! Elements of a line, each with those that lie some steps behind it: what a window has along an axis, all windows side by side.

use super::lines::{at_once, together};
use super::widest;
use crate::kernels::number::{Number, Ring};

/// Makes each element of `to` of the one of `from` at its place and of those that follow it, so far apart, `count` in all and in
/// their order, after `start`.
pub(in crate::kernels) type Shifts<R> =
    fn(to: &mut [R], from: &[R], start: R, apart: usize, count: usize);

/// The first of them, together.
#[inline(always)]
fn first<R: Copy, const N: usize>(
    to: &mut [R],
    from: &[R],
    start: R,
    apart: usize,
    combine: impl Fn(R, R) -> R,
) {
    let mut rest = from;
    let lines = [(); N].map(|()| {
        let line = &rest[..to.len()];
        rest = rest.get(apart..).unwrap_or_default();
        line
    });
    for (i, to) in to.iter_mut().enumerate() {
        *to = lines
            .iter()
            .fold(start, |state, line| combine(state, line[i]));
    }
}

#[inline(always)]
fn each<R: Copy>(
    to: &mut [R],
    from: &[R],
    start: R,
    apart: usize,
    count: usize,
    combine: impl Fn(R, R) -> R + Copy,
) {
    let mut done = at_once(count);
    match done {
        4 => first::<R, 4>(to, from, start, apart, combine),
        3 => first::<R, 3>(to, from, start, apart, combine),
        2 => first::<R, 2>(to, from, start, apart, combine),
        _ => first::<R, 1>(to, from, start, apart, combine),
    }
    while done < count {
        let more = at_once(count - done);
        let line = |i| &from[(done + i) * apart..];
        match more {
            4 => together(to, [line(0), line(1), line(2), line(3)], combine),
            3 => together(to, [line(0), line(1), line(2)], combine),
            2 => together(to, [line(0), line(1)], combine),
            _ => together(to, [line(0)], combine),
        }
        done += more;
    }
}

macro_rules! shifts {
    ($($name:ident: $t:ty, $combine:path;)*) => { widest! { $(
        pub(in crate::kernels) fn $name(to: &mut [$t], from: &[$t], start: $t, apart: usize, count: usize) {
            each(to, from, start, apart, count, $combine);
        }
    )* } };
}
shifts! {
    sum_f64: f64, Ring::add;
    sum_s64: i64, Ring::add;
    product_f64: f64, Ring::multiply;
    product_s64: i64, Ring::multiply;
    max_f32: f32, Number::larger;
    max_f64: f64, Number::larger;
    max_u8: u8, Number::larger;
    max_s32: i32, Number::larger;
    max_s64: i64, Number::larger;
    min_f32: f32, Number::smaller;
    min_f64: f64, Number::smaller;
    min_u8: u8, Number::smaller;
    min_s32: i32, Number::smaller;
    min_s64: i64, Number::smaller;
}
