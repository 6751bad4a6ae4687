//! Functions of complex numbers in f64. Branches and cuts are those of the formulas that `Nx.BinaryBackend` computes
//! (`complex` 0.6); the formulas here lose no digits to them.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::element::Complex;

type C = Complex<f64>;

const fn c(re: f64, im: f64) -> C {
    Complex { re, im }
}

const UNDEFINED: C = c(f64::NAN, f64::NAN);

fn is_endless(z: C) -> bool {
    z.re.is_infinite() || z.im.is_infinite()
}

/// acosh and asinh of a number with an infinite part: log(z + sqrt(z^2 - 1)), by the rules for infinite parts of each step.
fn endless_hyperbolic(z: C) -> C {
    let other = if z.re.is_infinite() { z.im } else { z.re };
    if !other.is_finite() || other == 0.0 {
        return UNDEFINED;
    }
    match z.re > 0.0 {
        true => c(f64::INFINITY, FRAC_PI_4.copysign(z.im)),
        false => c(f64::INFINITY, f64::NAN),
    }
}

/// From this magnitude on the exponential of one half is squared, so that what it is multiplied with may be small.
const FAR: f64 = 690.0;

/// e^x times the parts of `by`.
fn exp_times(x: f64, by: C) -> C {
    if x.abs() < FAR {
        return by.scaled(x.exp());
    }
    let half = (x / 2.0).exp();
    // 0 stays 0, whatever it is multiplied with.
    let grown = |part: f64| {
        if part == 0.0 {
            part
        } else {
            part * half * half
        }
    };
    c(grown(by.re), grown(by.im))
}

/// (`re` cosh x, `im` sinh x).
fn cosh_sinh(re: f64, im: f64, x: f64) -> C {
    if x.abs() < FAR {
        return c(re * x.cosh(), im * x.sinh());
    }
    exp_times(x.abs(), c(re / 2.0, (im / 2.0) * x.signum()))
}

pub(crate) fn exp(z: C) -> C {
    match (z.re == f64::NEG_INFINITY, z.im == 0.0) {
        (true, _) => c(0.0, 0.0),
        (_, true) => c(z.re.exp(), z.im),
        _ => exp_times(z.re, c(z.im.cos(), z.im.sin())),
    }
}

pub(crate) fn expm1(z: C) -> C {
    if z.im == 0.0 {
        return c(z.re.exp_m1(), z.im);
    }
    let half = (z.im / 2.0).sin();
    let e = exp(z);
    match z.re < 1.0 {
        true => c(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, e.im),
        false => c(e.re - 1.0, e.im),
    }
}

pub(crate) fn log(z: C) -> C {
    let (large, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let re = if large.is_infinite() {
        f64::INFINITY
    } else if large > 0.5 && large < 2.0 {
        ((large - 1.0) * (large + 1.0) + small * small).ln_1p() / 2.0
    } else if large == 0.0 {
        f64::NEG_INFINITY
    } else {
        let ratio = small / large;
        large.ln() + (ratio * ratio).ln_1p() / 2.0
    };
    let is_nan = z.re.is_nan() || z.im.is_nan();
    c(if is_nan { f64::NAN } else { re }, z.im.atan2(z.re))
}

pub(crate) fn log1p(z: C) -> C {
    let near = z.re.abs() < 0.5 && z.im.abs() < 0.5;
    let of = log(c(1.0 + z.re, z.im));
    match near {
        true => c((z.re * (2.0 + z.re) + z.im * z.im).ln_1p() / 2.0, of.im),
        false => of,
    }
}

/// With w of a part -|x|, 1 / (1 + e^w) or e^w / (1 + e^w); no sum here cancels, also not near the poles.
pub(crate) fn sigmoid(z: C) -> C {
    let w = if z.re >= 0.0 { c(-z.re, -z.im) } else { z };
    let e = exp(w);
    let half = (w.im / 2.0).cos();
    let sum = c(2.0 * w.re.exp() * half * half - w.re.exp_m1(), e.im);
    let one = if z.re >= 0.0 { c(1.0, 0.0) } else { e };
    divide(one, sum)
}

pub(crate) fn cos(z: C) -> C {
    cosh_sinh(z.re.cos(), -z.re.sin(), z.im)
}

pub(crate) fn sin(z: C) -> C {
    cosh_sinh(z.re.sin(), z.re.cos(), z.im)
}

pub(crate) fn cosh(z: C) -> C {
    cosh_sinh(z.im.cos(), z.im.sin(), z.re)
}

pub(crate) fn sinh(z: C) -> C {
    let swapped = cosh_sinh(z.im.sin(), z.im.cos(), z.re);
    c(swapped.im, swapped.re)
}

/// Kahan, "Branch cuts for complex elementary functions" (1987).
pub(crate) fn tanh(z: C) -> C {
    if is_endless(z) {
        return UNDEFINED;
    }
    if z.re.abs() > 20.0 {
        let tail = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return c(1f64.copysign(z.re), tail);
    }
    let (t, s) = (z.im.tan(), z.re.sinh());
    let (beta, rho) = (1.0 + t * t, (1.0 + s * s).sqrt());
    let below = 1.0 + beta * s * s;
    c(beta * rho * s / below, t / below)
}

pub(crate) fn tan(z: C) -> C {
    let turned = tanh(c(-z.im, z.re));
    c(turned.im, -turned.re)
}

pub(crate) fn sqrt(z: C) -> C {
    let (x, y) = (z.re.abs(), z.im.abs());
    if x.is_infinite() || y.is_infinite() {
        let im = if z.im < 0.0 {
            -f64::INFINITY
        } else {
            f64::INFINITY
        };
        return match (y.is_infinite(), z.re > 0.0) {
            (true, _) => c(f64::INFINITY, im),
            (false, true) => c(f64::INFINITY, 0.0),
            (false, false) => c(0.0, im),
        };
    }
    if x == 0.0 && y == 0.0 {
        return z;
    }
    let half = if x >= y {
        let ratio = y / x;
        x.sqrt() * (0.5 * (1.0 + (1.0 + ratio * ratio).sqrt())).sqrt()
    } else {
        let ratio = x / y;
        y.sqrt() * (0.5 * (ratio + (1.0 + ratio * ratio).sqrt())).sqrt()
    };
    if z.re >= 0.0 {
        return c(half, z.im / (2.0 * half));
    }
    let im = if z.im >= 0.0 { half } else { -half };
    c(z.im / (2.0 * im), im)
}

pub(crate) fn rsqrt(z: C) -> C {
    divide(c(1.0, 0.0), sqrt(z))
}

pub(crate) fn cbrt(z: C) -> C {
    let (root, angle) = (libm::cbrt(z.re.hypot(z.im)), z.im.atan2(z.re) / 3.0);
    match angle == 0.0 {
        true => c(root, 0.0),
        false => c(root * angle.cos(), root * angle.sin()),
    }
}

/// The parts that asin and acos are made of: the roots of 1 - z and 1 + z.
fn roots(z: C) -> [C; 2] {
    [sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im))]
}

/// Kahan (1987).
pub(crate) fn asin(z: C) -> C {
    if is_endless(z) {
        return UNDEFINED;
    }
    let [less, more] = roots(z);
    let re = z.re.atan2(less.re * more.re - less.im * more.im);
    let im = libm::asinh(less.re * more.im - less.im * more.re);
    let on_cut = z.im == 0.0 && z.re > 1.0;
    match z.im == 0.0 && z.re.abs() > 1.0 {
        // The root of a negative number lies above.
        true => c(re, if on_cut { -im.abs() } else { im.abs() }),
        false => c(re, im),
    }
}

/// -i log(z + sqrt(z^2 - 1)): the principal value where the parts have the same sign, else its negative.
pub(crate) fn acos(z: C) -> C {
    if is_endless(z) {
        return UNDEFINED;
    }
    let [less, more] = roots(z);
    let re = 2.0 * less.re.atan2(more.re);
    let im = libm::asinh(more.re * less.im - more.im * less.re);
    if z.im == 0.0 && z.re.abs() > 1.0 {
        return c(if z.re > 0.0 { 0.0 } else { PI }, im.abs().copysign(-z.re));
    }
    let opposed = (z.re < 0.0) != (z.im < 0.0) && z.re != 0.0 && z.im != 0.0;
    match opposed {
        true => c(-re, -im),
        false => c(re, im),
    }
}

pub(crate) fn acosh(z: C) -> C {
    if is_endless(z) {
        return endless_hyperbolic(z);
    }
    let turned = acos(z);
    c(-turned.im, turned.re)
}

pub(crate) fn asinh(z: C) -> C {
    if is_endless(z) {
        return endless_hyperbolic(z);
    }
    let turned = asin(c(-z.im, z.re));
    let on_cut = z.re == 0.0 && z.im.abs() > 1.0;
    match on_cut {
        true => c(turned.im.abs().copysign(z.im), FRAC_PI_2.copysign(z.im)),
        false => c(turned.im, -turned.re),
    }
}

pub(crate) fn atanh(z: C) -> C {
    if is_endless(z) {
        return UNDEFINED;
    }
    let below = (1.0 - z.re.abs()) * (1.0 - z.re.abs()) + z.im * z.im;
    let re = (z.re.abs() / below * 4.0).ln_1p() / 4.0;
    let angle =
        z.im.atan2(((1.0 - z.re) * (1.0 + z.re) - z.im * z.im) / 2.0);
    c(re.copysign(z.re), angle / 2.0)
}

pub(crate) fn atan(z: C) -> C {
    let turned = atanh(c(-z.im, z.re));
    match z.re == 0.0 && z.im.abs() > 1.0 {
        true => c(FRAC_PI_2.copysign(z.im), -turned.re),
        false => c(turned.im, -turned.re),
    }
}

/// Smith (1962).
pub(crate) fn divide(a: C, b: C) -> C {
    if b.re == 0.0 && b.im == 0.0 {
        return c(a.re / b.re.abs(), a.im / b.re.abs());
    }
    if (b.re.is_infinite() || b.im.is_infinite()) && a.re.is_finite() && a.im.is_finite() {
        return c(0.0, 0.0);
    }
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let below = b.re + b.im * ratio;
        return c((a.re + a.im * ratio) / below, (a.im - a.re * ratio) / below);
    }
    let ratio = b.re / b.im;
    let below = b.re * ratio + b.im;
    c((a.re * ratio + a.im) / below, (a.im * ratio - a.re) / below)
}

/// e^(b log a), but for the powers of 0, and for exponents 1 and -1. Powers of a number with an infinite part are undefined.
pub(crate) fn pow(a: C, b: C) -> C {
    let is = |z: C, re: f64| z.re == re && z.im == 0.0;
    if is(a, 0.0) {
        return c(f64::from(u8::from(is(b, 0.0))), 0.0);
    }
    if is(b, 1.0) {
        return a;
    }
    if is(b, -1.0) {
        return divide(c(1.0, 0.0), a);
    }
    if is_endless(a) {
        return UNDEFINED;
    }
    let of = log(a);
    exp(c(b.re * of.re - b.im * of.im, b.re * of.im + b.im * of.re))
}
