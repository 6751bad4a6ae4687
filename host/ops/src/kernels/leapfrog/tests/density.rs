//! Densities against published formulas, numeric derivatives and integrals.

use super::super::density::{Density, FAMILIES, Family};
use super::super::real::{lbeta, lgamma_half_step, lgamma_peak};
use super::reference::{HALF_STEP, LBETA, PEAK, REFERENCE};

/// Two sets of parameters for each number of them.
fn parameters(family: &Family) -> [Vec<f64>; 2] {
    let near = [0.8, 1.7, 4.5];
    let far = [2.5, 0.6, 1.3];
    [near, far].map(|all| all[..family.parameters.len()].to_vec())
}

fn density(op: &str, parameters: &[f64]) -> Density<f64> {
    Density::new(Family::of(op).unwrap(), parameters)
}

#[test]
fn log_densities_and_gradients_are_those_of_the_formulas() {
    for (op, parameters, z, logp, gradient) in REFERENCE {
        let value = density(op, parameters).at(*z);
        // At a distance of z from the origin, z itself is not known better.
        let allowed = |expected: f64| 4e-15 * expected.abs().max(1e-180) * z.abs().clamp(1.0, 20.0);
        let text = format!("{op} {parameters:?} at {z}: {value:?}");
        // Large parameters multiply the rounding of what they stand before.
        let size = parameters.iter().copied().fold(1.0, f64::max).min(1e3);
        assert!(
            (value.logp - logp).abs() <= size * allowed(*logp),
            "{text} {logp}"
        );
        let slack = size * allowed(*gradient)
            + if *z > 700.0 || *z < -700.0 {
                0.0
            } else {
                4e-15
            };
        assert!(
            (value.gradient - gradient).abs() <= slack,
            "{text} {gradient}"
        );
    }
}

#[test]
fn functions_of_the_gamma_function_do_not_cancel() {
    let close = |got: f64, expected: f64| (got - expected).abs() <= 8e-15 * expected.abs().max(1.0);
    for (x, expected) in HALF_STEP {
        assert!(close(lgamma_half_step(*x), *expected), "half step {x}");
    }
    for (x, expected) in PEAK {
        assert!(
            close(lgamma_peak(*x), *expected),
            "peak {x}: {}",
            lgamma_peak(*x)
        );
    }
    for (a, b, expected) in LBETA {
        assert!(close(lbeta(*a, *b), *expected), "beta {a} {b}");
        assert_eq!(lbeta(*a, *b), lbeta(*b, *a));
    }
}

/// Whether `gradient` is the derivative of `logp` at `z`, by central differences.
fn is_derivative(logp: impl Fn(f64) -> f64, gradient: f64, z: f64) -> bool {
    let h = 1e-5;
    let slope = (logp(z + h) - logp(z - h)) / (2.0 * h);
    (slope - gradient).abs() <= 1e-8 * (1.0 + gradient.abs()) * (1.0 + z.abs().exp())
}

#[test]
fn gradients_are_derivatives_and_wrong_ones_are_caught() {
    for family in FAMILIES {
        for parameters in parameters(family) {
            let density = density(family.op, &parameters);
            for z in [-2.0, -0.7, 0.0, 0.4, 1.3] {
                let value = density.at(z);
                let logp = |z| density.at(z).logp;
                let text = format!("{} {parameters:?} at {z}: {value:?}", family.op);
                assert!(is_derivative(logp, value.gradient, z), "{text}");
                // Without a Jacobian, with the other sign, off by a thousandth.
                for wrong in [
                    value.gradient - 1.0,
                    -value.gradient - 0.1,
                    value.gradient + 1e-3,
                ] {
                    assert!(!is_derivative(logp, wrong, z), "{text} passes as {wrong}");
                }
            }
        }
    }
}

/// The integral over all z = sinh(t), by the trapezoidal rule.
fn integral(logp: impl Fn(f64) -> f64) -> f64 {
    let (step, from) = (1.0 / 256.0, -40.0);
    let term = |i: u32| {
        let t: f64 = from + f64::from(i) * step;
        let density = logp(t.sinh()).exp();
        if density == 0.0 {
            0.0
        } else {
            density * t.cosh()
        }
    };
    (0..=(80 * 256)).map(term).sum::<f64>() * step
}

#[test]
fn densities_integrate_to_one_and_a_lost_constant_is_caught() {
    for family in FAMILIES {
        for parameters in parameters(family) {
            let density = density(family.op, &parameters);
            let whole = integral(|z| density.at(z).logp);
            assert!(
                (whole - 1.0).abs() < 1e-11,
                "{} {parameters:?}: {whole}",
                family.op
            );
            let more = integral(|z| density.at(z).logp + 1e-9);
            assert!((more - 1.0).abs() > 1e-11);
        }
    }
}

#[test]
fn parameters_that_make_no_distribution_give_nan() {
    for family in FAMILIES {
        for index in family.positive..family.parameters.len() {
            for bad in [0.0, -1.0, f64::NAN] {
                let mut parameters = parameters(family)[0].clone();
                parameters[index] = bad;
                let value = density(family.op, &parameters).at(0.3);
                assert!(
                    value.logp.is_nan() && value.gradient.is_nan(),
                    "{}",
                    family.op
                );
            }
        }
    }
}
