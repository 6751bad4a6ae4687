//! Ops of one operand, element by element.

use super::shared::{ELEMENTWISE, INTEGER, NUMBER, REAL, floating};
use crate::{
    kernels::{
        complex,
        element::Complex,
        kernel::Kernel,
        lanes::{self, Lane, Map, typed},
        unary,
    },
    op::{Contract, Gives, Op},
    tolerance::Bound,
    values::Domain::{self, AboveOne, Any, Exponent, Positive, Unit},
};
use nx_vulkan_abi::DType;

const SHAPE: Contract = Contract {
    title: "Elementwise, one operand",
    ..ELEMENTWISE
};

const MAP: Contract = SHAPE;

/// The type of the parts of complex numbers, f32 for integers.
const PARTS: Contract = Contract {
    infer: |_, inputs, _| Ok((floating(inputs[0].0.part()), inputs[0].1.clone())),
    ..SHAPE
};

/// The complex type whose parts hold the operand.
const PAIRS: Contract = Contract {
    infer: |_, inputs, _| Ok((inputs[0].0.merge(DType::C64), inputs[0].1.clone())),
    ..SHAPE
};

/// Units in the last place of the magnitude of a complex result.
const COMPLEX: (u64, u64) = (16, 16);

/// Of real numbers, of complex ones, and of f32 where they lie.
type Functions = (fn(f64) -> f64, fn(Complex<f64>) -> Complex<f64>, Map);

/// A function of floats, computed in f64 and rounded once; integers are converted first, and complex numbers are taken
/// as they are.
const fn both(
    name: &'static str,
    domain: &'static [Domain],
    ulp: (u64, u64),
    (f, of_complex, lane): Functions,
    doc: &'static str,
) -> Op {
    Op {
        takes: &[NUMBER],
        bound: Bound::rounded(ulp).and_parts(COMPLEX),
        kernel: Kernel::Both(f, of_complex),
        ..function(name, domain, ulp, (f, lane), doc)
    }
}

/// As [`both`], of floats alone.
const fn function(
    name: &'static str,
    domain: &'static [Domain],
    ulp: (u64, u64),
    (f, lane): (fn(f64) -> f64, Map),
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
        lane: Some(Lane::map(lane)),
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
        lane: None,
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
    both("exp",     &[Exponent], (2, 4), (f64::exp, complex::exp, lanes::exp),         "e^x").in_lanes(Lane::map(lanes::exp).and(typed::EXP)),
    both("expm1",   &[Exponent], (2, 4), (f64::exp_m1, complex::expm1, lanes::expm1),      "e^x − 1, exact near 0").in_lanes(Lane::map(lanes::expm1).and(typed::EXPM1)),
    both("log",     &[Positive], (2, 4), (f64::ln, complex::log, lanes::log),          "natural logarithm").in_lanes(Lane::map(lanes::log).and(typed::LOG)),
    both("log1p",   &[Positive], (2, 4), (f64::ln_1p, complex::log1p, lanes::log1p),       "log(1 + x), exact near 0").in_lanes(Lane::map(lanes::log1p).and(typed::LOG1P)),
    both("sigmoid", &[Exponent], (2, 4), (unary::sigmoid, complex::sigmoid, lanes::sigmoid),   "1 / (1 + e^−x)").in_lanes(Lane::map(lanes::sigmoid).and(typed::SIGMOID)),
    both("cos",     &[Any],      (2, 4), (f64::cos, complex::cos, lanes::cos),         "cosine of radians"),
    both("sin",     &[Any],      (2, 4), (f64::sin, complex::sin, lanes::sin),         "sine of radians"),
    both("tan",     &[Any],      (2, 4), (f64::tan, complex::tan, lanes::tan),         "tangent of radians"),
    both("cosh",    &[Exponent], (2, 4), (f64::cosh, complex::cosh, lanes::cosh),        "hyperbolic cosine"),
    both("sinh",    &[Exponent], (2, 4), (f64::sinh, complex::sinh, lanes::sinh),        "hyperbolic sine"),
    both("tanh",    &[Exponent], (2, 4), (f64::tanh, complex::tanh, lanes::tanh),        "hyperbolic tangent").in_lanes(Lane::map(lanes::tanh).and(typed::TANH)),
    both("acosh",   &[AboveOne], (2, 4), (unary::acosh, complex::acosh, lanes::acosh),     "inverse of cosh; NaN below 1"),
    both("asinh",   &[Any],      (2, 4), (libm::asinh, complex::asinh, lanes::asinh),      "inverse of sinh"),
    both("atanh",   &[Unit],     (2, 4), (libm::atanh, complex::atanh, lanes::atanh),      "inverse of tanh; NaN beyond ±1"),
    both("acos",    &[Unit],     (2, 4), (f64::acos, complex::acos, lanes::acos),        "inverse of cos, in radians; NaN beyond ±1"),
    both("asin",    &[Unit],     (2, 4), (f64::asin, complex::asin, lanes::asin),        "inverse of sin, in radians; NaN beyond ±1"),
    both("atan",    &[Any],      (2, 4), (f64::atan, complex::atan, lanes::atan),        "inverse of tan, in radians"),
    both("sqrt",    &[Positive], (1, 2), (f64::sqrt, complex::sqrt, lanes::sqrt),        "square root; NaN below 0").in_lanes(Lane::map(lanes::sqrt).and(typed::SQRT)),
    both("rsqrt",   &[Positive], (1, 2), (unary::rsqrt, complex::rsqrt, lanes::rsqrt),     "1 / √x").in_lanes(Lane::map(lanes::rsqrt).and(typed::RSQRT)),
    both("cbrt",    &[Any],      (2, 4), (libm::cbrt, complex::cbrt, lanes::cube_root),       "cube root"),
    function("erf",     &[Exponent], (2, 4), (libm::erf, lanes::erf),        "error function"),
    function("erfc",    &[Exponent], (2, 4), (libm::erfc, lanes::erfc),       "1 − erf(x)"),
    Op { kernel: Kernel::Elementwise(unary::erf_inv),
      ..function("erf_inv", &[Unit], (2, 4), (unary::inverse_of_erf, lanes::erf_inv),
        "inverse of erf. In f64 the polynomial that Nx computes, so that samples of `Nx.Random` are those of `Nx.BinaryBackend`; see below for its error") },
    Op { gives: Gives::OwnPart, ..numbers(own("abs", Bound::MOVES.and_parts(COMPLEX), Kernel::Elementwise(unary::abs), "magnitude").in_lanes(Lane::map(lanes::abs).and(typed::ABS))) },
    numbers(own("negate",  Bound::MOVES,   Kernel::Elementwise(unary::negate), "−x; unsigned integers wrap").in_lanes(Lane::map(lanes::negate).and(typed::NEGATE))),
    own("sign",    Bound::MOVES,   Kernel::Elementwise(unary::sign),   "−1, 0 or 1; ±0 and NaN stay").in_lanes(Lane::map(lanes::sign).and(typed::SIGN)),
    own("round",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::round),  "nearest integer, half away from zero").in_lanes(Lane::map(lanes::round).and(typed::ROUND)),
    own("ceil",    Bound::rounded((0, 0)), Kernel::Elementwise(unary::ceil),   "next integer up").in_lanes(Lane::map(lanes::ceil).and(typed::CEIL)),
    own("floor",   Bound::rounded((0, 0)), Kernel::Elementwise(unary::floor),  "next integer down").in_lanes(Lane::map(lanes::floor).and(typed::FLOOR)),
    bits("bitwise_not",         Kernel::Elementwise(unary::not),           "every bit flipped"),
    bits("count_leading_zeros", Kernel::Elementwise(unary::leading_zeros), "zero bits above the highest one, within the type's width"),
    bits("population_count",    Kernel::Elementwise(unary::population),    "one bits, within the type's width"),
    numbers(test("is_nan",      Kernel::Elementwise(unary::is_nan),      "1 for NaN, else 0; always 0 for integers; of complex numbers where either part is").in_lanes(lanes::IS_NAN)),
    numbers(test("is_infinity", Kernel::Elementwise(unary::is_infinite), "1 for ±Inf, else 0; always 0 for integers; of complex numbers where either part is").in_lanes(lanes::IS_INFINITE)),
    Op { contract: &PAIRS, gives: Gives::Real, ..part("conjugate", Kernel::Elementwise(unary::conjugate), "the imaginary part negated, −0 for real types") },
    part("real",      Kernel::Elementwise(unary::same), "the real part; x, for real types"),
    part("imag",      Kernel::Elementwise(unary::imag), "the imaginary part; 0, for real types"),
];
