//! Mathematical functions that the platform's library lacks, or has less exact, in f64, each within two units in the last place of the exact value, but for the one
//! that Nx defines otherwise.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        return 1.0 / (1.0 + (-x).exp());
    }
    let e = x.exp();
    e / (1.0 + e)
}

pub(crate) fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// Winitzki's approximation (2008), good to 2e-3, refined by Halley's method, which triples the digits each time.
pub(crate) fn inverse_of_erf(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        return x;
    }
    let magnitude = x.abs();
    if magnitude >= 1.0 {
        return if magnitude == 1.0 {
            f64::INFINITY.copysign(x)
        } else {
            f64::NAN
        };
    }
    let mut y = if magnitude < 0.01 {
        magnitude / FRAC_2_SQRT_PI
    } else {
        winitzki(magnitude)
    };
    for _ in 0..3 {
        // Near 1 the difference to 1 keeps the digits that erf itself has lost.
        let error = if magnitude < 0.5 {
            libm::erf(y) - magnitude
        } else {
            1.0 - magnitude - libm::erfc(y)
        };
        let step = error / (FRAC_2_SQRT_PI * (-y * y).exp());
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// Giles's polynomials (2010), good to 1e-7. Nx defines its f64 results by them, and `Nx.Random.normal` its samples.
pub(crate) fn erf_inv_of_nx(x: f64) -> f64 {
    const CENTRE: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    if x == 0.0 || x.abs() == 1.0 {
        return x / (1.0 - x.abs());
    }
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let (coefficients, t) = if w < 5.0 {
        (CENTRE, w - 2.5)
    } else {
        (TAIL, w.sqrt() - 3.0)
    };
    coefficients.iter().fold(0.0, |sum, c| sum * t + c) * x
}

fn winitzki(x: f64) -> f64 {
    const A: f64 = 0.147;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let half = 2.0 / (PI * A) + log / 2.0;
    ((half * half - log / A).sqrt() - half).sqrt()
}

/// libm's is only meant for arguments from 1 on.
pub(crate) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_inv_inverts_erf_to_the_last_digits() {
        for i in 1..2000 {
            let x = f64::from(i) / 2000.0;
            let back = libm::erf(inverse_of_erf(x));
            assert!((back - x).abs() <= 4e-16, "erf(erf_inv({x})) is {back}");
        }
        // 1 - 2^-53: the largest below 1. Its value is that of erfc's inverse at 2^-53.
        let largest = 1.0 - f64::EPSILON / 2.0;
        assert_eq!(inverse_of_erf(largest), 5.863_584_748_755_167_6);
    }
}
