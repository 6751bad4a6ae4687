//! The families: log density and gradient of one unconstrained coordinate. They know nothing of steps or chains.
//!
//! `docs/ops.md` has the formulas. Here they stand in the forms that neither overflow nor cancel, with the part that
//! does not depend on the coordinate computed once.

use super::real::{
    HALF_LOG_HALF_PI, HALF_LOG_TWO_PI, LOG_PI, Real, lbeta, lgamma_half_step, lgamma_peak,
};

/// A family of distributions.
#[derive(Debug)]
pub struct Family {
    /// The op that takes its steps.
    pub op: &'static str,
    /// Its parameters, in the order of the op's scalars after epsilon.
    pub parameters: &'static [&'static str],
    /// Index of the first parameter that must be above 0; all after it must be as well.
    pub positive: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Normal,
    Exponential,
    StudentT,
    Cauchy,
    HalfNormal,
    Weibull,
    Beta,
    Gamma,
}

/// Every family.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    Family { op: "leapfrog_normal",      parameters: &["mu", "sigma"],       positive: 1, kind: Kind::Normal },
    Family { op: "leapfrog_exponential", parameters: &["lambda"],            positive: 0, kind: Kind::Exponential },
    Family { op: "leapfrog_studentt",    parameters: &["mu", "sigma", "nu"], positive: 1, kind: Kind::StudentT },
    Family { op: "leapfrog_cauchy",      parameters: &["loc", "scale"],      positive: 1, kind: Kind::Cauchy },
    Family { op: "leapfrog_halfnormal",  parameters: &["sigma"],             positive: 0, kind: Kind::HalfNormal },
    Family { op: "leapfrog_weibull",     parameters: &["k", "lambda"],       positive: 0, kind: Kind::Weibull },
    Family { op: "leapfrog_beta",        parameters: &["alpha", "beta"],     positive: 0, kind: Kind::Beta },
    Family { op: "leapfrog_gamma",       parameters: &["alpha", "beta"],     positive: 0, kind: Kind::Gamma },
    // The density of x times |dx/dz| is the normal density of z = log(x).
    Family { op: "leapfrog_lognormal",   parameters: &["mu", "sigma"],       positive: 1, kind: Kind::Normal },
];

impl Family {
    /// The family of that op.
    pub fn of(op: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.op == op)
    }
}

/// A distribution of one coordinate.
#[derive(Debug)]
pub(super) struct Density<T> {
    /// Nothing where the parameters make no distribution.
    form: Option<Form<T>>,
}

/// What a kind needs of its parameters. `constant` is the part of the log density that does not depend on z.
#[derive(Debug)]
enum Form<T> {
    Normal {
        constant: T,
        mu: T,
        inverse: T,
    },
    Exponential {
        constant: T,
        lambda: T,
    },
    /// `slope` and `power` are those of log(1 + v^2); Cauchy is this as well.
    Heavy {
        constant: T,
        mu: T,
        inverse: T,
        slope: T,
        power: T,
    },
    HalfNormal {
        constant: T,
        inverse: T,
    },
    Weibull {
        constant: T,
        k: T,
        centre: T,
    },
    Beta {
        constant: T,
        alpha: T,
        beta: T,
    },
    Gamma {
        constant: T,
        alpha: T,
        centre: T,
    },
}

/// Log density and gradient at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<T> {
    pub(super) logp: T,
    pub(super) gradient: T,
}

impl<T: Real> Density<T> {
    /// The distribution with these parameters, in the order of the family. Parameters that make none give NaN everywhere.
    pub(super) fn new(family: &Family, parameters: &[T]) -> Density<T> {
        let fits = parameters[family.positive..]
            .iter()
            .all(|parameter| *parameter > T::of(0.0));
        let form = fits.then(|| Form::new(family.kind, parameters));
        Density {
            form: form.flatten(),
        }
    }

    pub(super) fn at(&self, z: T) -> Value<T> {
        match &self.form {
            Some(form) => form.at(z),
            None => Value {
                logp: T::of(f64::NAN),
                gradient: T::of(f64::NAN),
            },
        }
    }
}

impl<T: Real> Form<T> {
    /// Nothing when the number of parameters is not that of the kind.
    fn new(kind: Kind, parameters: &[T]) -> Option<Form<T>> {
        let one = T::of(1.0);
        Some(match (kind, parameters) {
            (Kind::Normal, &[mu, sigma]) => Form::Normal {
                constant: -log(sigma) - T::of(HALF_LOG_TWO_PI),
                mu,
                inverse: one / sigma,
            },
            (Kind::Exponential, &[lambda]) => Form::Exponential {
                constant: log(lambda),
                lambda,
            },
            (Kind::StudentT, &[mu, sigma, nu]) => {
                let inverse = one / (sigma * nu.map(f64::sqrt));
                let power = nu + one;
                let ratio = (T::of(0.5) * nu).map(lgamma_half_step);
                Form::Heavy {
                    constant: ratio - T::of(0.5) * (log(nu) + T::of(LOG_PI)) - log(sigma),
                    mu,
                    inverse,
                    slope: -power * inverse,
                    power: T::of(0.5) * power,
                }
            }
            (Kind::Cauchy, &[loc, scale]) => {
                let inverse = one / scale;
                Form::Heavy {
                    constant: -log(scale) - T::of(LOG_PI),
                    mu: loc,
                    inverse,
                    slope: T::of(-2.0) * inverse,
                    power: one,
                }
            }
            (Kind::HalfNormal, &[sigma]) => Form::HalfNormal {
                constant: -log(sigma) - T::of(HALF_LOG_HALF_PI),
                inverse: one / sigma,
            },
            (Kind::Weibull, &[k, lambda]) => Form::Weibull {
                constant: log(k),
                k,
                centre: log(lambda),
            },
            (Kind::Beta, &[alpha, beta]) => Form::Beta {
                constant: T::of(-lbeta(alpha.wide(), beta.wide())),
                alpha,
                beta,
            },
            (Kind::Gamma, &[alpha, beta]) => Form::Gamma {
                constant: alpha.map(lgamma_peak),
                alpha,
                centre: log(alpha) - log(beta),
            },
            _ => return None,
        })
    }

    fn at(&self, z: T) -> Value<T> {
        let (one, half) = (T::of(1.0), T::of(0.5));
        match *self {
            Form::Normal {
                constant,
                mu,
                inverse,
            } => {
                let u = (z - mu) * inverse;
                Value {
                    logp: constant - half * u * u,
                    gradient: -u * inverse,
                }
            }
            Form::Exponential { constant, lambda } => {
                let y = lambda * z.map(f64::exp);
                Value {
                    logp: constant + z - y,
                    gradient: one - y,
                }
            }
            Form::Heavy {
                constant,
                mu,
                inverse,
                slope,
                power,
            } => {
                let v = (z - mu) * inverse;
                let (log, over) = one_plus_square(v);
                Value {
                    logp: constant - power * log,
                    gradient: slope * over,
                }
            }
            Form::HalfNormal { constant, inverse } => {
                let u = z.map(f64::exp) * inverse;
                let square = u * u;
                Value {
                    logp: constant + z - half * square,
                    gradient: one - square,
                }
            }
            Form::Weibull {
                constant,
                k,
                centre,
            } => {
                let t = k * (z - centre);
                let y = t.map(f64::exp);
                Value {
                    logp: constant + t - y,
                    gradient: k - k * y,
                }
            }
            Form::Beta {
                constant,
                alpha,
                beta,
            } => {
                let zero = T::of(0.0);
                let (below, above) = if z < zero { (z, zero) } else { (zero, z) };
                let decay = (below - above).map(f64::exp);
                let near = one / (one + decay);
                let far = decay * near;
                let gradient = if z < zero {
                    alpha * near - beta * far
                } else {
                    alpha * far - beta * near
                };
                let rest = (alpha + beta) * decay.map(f64::ln_1p);
                Value {
                    logp: constant + (alpha * below - beta * above) - rest,
                    gradient,
                }
            }
            Form::Gamma {
                constant,
                alpha,
                centre,
            } => {
                let t = z - centre;
                let y = t.map(f64::exp_m1);
                Value {
                    logp: constant + alpha * (t - y),
                    gradient: -alpha * y,
                }
            }
        }
    }
}

fn log<T: Real>(x: T) -> T {
    x.map(f64::ln)
}

/// log(1 + v^2) and v / (1 + v^2), also where v^2 is infinite.
fn one_plus_square<T: Real>(v: T) -> (T, T) {
    let (one, magnitude) = (T::of(1.0), v.map(f64::abs));
    if magnitude * T::SMALL > one {
        return (T::of(2.0) * log(magnitude), one / v);
    }
    let square = v * v;
    (square.map(f64::ln_1p), v / (one + square))
}
