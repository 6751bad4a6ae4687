//! Functions of f64 numbers in f64, without branches or calls, each within 3 units in the last place.

use super::typed::Long;
use super::widest;
use crate::kernels::vector::polynomial;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// Adding it rounds to an integer, which is then in the low bits.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
/// ln 2 less its f64.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
/// ln 2 with so few bits that an exponent times it is exact, and the rest.
const LN_2_HIGH: f64 = f64::from_bits(LN_2.to_bits() & !0xffff_ffff);
const LN_2_LOW: f64 = (LN_2 - LN_2_HIGH) + LN_2_REST;

macro_rules! maps {
    ($($name:ident: $one:path;)*) => { widest! { $(
        pub(crate) fn $name(from: &[Long], to: &mut [Long]) {
            for (to, x) in to.iter_mut().zip(from) {
                *to = $one(f64::from_ne_bytes(*x)).to_ne_bytes();
            }
        }
    )* } };
}
maps! {
    exp: one_exp;
    expm1: one_expm1;
    log: one_log;
    log1p: one_log1p;
    tanh: one_tanh;
    sigmoid: one_sigmoid;
    sqrt: f64::sqrt;
    rsqrt: one_rsqrt;
}

/// 2^n, of a normal exponent.
#[inline(always)]
fn power(n: i64) -> f64 {
    f64::from_bits(n.wrapping_add(1023).cast_unsigned() << 52)
}

/// n and e^rest - 1, where x is n ln 2 and a rest of at most ln 2 / 2, of which the series has what counts.
#[inline(always)]
fn parts_of_exp(x: f64) -> (i64, f64) {
    const SERIES: [f64; 12] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ];
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let rest = n.mul_add(-LN_2_REST, n.mul_add(-LN_2, x));
    let less_one = (rest * rest).mul_add(polynomial::<true, 12>(rest, SERIES), rest);
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits());
    (n.cast_signed(), less_one)
}

/// x 2^n in two factors, since one has no exponents for denormals, nor for what rounds to infinity.
#[inline(always)]
fn scaled(x: f64, n: i64) -> f64 {
    // An arithmetic shift of eight bytes is none that all vectors have.
    let half = n.wrapping_add(2048).cast_unsigned() >> 1;
    let half = half.cast_signed().wrapping_sub(1024);
    x * power(half) * power(n.wrapping_sub(half))
}

#[inline(always)]
fn one_exp(x: f64) -> f64 {
    // NaN passes both comparisons by.
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (n, less_one) = parts_of_exp(x);
    scaled(1.0 + less_one, n)
}

#[inline(always)]
fn one_expm1(x: f64) -> f64 {
    let bound = if x > 710.0 { 710.0 } else { x };
    // From here on it is -1.
    let bound = if bound < -40.0 { -40.0 } else { bound };
    let (n, less_one) = parts_of_exp(bound);
    // Beyond 2^60 the one does not count.
    let inverse = power(if n > 60 { -60 } else { n.wrapping_neg() });
    let result = scaled((1.0 - inverse) + less_one, n);
    // The zero's sign.
    if x == 0.0 { x } else { result }
}

/// The exponent of a normal number, and the number over that power of two: from sqrt(1/2) to sqrt(2).
#[inline(always)]
fn parts(x: f64) -> (f64, f64) {
    const LOW: u64 = (SQRT_2 * 0.5).to_bits();
    /// An integer as the low bits of this number.
    const UNIT: f64 = (1u64 << 52) as f64;
    // The exponent of the fraction that is closest to 1.
    let bits = x.to_bits().wrapping_add(1f64.to_bits() - LOW);
    let fraction = f64::from_bits((bits & ((1 << 52) - 1)) + LOW);
    let exponent = f64::from_bits(UNIT.to_bits() | (bits >> 52)) - (UNIT + 1023.0);
    (exponent, fraction)
}

/// log((1 + f) 2^n), f being between sqrt(1/2) - 1 and sqrt(2) - 1, by the series of atanh of f / (2 + f).
#[inline(always)]
fn log_of_parts(n: f64, f: f64) -> f64 {
    const SERIES: [f64; 10] = [
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
    ];
    let s = f / (2.0 + f);
    let square = s * s;
    let half = 0.5 * f * f;
    // log(1 + f) is f - half + s (half + the series without its first term).
    let rest = s * square.mul_add(polynomial::<true, 10>(square, SERIES), half);
    n.mul_add(LN_2_HIGH, f - (half - n.mul_add(LN_2_LOW, rest)))
}

#[inline(always)]
fn one_log(x: f64) -> f64 {
    const UP: f64 = (1u64 << 52) as f64;
    let is_small = x < f64::MIN_POSITIVE;
    let (exponent, fraction) = parts(if is_small { x * UP } else { x });
    let exponent = if is_small { exponent - 52.0 } else { exponent };
    let log = log_of_parts(exponent, fraction - 1.0);
    let log = if x < f64::INFINITY { log } else { x };
    let log = if x == 0.0 { f64::NEG_INFINITY } else { log };
    if x >= 0.0 { log } else { f64::NAN }
}

/// As [`one_log`] of 1 + x, and what that sum loses (Knuth's two-sum).
#[inline(always)]
fn one_log1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    let taken = sum - 1.0;
    let lost = (1.0 - (sum - taken)) + (x - taken);
    let (exponent, fraction) = parts(sum);
    let apart = fraction.to_bits().wrapping_sub(sum.to_bits());
    let scale = f64::from_bits(1f64.to_bits().wrapping_add(apart));
    let rest = lost.mul_add(scale, fraction - 1.0);
    // Of numbers beyond 2^60 nothing is lost that counts.
    let is_large = exponent > 60.0;
    let rest = if is_large { fraction - 1.0 } else { rest };
    let rest = if exponent == 0.0 { x } else { rest };
    let log = log_of_parts(exponent, rest);
    let log = if x < f64::INFINITY { log } else { x };
    let log = if x == -1.0 { f64::NEG_INFINITY } else { log };
    let log = if x >= -1.0 { log } else { f64::NAN };
    // The zero's sign.
    if x == 0.0 { x } else { log }
}

#[inline(always)]
fn one_tanh(x: f64) -> f64 {
    let t = one_expm1(-2.0 * x.abs());
    (-t / (2.0 + t)).copysign(x)
}

#[inline(always)]
fn one_sigmoid(x: f64) -> f64 {
    let e = one_exp(-x.abs());
    let over = if x < 0.0 { e } else { 1.0 };
    over / (1.0 + e)
}

#[inline(always)]
fn one_rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}
