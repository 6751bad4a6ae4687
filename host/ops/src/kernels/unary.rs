//! Elementwise ops of one operand, by name.

use nx_vulkan_abi::dtype::DType;

use super::Out;
use super::element::{by_integer, by_register};
use super::elementwise::{Outcome, map, map_wide, test};
use super::math;
use super::number::{Integer, Number};
use super::operand::Operand;

pub(super) fn run(op: &str, operands: &[Operand], out: &mut Out) -> Outcome {
    let [x] = operands else {
        return Err("expected one operand".to_owned());
    };
    if let Some(function) = math::unary(op, out.dtype) {
        return map_wide(x, out, function);
    }
    match op {
        "abs" => by_register!(out.dtype, R => map(x, out, <R as Number>::abs)),
        "negate" => by_register!(out.dtype, R => map(x, out, R::negate)),
        "sign" => by_register!(out.dtype, R => map(x, out, R::sign)),
        "round" => by_register!(out.dtype, R => map(x, out, <R as Number>::round)),
        "ceil" => by_register!(out.dtype, R => map(x, out, <R as Number>::ceil)),
        "floor" => by_register!(out.dtype, R => map(x, out, <R as Number>::floor)),
        "conjugate" | "real" => super::convert::as_type(operands, out),
        "imag" => by_register!(out.dtype, R => map(x, out, |_| R::ZERO)),
        "bitwise_not" => by_integer!(out.dtype, R => map(x, out, R::not)),
        "count_leading_zeros" => {
            by_integer!(out.dtype, R => map(x, out, <R as Integer>::leading_zeros))
        }
        "population_count" => by_integer!(out.dtype, R => map(x, out, R::population)),
        "is_nan" => by_register!(x.dtype, R => test(x, out, <R as Number>::is_nan)),
        "is_infinity" => by_register!(x.dtype, R => test(x, out, <R as Number>::is_infinite)),
        _ => Err("no kernel".to_owned()),
    }
}
