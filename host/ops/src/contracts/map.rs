//! Ops of one operand, element by element.

use super::shared::{ELEMENTWISE, INTEGER, REAL, floating};
use crate::{
    kernels::{kernel::Kernel, unary},
    op::{Contract, Gives, Op},
    tolerance::Bound,
    values::Domain::{self, AboveOne, Any, Exponent, Positive, Unit},
};

const SHAPE: Contract = Contract {
    title: "Elementwise, one operand",
    ..ELEMENTWISE
};

static MAP: Contract = SHAPE;

/// Real types in, float out: `conjugate` and its like, which Nx defines for complex numbers.
static PARTS: Contract = Contract {
    infer: |_, inputs, _| Ok((floating(inputs[0].0), inputs[0].1.clone())),
    ..SHAPE
};

/// A function of floats, computed in f64 and rounded once; integers are converted first.
const fn function(
    name: &'static str,
    domain: &'static [Domain],
    ulp: (u64, u64),
    f: fn(f64) -> f64,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract: &MAP,
        takes: &[REAL],
        gives: Gives::Float,
        bound: Bound::rounded(ulp),
        domains: domain,
        partial: None,
        kernel: Kernel::Map(f),
    }
}

const fn own(name: &'static str, bound: Bound, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &MAP,
        takes: &[REAL],
        gives: Gives::Operand,
        bound,
        domains: &[Any],
        partial: None,
        kernel,
    }
}

const fn bits(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        takes: &[INTEGER],
        ..own(name, Bound::MOVES, kernel, doc)
    }
}

const fn test(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        gives: Gives::Bool,
        ..own(name, Bound::MOVES, kernel, doc)
    }
}

const fn part(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        contract: &PARTS,
        gives: Gives::Real,
        ..own(name, Bound::MOVES, kernel, doc)
    }
}

// f64: 4 ulp are 1e-15 relative, what Nx.BinaryBackend's own C library promises at worst.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    function("exp",     &[Exponent], (2, 4), f64::exp,         "e^x"),
    function("expm1",   &[Exponent], (2, 4), f64::exp_m1,      "e^x − 1, exact near 0"),
    function("log",     &[Positive], (2, 4), f64::ln,          "natural logarithm"),
    function("log1p",   &[Positive], (2, 4), f64::ln_1p,       "log(1 + x), exact near 0"),
    function("sigmoid", &[Exponent], (2, 4), unary::sigmoid,   "1 / (1 + e^−x)"),
    function("cos",     &[Any],      (2, 4), f64::cos,         "cosine of radians"),
    function("sin",     &[Any],      (2, 4), f64::sin,         "sine of radians"),
    function("tan",     &[Any],      (2, 4), f64::tan,         "tangent of radians"),
    function("cosh",    &[Exponent], (2, 4), f64::cosh,        "hyperbolic cosine"),
    function("sinh",    &[Exponent], (2, 4), f64::sinh,        "hyperbolic sine"),
    function("tanh",    &[Exponent], (2, 4), f64::tanh,        "hyperbolic tangent"),
    function("acosh",   &[AboveOne], (2, 4), unary::acosh,     "inverse of cosh; NaN below 1"),
    function("asinh",   &[Any],      (2, 4), libm::asinh,      "inverse of sinh"),
    function("atanh",   &[Unit],     (2, 4), libm::atanh,      "inverse of tanh; NaN beyond ±1"),
    function("acos",    &[Unit],     (2, 4), f64::acos,        "inverse of cos, in radians; NaN beyond ±1"),
    function("asin",    &[Unit],     (2, 4), f64::asin,        "inverse of sin, in radians; NaN beyond ±1"),
    function("atan",    &[Any],      (2, 4), f64::atan,        "inverse of tan, in radians"),
    function("sqrt",    &[Positive], (1, 2), f64::sqrt,        "square root; NaN below 0"),
    function("rsqrt",   &[Positive], (1, 2), unary::rsqrt,     "1 / √x"),
    function("cbrt",    &[Any],      (2, 4), libm::cbrt,       "cube root"),
    function("erf",     &[Exponent], (2, 4), libm::erf,        "error function"),
    function("erfc",    &[Exponent], (2, 4), libm::erfc,       "1 − erf(x)"),
    Op { kernel: Kernel::Elementwise(unary::erf_inv),
      ..function("erf_inv", &[Unit], (2, 4), unary::inverse_of_erf,
        "inverse of erf. In f64 the polynomial that Nx computes, so that samples of `Nx.Random` are those of `Nx.BinaryBackend`; see below for its error") },
    own("abs",     Bound::MOVES,   Kernel::Elementwise(unary::abs),    "magnitude"),
    own("negate",  Bound::MOVES,   Kernel::Elementwise(unary::negate), "−x; unsigned integers wrap"),
    own("sign",    Bound::MOVES,   Kernel::Elementwise(unary::sign),   "−1, 0 or 1; ±0 and NaN stay"),
    own("round",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::round),  "nearest integer, half away from zero"),
    own("ceil",    Bound::rounded((0, 0)), Kernel::Elementwise(unary::ceil),   "next integer up"),
    own("floor",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::floor),  "next integer down"),
    bits("bitwise_not",         Kernel::Elementwise(unary::not),           "every bit flipped"),
    bits("count_leading_zeros", Kernel::Elementwise(unary::leading_zeros), "zero bits above the highest one, within the type's width"),
    bits("population_count",    Kernel::Elementwise(unary::population),    "one bits, within the type's width"),
    test("is_nan",      Kernel::Elementwise(unary::is_nan),      "1 for NaN, else 0; always 0 for integers"),
    test("is_infinity", Kernel::Elementwise(unary::is_infinite), "1 for ±Inf, else 0; always 0 for integers"),
    part("conjugate", Kernel::Elementwise(unary::same), "x, for real types"),
    part("real",      Kernel::Elementwise(unary::same), "x, for real types"),
    part("imag",      Kernel::Elementwise(unary::zero), "0, for real types"),
];
