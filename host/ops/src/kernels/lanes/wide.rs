//! Functions of f32 numbers that are computed in f64, without branches or calls: those that would lose too much in f32.

use crate::kernels::vector::{one_exp, one_log, polynomial};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// Below it the difference to 1 would cancel.
const SMALL: f64 = 1e-4;
/// From here on an angle's turns do not fit the integer that counts them.
pub(super) const FAR: f32 = (1u32 << 30) as f32;

#[inline(always)]
pub(super) fn expm1(x: f32) -> f32 {
    let x = f64::from(x);
    let far = one_exp::<true>(x) - 1.0;
    let near = x * polynomial::<true, 3>(x, [1.0 / 6.0, 0.5, 1.0]);
    (if x.abs() < SMALL { near } else { far }) as f32
}

#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let x = f64::from(x);
    let far = one_log::<true>(1.0 + x);
    let near = x * polynomial::<true, 3>(x, [1.0 / 3.0, -0.5, 1.0]);
    (if x.abs() < SMALL { near } else { far }) as f32
}

#[inline(always)]
pub(super) fn rsqrt(x: f32) -> f32 {
    (1.0 / f64::from(x).sqrt()) as f32
}

/// Of angles below [`FAR`].
#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    turned(x, 0) as f32
}

/// Of angles below [`FAR`].
#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    turned(x, 1) as f32
}

/// The sine of so many quarter turns more: of what is left of x beyond quarter turns (Cody and Waite 1980), at most π / 4,
/// one of two series.
#[inline(always)]
fn turned(x: f32, more: u64) -> f64 {
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    /// π / 2 less its f64.
    const LOW: f64 = 6.123_233_995_736_766e-17;
    const SINE: [f64; 6] = [
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ];
    const COSINE: [f64; 7] = [
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -0.5,
        1.0,
    ];
    let x = f64::from(x);
    let shifted = x.mul_add(FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let rest = n.mul_add(-LOW, n.mul_add(-FRAC_PI_2, x));
    let square = rest * rest;
    let sine = rest * polynomial::<true, 6>(square, SINE);
    let cosine = polynomial::<true, 7>(square, COSINE);
    let quarter = shifted.to_bits().wrapping_add(more);
    let either = if quarter & 1 == 0 { sine } else { cosine };
    f64::from_bits(either.to_bits() ^ (quarter & 2) << 62)
}

/// e^(y log |x|), negative where x is and y is odd, with C's special cases.
#[inline(always)]
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let (x, y) = (f64::from(x), f64::from(y));
    let (size, half) = (x.abs(), 0.5 * y);
    let is_whole = y.trunc() == y;
    let is_odd = is_whole & (half.trunc() != half);
    let power = one_exp::<true>(y * one_log::<true>(size));
    let sign = if is_odd { x } else { 1.0 };
    let power = power.copysign(sign);
    let power = if (x < 0.0) & (x > f64::NEG_INFINITY) & !is_whole {
        f64::NAN
    } else {
        power
    };
    let is_one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (y.abs() == f64::INFINITY));
    (if is_one { 1.0 } else { power }) as f32
}
