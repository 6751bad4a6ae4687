//! Elementwise ops as one, by an expression.

use super::{calls::Calls, kernel::Sums, operand::Operand};
use crate::{
    attrs::Attr,
    expression::read,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::DType;

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let operands: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let results: Vec<DType> = outputs.iter().map(|out| out.dtype).collect();
    let expression = read(attrs, &operands, &results)?;
    let shape = outputs.first().ok_or("expected a result")?.shape;
    let fit = |view| Some((Operand::broadcast(view, shape)?, false));
    let operands = inputs.iter().map(fit).collect::<Option<Vec<_>>>();
    let operands = operands.ok_or("shapes do not fit")?;
    let count = shape.iter().product::<u64>() as usize;
    Calls::of_elements(&expression, &operands, count, sums)?.run(outputs)
}
