//! Functions of f32 numbers in f32, without branches or calls. Their polynomials are the best ones for their intervals
//! with coefficients of f32 (Lawson's iteration); errors are those of every seventh f32, beside f64 rounded once.

use std::f32::consts::{LN_2, LOG2_E, SQRT_2};

/// Adding it rounds to an integer, which is then in the low bits.
const ROUND: f32 = 1.5 * (1u32 << 23) as f32;
/// ln 2 less its f32.
const LN_2_LOW: f32 = (std::f64::consts::LN_2 - LN_2 as f64) as f32;

/// A polynomial with these coefficients, the highest first.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for &coefficient in &coefficients[1..] {
        sum = sum.mul_add(x, coefficient);
    }
    sum
}

/// 2^n, of a normal exponent.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// 2^n times a polynomial of what is left, at most ln 2 / 2; within 1 ulp, denormals too.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const SERIES: [f32; 5] = [
        1.381_982_4e-3,
        8.368_687e-3,
        4.166_827_7e-2,
        0.166_665_21,
        0.499_999_94,
    ];
    // NaN passes both comparisons by.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let rest = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2, x));
    let size = (rest * rest).mul_add(polynomial(rest, SERIES), rest) + 1.0;
    // Two factors, since one has no exponents for denormals, nor for what rounds to infinity.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    size * power(half) * power(n - half)
}

/// The exponent and what is left of a normal number over a power of two: between sqrt(1/2) and sqrt(2).
#[inline(always)]
fn parts(x: f32) -> (i32, f32) {
    const LOW: u32 = (SQRT_2 * 0.5).to_bits();
    // The exponent of the fraction that is closest to 1.
    let bits = x.to_bits().wrapping_add(1.0f32.to_bits() - LOW);
    let fraction = f32::from_bits((bits & 0x7f_ffff) + LOW);
    ((bits >> 23) as i32 - 127, fraction)
}

/// log((1 + f) 2^n), f being between sqrt(1/2) - 1 and sqrt(2) - 1.
#[inline(always)]
fn log_of_parts(n: i32, f: f32) -> f32 {
    const SERIES: [f32; 9] = [
        6.750_956e-2,
        -0.116_714_49,
        0.118_835_68,
        -0.124_060_32,
        0.142_203_2,
        -0.166_679_96,
        0.200_020_73,
        -0.250_000_1,
        0.333_333_13,
    ];
    let (n, square) = (n as f32, f * f);
    let low = (f * square).mul_add(polynomial(f, SERIES), n * LN_2_LOW);
    n.mul_add(LN_2, square.mul_add(-0.5, low) + f)
}

/// The exponent times ln 2 and a polynomial of the fraction; within 1 ulp.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    const UP: f32 = (1u32 << 23) as f32;
    let is_small = x < f32::MIN_POSITIVE;
    let (exponent, fraction) = parts(if is_small { x * UP } else { x });
    let exponent = exponent - if is_small { 23 } else { 0 };
    let log = log_of_parts(exponent, fraction - 1.0);
    let log = if x < f32::INFINITY { log } else { x };
    let log = if x == 0.0 { f32::NEG_INFINITY } else { log };
    if x >= 0.0 { log } else { f32::NAN }
}

/// As [`log`] of 1 + x, and what that sum loses (Knuth's two-sum); within 1 ulp.
#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    let taken = sum - 1.0;
    let lost = (1.0 - (sum - taken)) + (x - taken);
    let (exponent, fraction) = parts(sum);
    // Beyond 2^126 nothing is lost that counts.
    let rest = lost.mul_add(power(-exponent.min(126)), fraction - 1.0);
    let rest = if exponent == 0 { x } else { rest };
    let log = log_of_parts(exponent, rest);
    let log = if x < f32::INFINITY { log } else { x };
    let log = if x == -1.0 { f32::INFINITY } else { log };
    let log = if x >= -1.0 { log } else { f32::NAN };
    log.copysign(x)
}

/// An odd polynomial near 0, beyond 1 - 2 / (e^2x + 1); within 1 ulp.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    const SERIES: [f32; 5] = [
        -5.716_203e-3,
        2.064_970_9e-2,
        -5.374_317e-2,
        0.133_314_86,
        -0.333_332_84,
    ];
    let size = x.abs();
    let far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
    let square = x * x;
    let near = (size * square).mul_add(polynomial(square, SERIES), size);
    let result = if size < 0.625 { near } else { far };
    result.copysign(x)
}

/// Within 2 ulp.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let over = if x < 0.0 { e } else { 1.0 };
    over / (1.0 + e)
}

/// An odd polynomial near 0, beyond 1 - p^4 of a polynomial p; within 1 ulp.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    const NEAR: [f32; 7] = [
        7.433_212e-5,
        -7.887_315_6e-4,
        5.175_048_5e-3,
        -2.684_735e-2,
        0.112_834_5,
        -0.376_126_17,
        0.128_379_17,
    ];
    const FAR: [f32; 8] = [
        -1.692_189_7e-4,
        3.091_966_3e-3,
        -2.138_830_7e-2,
        6.352_01e-2,
        -4.566_097_6e-2,
        -6.866_973e-2,
        -0.305_678_73,
        1.004_724_7,
    ];
    let size = x.abs();
    // From here on it is 1.
    let until = if size > 4.0 { 4.0 } else { size };
    let root = polynomial(until, FAR);
    let root = root * root;
    let far = root.mul_add(-root, 1.0);
    let square = x * x;
    let near = size.mul_add(polynomial(square, NEAR), size);
    let result = if size < 1.0625 { near } else { far };
    result.copysign(x)
}
