//! Elementwise ops as one, by an expression, on blocks of elements.

use super::{
    expression::Values,
    operand::{BLOCK, Operand},
    parallel,
};
use crate::{
    attrs::Attr,
    expression::read,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::DType;

pub(crate) fn run(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let operands: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let results: Vec<DType> = outputs.iter().map(|out| out.dtype).collect();
    let expression = read(attrs, &operands, &results)?;
    let shape = outputs.first().ok_or("expected a result")?.shape;
    let fit = |view| Operand::broadcast(view, shape).ok_or("shapes do not fit");
    let operands = inputs.iter().map(fit).collect::<Result<Vec<_>, _>>()?;
    // A block of all results lies side by side, so that one task writes it.
    let sizes: Vec<usize> = results.iter().map(|dtype| dtype.size() as usize).collect();
    let all: usize = sizes.iter().sum();
    let count = shape.iter().product::<u64>() as usize;
    let mut blocks = vec![0; count * all];
    parallel::for_each_chunk(&mut blocks, BLOCK * all, &|task, bytes| {
        let count = bytes.len() / all;
        let elements = operands
            .iter()
            .map(|operand| operand.bytes((task * BLOCK) as u64, count))
            .collect::<Result<Vec<_>, _>>()?;
        let elements = operands.iter().zip(&elements);
        let elements: Vec<(DType, &[u8])> = elements
            .map(|(operand, bytes)| (operand.dtype, bytes.as_slice()))
            .collect();
        let mut values = Values::new(&expression, count);
        values.compute(&expression, &elements)?;
        let mut rest = bytes;
        for (index, size) in sizes.iter().enumerate() {
            let own;
            (own, rest) = rest.split_at_mut(count * size);
            own.copy_from_slice(values.result(&expression, index));
        }
        Ok(())
    })?;
    let mut first = 0;
    for (out, size) in outputs.iter_mut().zip(&sizes) {
        let blocks = blocks.chunks(BLOCK * all);
        for (to, block) in out.bytes.chunks_mut(BLOCK * size).zip(blocks) {
            let from = first * (block.len() / all);
            to.copy_from_slice(&block[from..][..to.len()]);
        }
        first += size;
    }
    Ok(())
}
