//! Elementwise ops as one, by an expression, on blocks of elements that stay in a core's cache from call to call.

use super::{
    elementwise::TASK,
    expression::Values,
    kernel::Sums,
    operand::{BLOCK, Operand},
    parallel,
};
use crate::{
    attrs::Attr,
    expression::read,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, Expression};
use std::sync::OnceLock;

/// Elements of each value that are computed at a time.
const AT_ONCE: usize = 4 * BLOCK;

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let operands: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let results: Vec<DType> = outputs.iter().map(|out| out.dtype).collect();
    let expression = read(attrs, &operands, &results)?;
    let shape = outputs.first().ok_or("expected a result")?.shape;
    let fit = |view| Operand::broadcast(view, shape).ok_or("shapes do not fit");
    let operands = inputs.iter().map(fit).collect::<Result<Vec<_>, _>>()?;
    let count = shape.iter().product::<u64>() as usize;
    // What one core makes of all results.
    let mut tasks: Vec<Vec<&mut [u8]>> = Vec::new();
    tasks.resize_with(count.div_ceil(TASK), Vec::new);
    for out in outputs {
        let chunks = out.bytes.chunks_mut(TASK * out.dtype.size() as usize);
        tasks
            .iter_mut()
            .zip(chunks)
            .for_each(|(task, chunk)| task.push(chunk));
    }
    let failure = OnceLock::new();
    parallel::for_each_part(&mut tasks, 1, &|task, results| {
        let count = TASK.min(count - task * TASK);
        let all = (task * TASK, count, sums);
        if let Err(why) = results
            .iter_mut()
            .try_for_each(|to| fill(&expression, &operands, all, to))
        {
            failure.get_or_init(|| why);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Computes `count` elements of each result from the row-major index `start` on.
fn fill(
    expression: &Expression,
    operands: &[Operand],
    (start, count, sums): (usize, usize, Sums),
    results: &mut [&mut [u8]],
) -> Outcome {
    let mut values = Values::new(expression, AT_ONCE.min(count), sums);
    for done in (0..count).step_by(AT_ONCE) {
        let own = AT_ONCE.min(count - done);
        if own < AT_ONCE {
            values = Values::new(expression, own, sums);
        }
        let bytes = operands
            .iter()
            .map(|operand| operand.bytes((start + done) as u64, own));
        let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
        let elements = operands.iter().zip(&bytes);
        let elements: Vec<_> = elements
            .map(|(operand, bytes)| (operand.dtype, &**bytes))
            .collect();
        values.compute(expression, &elements)?;
        for (index, (to, dtype)) in results.iter_mut().zip(expression.gives()).enumerate() {
            let size = dtype.size() as usize;
            to[done * size..][..own * size].copy_from_slice(values.result(expression, index));
        }
    }
    Ok(())
}
