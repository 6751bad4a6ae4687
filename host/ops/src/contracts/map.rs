//! Ops of one operand, element by element.

use super::shared::{ELEMENTWISE, INTEGER, NUMBER, REAL, floating};
use crate::{
    kernels::{complex, element::Complex, kernel::Kernel, unary},
    op::{Contract, Gives, Op},
    tolerance::Bound,
    values::Domain::{self, AboveOne, Any, Exponent, Positive, Unit},
};
use nx_vulkan_abi::DType;

const SHAPE: Contract = Contract {
    title: "Elementwise, one operand",
    ..ELEMENTWISE
};

static MAP: Contract = SHAPE;

/// The type of the parts of complex numbers, f32 for integers.
static PARTS: Contract = Contract {
    infer: |_, inputs, _| Ok((floating(inputs[0].0.part()), inputs[0].1.clone())),
    ..SHAPE
};

/// The complex type whose parts hold the operand.
static PAIRS: Contract = Contract {
    infer: |_, inputs, _| Ok((inputs[0].0.merge(DType::C64), inputs[0].1.clone())),
    ..SHAPE
};

/// Units in the last place of the magnitude of a complex result.
const COMPLEX: (u64, u64) = (16, 16);

/// Of real numbers and of complex ones.
type Functions = (fn(f64) -> f64, fn(Complex<f64>) -> Complex<f64>);

/// A function of floats, computed in f64 and rounded once; integers are converted first, and complex numbers are taken
/// as they are.
const fn both(
    name: &'static str,
    domain: &'static [Domain],
    ulp: (u64, u64),
    (f, of_complex): Functions,
    doc: &'static str,
) -> Op {
    Op {
        takes: &[NUMBER],
        bound: Bound::rounded(ulp).and_parts(COMPLEX),
        kernel: Kernel::Both(f, of_complex),
        ..function(name, domain, ulp, f, doc)
    }
}

/// As [`both`], of floats alone.
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
        gives: Gives::Part,
        ..numbers(own(name, Bound::MOVES, kernel, doc))
    }
}

/// What complex numbers have too.
const fn numbers(op: Op) -> Op {
    Op {
        takes: &[NUMBER],
        ..op
    }
}

// f64: 4 ulp are 1e-15 relative, what Nx.BinaryBackend's own C library promises at worst.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    both("exp",     &[Exponent], (2, 4), (f64::exp, complex::exp),         "e^x"),
    both("expm1",   &[Exponent], (2, 4), (f64::exp_m1, complex::expm1),      "e^x − 1, exact near 0"),
    both("log",     &[Positive], (2, 4), (f64::ln, complex::log),          "natural logarithm"),
    both("log1p",   &[Positive], (2, 4), (f64::ln_1p, complex::log1p),       "log(1 + x), exact near 0"),
    both("sigmoid", &[Exponent], (2, 4), (unary::sigmoid, complex::sigmoid),   "1 / (1 + e^−x)"),
    both("cos",     &[Any],      (2, 4), (f64::cos, complex::cos),         "cosine of radians"),
    both("sin",     &[Any],      (2, 4), (f64::sin, complex::sin),         "sine of radians"),
    both("tan",     &[Any],      (2, 4), (f64::tan, complex::tan),         "tangent of radians"),
    both("cosh",    &[Exponent], (2, 4), (f64::cosh, complex::cosh),        "hyperbolic cosine"),
    both("sinh",    &[Exponent], (2, 4), (f64::sinh, complex::sinh),        "hyperbolic sine"),
    both("tanh",    &[Exponent], (2, 4), (f64::tanh, complex::tanh),        "hyperbolic tangent"),
    both("acosh",   &[AboveOne], (2, 4), (unary::acosh, complex::acosh),     "inverse of cosh; NaN below 1"),
    both("asinh",   &[Any],      (2, 4), (libm::asinh, complex::asinh),      "inverse of sinh"),
    both("atanh",   &[Unit],     (2, 4), (libm::atanh, complex::atanh),      "inverse of tanh; NaN beyond ±1"),
    both("acos",    &[Unit],     (2, 4), (f64::acos, complex::acos),        "inverse of cos, in radians; NaN beyond ±1"),
    both("asin",    &[Unit],     (2, 4), (f64::asin, complex::asin),        "inverse of sin, in radians; NaN beyond ±1"),
    both("atan",    &[Any],      (2, 4), (f64::atan, complex::atan),        "inverse of tan, in radians"),
    both("sqrt",    &[Positive], (1, 2), (f64::sqrt, complex::sqrt),        "square root; NaN below 0"),
    both("rsqrt",   &[Positive], (1, 2), (unary::rsqrt, complex::rsqrt),     "1 / √x"),
    both("cbrt",    &[Any],      (2, 4), (libm::cbrt, complex::cbrt),       "cube root"),
    function("erf",     &[Exponent], (2, 4), libm::erf,        "error function"),
    function("erfc",    &[Exponent], (2, 4), libm::erfc,       "1 − erf(x)"),
    Op { kernel: Kernel::Elementwise(unary::erf_inv),
      ..function("erf_inv", &[Unit], (2, 4), unary::inverse_of_erf,
        "inverse of erf. In f64 the polynomial that Nx computes, so that samples of `Nx.Random` are those of `Nx.BinaryBackend`; see below for its error") },
    Op { gives: Gives::OwnPart, ..numbers(own("abs", Bound::MOVES.and_parts(COMPLEX), Kernel::Elementwise(unary::abs), "magnitude")) },
    numbers(own("negate",  Bound::MOVES,   Kernel::Elementwise(unary::negate), "−x; unsigned integers wrap")),
    own("sign",    Bound::MOVES,   Kernel::Elementwise(unary::sign),   "−1, 0 or 1; ±0 and NaN stay"),
    own("round",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::round),  "nearest integer, half away from zero"),
    own("ceil",    Bound::rounded((0, 0)), Kernel::Elementwise(unary::ceil),   "next integer up"),
    own("floor",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::floor),  "next integer down"),
    bits("bitwise_not",         Kernel::Elementwise(unary::not),           "every bit flipped"),
    bits("count_leading_zeros", Kernel::Elementwise(unary::leading_zeros), "zero bits above the highest one, within the type's width"),
    bits("population_count",    Kernel::Elementwise(unary::population),    "one bits, within the type's width"),
    numbers(test("is_nan",      Kernel::Elementwise(unary::is_nan),      "1 for NaN, else 0; always 0 for integers; of complex numbers where either part is")),
    numbers(test("is_infinity", Kernel::Elementwise(unary::is_infinite), "1 for ±Inf, else 0; always 0 for integers; of complex numbers where either part is")),
    Op { contract: &PAIRS, gives: Gives::Real, ..part("conjugate", Kernel::Elementwise(unary::conjugate), "the imaginary part negated, −0 for real types") },
    part("real",      Kernel::Elementwise(unary::same), "the real part; x, for real types"),
    part("imag",      Kernel::Elementwise(unary::imag), "the imaginary part; 0, for real types"),
];
