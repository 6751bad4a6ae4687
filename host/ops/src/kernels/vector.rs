//! Functions over whole blocks in f64, good to 1e-12: written without branches or calls, so that they become the vector
//! instructions of the machine they run on. They serve results of at most f32, which they round to once; the exact ones of
//! the platform's library stay what others are compared with.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// In place, over a block.
pub(super) type Sweep = fn(&mut [f64]);

/// The function of that op, where there is one.
pub(super) fn find(op: &str) -> Option<Sweep> {
    Some(match op {
        "exp" => exp,
        "log" => log,
        "tanh" => tanh,
        "sigmoid" => sigmoid,
        "sqrt" => sqrt,
        "rsqrt" => rsqrt,
        _ => return None,
    })
}

macro_rules! over_blocks {
    ($($name:ident: $one:ident;)*) => { $(
        fn $name(block: &mut [f64]) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,fma")]
                fn widest(block: &mut [f64]) {
                    block.iter_mut().for_each(|x| *x = $one::<true>(*x));
                }
                #[target_feature(enable = "avx2,fma")]
                fn wide(block: &mut [f64]) {
                    block.iter_mut().for_each(|x| *x = $one::<true>(*x));
                }
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                    // SAFETY: the machine has these instructions, and those of FMA with them.
                    return unsafe { widest(block) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the machine has these instructions.
                    return unsafe { wide(block) };
                }
            }
            block.iter_mut().for_each(|x| *x = $one::<{ cfg!(target_arch = "aarch64") }>(*x));
        }
    )* };
}
over_blocks! {
    exp: one_exp;
    log: one_log;
    tanh: one_tanh;
    sigmoid: one_sigmoid;
    sqrt: one_sqrt;
    rsqrt: one_rsqrt;
}

/// `a * b + c`, rounded once where the machine does that in one instruction.
#[inline(always)]
fn fma<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// A polynomial with these coefficients, the highest first.
#[inline(always)]
pub(super) fn polynomial<const FUSED: bool, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[0];
    for &coefficient in &coefficients[1..] {
        sum = fma::<FUSED>(sum, x, coefficient);
    }
    sum
}

/// 2^n times the series around 0 of what is left, at most ln 2 / 2. Beyond f32 at either end it is 1e-304 or 1e304.
#[inline(always)]
pub(super) fn one_exp<const FUSED: bool>(x: f64) -> f64 {
    // Adding it rounds to an integer, which is then in the low bits.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    const SERIES: [f64; 12] = [
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
        1.0,
        1.0,
    ];
    // NaN passes both comparisons by.
    let x = if x > 700.0 { 700.0 } else { x };
    let x = if x < -700.0 { -700.0 } else { x };
    let shifted = fma::<FUSED>(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let rest = fma::<FUSED>(n, -LN_2, x);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    polynomial::<FUSED, 12>(rest, SERIES) * power
}

/// The exponent times ln 2 and the series of atanh for a fraction between sqrt(1/2) and sqrt(2).
#[inline(always)]
pub(super) fn one_log<const FUSED: bool>(x: f64) -> f64 {
    const SERIES: [f64; 9] = [
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
        2.0,
    ];
    // A biased exponent as the low bits of this number.
    const BIASED: f64 = (1u64 << 52) as f64;
    let exponent = f64::from_bits(BIASED.to_bits() | (x.to_bits() >> 52)) - (BIASED + 1023.0);
    let fraction = f64::from_bits(x.to_bits() & ((1 << 52) - 1) | 1.0f64.to_bits());
    let halve = fraction > SQRT_2;
    let fraction = if halve { 0.5 * fraction } else { fraction };
    let exponent = if halve { exponent + 1.0 } else { exponent };
    let s = (fraction - 1.0) / (fraction + 1.0);
    let log = fma::<FUSED>(exponent, LN_2, s * polynomial::<FUSED, 9>(s * s, SERIES));
    let log = if x < f64::INFINITY { log } else { x };
    let log = if x == 0.0 { f64::NEG_INFINITY } else { log };
    if x >= 0.0 { log } else { f64::NAN }
}

#[inline(always)]
fn one_tanh<const FUSED: bool>(x: f64) -> f64 {
    let size = x.abs();
    let e = one_exp::<FUSED>(-2.0 * size);
    let far = (1.0 - e) / (1.0 + e);
    // Where the difference would cancel.
    let near = fma::<FUSED>(size * size * size, -1.0 / 3.0, size);
    let result = if size < 1e-4 { near } else { far };
    result.copysign(x)
}

#[inline(always)]
fn one_sigmoid<const FUSED: bool>(x: f64) -> f64 {
    1.0 / (1.0 + one_exp::<FUSED>(-x))
}

#[inline(always)]
fn one_sqrt<const FUSED: bool>(x: f64) -> f64 {
    x.sqrt()
}

#[inline(always)]
fn one_rsqrt<const FUSED: bool>(x: f64) -> f64 {
    1.0 / x.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::math;

    /// Both functions of f32 numbers of all sizes and signs, rounded to f32.
    fn compare(op: &str, exact: fn(f64) -> f64) {
        let sweep = find(op).unwrap();
        let inputs: Vec<f32> = (0..u32::MAX).step_by(4099).map(f32::from_bits).collect();
        let mut block: Vec<f64> = inputs.iter().map(|x| f64::from(*x)).collect();
        sweep(&mut block);
        for (x, got) in inputs.iter().zip(block) {
            let (got, want) = (got as f32, exact(f64::from(*x)) as f32);
            let apart = i64::from(got.to_bits()) - i64::from(want.to_bits());
            assert!(
                got.is_nan() && want.is_nan() || apart.abs() <= 1,
                "{op} of {x:e}: {got:e} for {want:e}"
            );
        }
    }

    #[test]
    fn they_agree_with_the_exact_functions() {
        compare("exp", f64::exp);
        compare("log", f64::ln);
        compare("tanh", f64::tanh);
        compare("sigmoid", math::sigmoid);
        compare("sqrt", f64::sqrt);
        compare("rsqrt", math::rsqrt);
    }

    #[test]
    fn they_keep_what_is_special() {
        let of = |op: &str, x: f64| {
            let mut block = [x];
            find(op).unwrap()(&mut block);
            block[0]
        };
        assert_eq!(of("tanh", -0.0).to_bits(), (-0.0f64).to_bits());
        assert_eq!(of("exp", f64::NEG_INFINITY) as f32, 0.0);
        assert_eq!(of("exp", f64::INFINITY) as f32, f32::INFINITY);
        assert_eq!(of("log", 0.0), f64::NEG_INFINITY);
        assert!(of("log", -1.0).is_nan() && of("exp", f64::NAN).is_nan());
    }
}
