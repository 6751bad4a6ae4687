//! Elementwise ops of one operand that are no functions of f64 alone.

use nx_vulkan_abi::dtype::DType;

use super::element::{by_integer, by_register};
use super::elementwise::{map, map_wide, test};
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
    abs: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::abs));
    negate: |x, out| by_register!(out.dtype, R => map(x, out, R::negate));
    sign: |x, out| by_register!(out.dtype, R => map(x, out, R::sign));
    round: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::round));
    ceil: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::ceil));
    floor: |x, out| by_register!(out.dtype, R => map(x, out, <R as Number>::floor));
    zero: |x, out| by_register!(out.dtype, R => map(x, out, |_| R::ZERO));
    not: |x, out| by_integer!(out.dtype, R => map(x, out, R::not));
    leading_zeros: |x, out| by_integer!(out.dtype, R => map(x, out, <R as Integer>::leading_zeros));
    population: |x, out| by_integer!(out.dtype, R => map(x, out, R::population));
    is_nan: |x, out| by_register!(x.dtype, R => test(x, out, <R as Number>::is_nan));
    is_infinite: |x, out| by_register!(x.dtype, R => test(x, out, <R as Number>::is_infinite));
    erf_inv: |x, out| map_wide(x, out, if out.dtype == DType::F64 { erf_inv_of_nx } else { inverse_of_erf });
}

pub(crate) fn same(operands: &[Operand], out: &mut Out) -> Outcome {
    super::convert::as_type(operands, out)
}
