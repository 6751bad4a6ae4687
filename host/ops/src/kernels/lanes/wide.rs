//! Functions of f32 numbers that are computed in f64, without branches or calls: those that would lose too much in f32.
//! Those of one operand are within 1 ulp. Polynomials that are no series are the best ones for their intervals (Lawson's
//! iteration).

use crate::kernels::vector::{one_exp, one_log, polynomial};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

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

/// Of angles below [`FAR`].
#[inline(always)]
pub(super) fn tan(x: f32) -> f32 {
    (turned(x, 0) / turned(x, 1)) as f32
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

#[inline(always)]
pub(super) fn sinh(x: f32) -> f32 {
    let size = f64::from(x).abs();
    let e = one_exp::<true>(size);
    let near = (size * size * size).mul_add(1.0 / 6.0, size);
    let result = if size < SMALL {
        near
    } else {
        0.5 * (e - 1.0 / e)
    };
    result.copysign(x.into()) as f32
}

#[inline(always)]
pub(super) fn cosh(x: f32) -> f32 {
    let e = one_exp::<true>(f64::from(x).abs());
    (0.5 * (e + 1.0 / e)) as f32
}

#[inline(always)]
pub(super) fn asinh(x: f32) -> f32 {
    let size = f64::from(x).abs();
    let far = one_log::<true>(size + size.mul_add(size, 1.0).sqrt());
    let near = (size * size * size).mul_add(-1.0 / 6.0, size);
    let result = if size < SMALL { near } else { far };
    result.copysign(x.into()) as f32
}

#[inline(always)]
pub(super) fn acosh(x: f32) -> f32 {
    let x = f64::from(x);
    let result = one_log::<true>(x + x.mul_add(x, -1.0).sqrt());
    (if x < 1.0 { f64::NAN } else { result }) as f32
}

#[inline(always)]
pub(super) fn atanh(x: f32) -> f32 {
    let x = f64::from(x);
    let far = 0.5 * one_log::<true>((1.0 + x) / (1.0 - x));
    let near = (x * x * x).mul_add(1.0 / 3.0, x);
    (if x.abs() < SMALL { near } else { far }) as f32
}

#[inline(always)]
pub(super) fn cube_root(x: f32) -> f32 {
    let x = f64::from(x);
    let size = one_exp::<true>(one_log::<true>(x.abs()) * (1.0 / 3.0));
    size.copysign(x) as f32
}

#[inline(always)]
pub(super) fn atan(x: f32) -> f32 {
    angle(x.into(), 1.0) as f32
}

#[inline(always)]
pub(super) fn asin(x: f32) -> f32 {
    let x = f64::from(x);
    angle(x, ((1.0 - x) * (1.0 + x)).sqrt()) as f32
}

#[inline(always)]
pub(super) fn acos(x: f32) -> f32 {
    let x = f64::from(x);
    angle(((1.0 - x) * (1.0 + x)).sqrt(), x) as f32
}

/// That of the point (x, y): of the smaller over the larger side a polynomial, within 4e-10.
#[inline(always)]
pub(super) fn angle(y: f64, x: f64) -> f64 {
    const SERIES: [f64; 11] = [
        1.091_115_081_740e-3,
        -7.199_403_524_240e-3,
        2.227_439_163_918e-2,
        -4.435_753_113_724e-2,
        6.716_109_421_232e-2,
        -8.798_772_557_988e-2,
        0.110_545_012_684_4,
        -0.142_791_596_322_7,
        0.199_996_046_360_0,
        -0.333_333_239_352_4,
        0.999_999_999_628_2,
    ];
    let (width, height) = (x.abs(), y.abs());
    let is_steep = height > width;
    let (low, high) = if is_steep {
        (width, height)
    } else {
        (height, width)
    };
    let ratio = if low == high { 1.0 } else { low / high };
    let ratio = if low == 0.0 { 0.0 } else { ratio };
    let angle = ratio * polynomial::<true, 11>(ratio * ratio, SERIES);
    let angle = if is_steep { FRAC_PI_2 - angle } else { angle };
    let angle = if x.is_sign_negative() {
        PI - angle
    } else {
        angle
    };
    let angle = if x.is_nan() { x } else { angle };
    angle.copysign(y)
}

/// e^(-x^2) times a polynomial of 1 / (1 + 0.4 |x|), within 2e-9.
#[inline(always)]
pub(super) fn erfc(x: f32) -> f32 {
    const SERIES: [f64; 11] = [
        -3.821_049_341_417e-2,
        0.247_577_843_025_3,
        -0.623_681_908_982_9,
        0.728_533_784_473_5,
        -0.451_492_906_524_0,
        0.374_430_772_289_4,
        8.760_505_026_858e-2,
        0.226_362_974_650_0,
        0.222_982_704_763_0,
        0.225_900_427_995_9,
        -8.246_629_305_764e-6,
    ];
    let x = f64::from(x);
    let size = x.abs();
    // From here on it is 0.
    let size = if size > 11.0 { 11.0 } else { size };
    let t = 1.0 / size.mul_add(0.4, 1.0);
    let far = one_exp::<true>(-size * size) * polynomial::<true, 11>(t, SERIES);
    (if x < 0.0 { 2.0 - far } else { far }) as f32
}

/// x times a polynomial of log(1 - x^2), or of its root where x is close to 1 (Giles 2010), within 2e-9.
#[inline(always)]
pub(super) fn erf_inv(x: f32) -> f32 {
    const CENTRE: [f64; 12] = [
        1.328_589_092_888e-10,
        4.370_313_597_125e-10,
        -1.102_321_212_067e-8,
        1.645_722_681_756e-8,
        4.796_988_358_698e-7,
        -3.426_012_143_520e-6,
        -4.998_759_702_183e-6,
        2.182_635_574_441e-4,
        -1.252_704_876_963e-3,
        -4.177_324_636_168e-3,
        0.246_640_275_785_7,
        1.501_409_351_693,
    ];
    const TAIL: [f64; 11] = [
        -2.951_491_854_129e-5,
        1.605_527_267_707e-4,
        -2.774_940_382_593e-4,
        -1.200_438_578_040e-4,
        1.475_112_040_071e-3,
        -3.567_091_946_107e-3,
        5.687_698_669_172e-3,
        -7.642_764_096_187e-3,
        9.445_303_176_639e-3,
        1.001_675_236_654,
        2.832_976_801_456,
    ];
    let x = f64::from(x);
    let w = -one_log::<true>((1.0 - x) * (1.0 + x));
    let centre = polynomial::<true, 12>(w - 2.5, CENTRE);
    let tail = polynomial::<true, 11>(w.sqrt() - 3.0, TAIL);
    let factor = if w < 5.0 { centre } else { tail };
    let factor = if w == f64::INFINITY { w } else { factor };
    (x * factor) as f32
}
