//! Elementwise ops of one operand that are no functions of f64 alone.

use nx_vulkan_abi::dtype::DType;

use super::element::{Complex, by_integer, by_register};
use super::elementwise::{map, map_complex, map_wide, measure, test};
use super::math::erf_inv_of_nx;
pub(crate) use super::math::{acosh, inverse_of_erf, rsqrt, sigmoid};
use super::number::{Integer, Number, Ring};
use super::operand::Operand;
use crate::view::{Out, Outcome};

macro_rules! kernels {
    ($($name:ident: |$x:ident, $out:ident| $body:expr;)*) => { $(
        pub(crate) fn $name(operands: &[Operand], $out: &mut Out) -> Outcome {
            let [$x] = operands else {
                return Err("expected one operand".to_owned());
            };
            $body
        }
    )* };
}
kernels! {
    abs: |x, out| match x.dtype.is_complex() {
        true if x.dtype == DType::C64 => measure(x, out, magnitude),
        true => measure(x, out, |z| z.re.hypot(z.im)),
        false => by_register!(out.dtype, R => map(x, out, <R as Number>::abs)),
    };
    negate: |x, out| match out.dtype.is_complex() {
        true => map_complex(x, out, |z| Complex { re: -z.re, im: -z.im }),
        false => by_register!(out.dtype, R => map(x, out, R::negate)),
    };
    conjugate: |x, out| match out.dtype.is_complex() {
        true => map_complex(x, out, |z| Complex { re: z.re, im: -z.im }),
        false => super::convert::as_type(std::slice::from_ref(x), out),
    };
    imag: |x, out| match x.dtype.is_complex() {
        true => measure(x, out, |z| z.im),
        false => by_register!(out.dtype, R => map(x, out, |_| R::ZERO)),
    };
    sign: |x, out| by_register!(out.dtype, R => map(x, out, R::sign));
    round: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::round));
    ceil: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::ceil));
    floor: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::floor));
    not: |x, out| by_integer!(out.dtype, R => map(x, out, R::not));
    leading_zeros: |x, out| by_integer!(out.dtype, R => map(x, out, <R as Integer>::leading_zeros));
    population: |x, out| by_integer!(out.dtype, R => map(x, out, R::population));
    is_nan: |x, out| match x.dtype.is_complex() {
        true => test(x, out, |z: Complex<f64>| z.re.is_nan() || z.im.is_nan()),
        false => by_register!(x.dtype, R => test(x, out, <R as Number>::is_nan)),
    };
    is_infinite: |x, out| match x.dtype.is_complex() {
        true => test(x, out, |z: Complex<f64>| z.re.is_infinite() || z.im.is_infinite()),
        false => by_register!(x.dtype, R => test(x, out, <R as Number>::is_infinite)),
    };
    erf_inv: |x, out| map_wide(x, out, if out.dtype == DType::F64 { erf_inv_of_nx } else { inverse_of_erf });
}

/// The distance from 0 of a number with parts of f32, whose squares f64 holds.
fn magnitude(z: Complex<f64>) -> f64 {
    match z.re.is_infinite() || z.im.is_infinite() {
        true => f64::INFINITY,
        false => (z.re * z.re + z.im * z.im).sqrt(),
    }
}

pub(crate) fn same(operands: &[Operand], out: &mut Out) -> Outcome {
    super::convert::as_type(operands, out)
}
