//! The two float types that chains are computed in, and the functions that densities need of them.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// f32 or f64. Functions of f32 are computed in f64 and rounded once.
pub(super) trait Real:
    Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Beyond its reciprocal, 1 + v^2 is v^2.
    const SMALL: Self;

    fn of(value: f64) -> Self;
    fn wide(self) -> f64;

    fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self::of(function(self.wide()))
    }
}

impl Real for f32 {
    const SMALL: f32 = 1.0 / 32768.0;

    fn of(value: f64) -> f32 {
        value as f32
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const SMALL: f64 = 1.0 / 1_073_741_824.0;

    fn of(value: f64) -> f64 {
        value
    }

    fn wide(self) -> f64 {
        self
    }
}

/// log(gamma(x + 1/2)) - log(gamma(x)) for x > 0: for large x its series in 1/x (Tricomi and Erdélyi 1951).
pub(super) fn lgamma_half_step(x: f64) -> f64 {
    if x < 8.0 {
        return libm::lgamma(x + 0.5) - libm::lgamma(x);
    }
    let series = [
        1.0 / 8.0,
        -1.0 / 192.0,
        1.0 / 640.0,
        -17.0 / 14336.0,
        31.0 / 18432.0,
        -691.0 / 180_224.0,
        5461.0 / 425_984.0,
        -929_569.0 / 15_728_640.0,
    ];
    0.5 * x.ln() - odd_powers(&series, x)
}

/// x log(x) - x - log(gamma(x)) for x > 0: for large x by Stirling's series.
pub(super) fn lgamma_peak(x: f64) -> f64 {
    if x < 8.0 {
        return x * (x.ln() - 1.0) - libm::lgamma(x);
    }
    0.5 * x.ln() - HALF_LOG_TWO_PI - stirling(x)
}

/// log(gamma(a) gamma(b) / gamma(a + b)) for a, b > 0: Stirling's formula for the two large ones (DiDonato and Morris
/// 1992, function ALGDIV).
pub(super) fn lbeta(a: f64, b: f64) -> f64 {
    let (small, large, sum) = (a.min(b), a.max(b), a + b);
    if large < 8.0 {
        return libm::lgamma(small) + libm::lgamma(large) - libm::lgamma(sum);
    }
    let growth = (large - 0.5) * (small / large).ln_1p();
    libm::lgamma(small) - growth - small * (sum.ln() - 1.0) + (stirling(large) - stirling(sum))
}

pub(super) const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
pub(super) const LOG_PI: f64 = 1.144_729_885_849_400_2;
pub(super) const HALF_LOG_HALF_PI: f64 = 0.225_791_352_644_727_43;

/// Stirling's series for x >= 8 (Abramowitz and Stegun 6.1.41).
fn stirling(x: f64) -> f64 {
    let series = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    odd_powers(&series, x)
}

/// c0 / x + c1 / x^3 + c2 / x^5 + ...
fn odd_powers(series: &[f64], x: f64) -> f64 {
    let square = 1.0 / (x * x);
    series.iter().rev().fold(0.0, |sum, c| c + square * sum) / x
}
