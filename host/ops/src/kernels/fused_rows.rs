//! Elementwise ops and reductions of rows as one, by an expression.

use super::{calls::Calls, epilogue::run_program, kernel::Sums, operand::Operand};
use crate::{
    attrs::Attr,
    contracts::broadcast,
    expression::{ROWS, operands_per_row, read_rows},
    request::{Request, Spec},
    split::rows,
    view::{Desc, Out, Outcome, View},
};
use nx_vulkan_abi::DType;

/// Elements of a row of which a core holds some values.
const LONGEST: u64 = 1 << 16;

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let specs: Vec<Spec> = specs.collect();
    let shape = broadcast(&specs)?;
    let [.., length] = shape[..] else {
        return Err("operands without axes have no rows".to_owned());
    };
    // What others are compared with goes one op after the other, on whole tensors, as do rows that no cache holds.
    if sums == Sums::Wide || length > LONGEST || shape.contains(&0) {
        let results = outputs.iter().map(|out| (out.dtype, out.shape.to_vec()));
        let results: Vec<Spec> = results.collect();
        let request = Request::new(ROWS, specs, results, attrs);
        let program = rows(&request).map_err(|error| error.to_string())?;
        return run_program(&program, inputs, outputs, sums).map_err(|error| error.to_string());
    }
    let descs = inputs.iter().map(|x| Desc {
        dtype: x.dtype,
        shape: x.shape,
    });
    let descs: Vec<Desc<'_>> = descs.collect();
    let results: Vec<DType> = outputs.iter().map(|out| out.dtype).collect();
    let (expression, per_row) = read_rows(attrs, &descs, &results, &shape)?;
    let mut reduced = shape.clone();
    if let Some(last) = reduced.last_mut() {
        *last = 1;
    }
    let fit = |(view, per_row)| {
        let shape = if per_row { &reduced } else { &shape };
        Some((Operand::broadcast(view, shape)?, per_row))
    };
    let operands = inputs.iter().zip(operands_per_row(&descs, &shape));
    let operands = operands.map(fit).collect::<Option<Vec<_>>>();
    let operands = operands.ok_or("shapes do not fit")?;
    let size = (reduced.iter().product::<u64>() as usize, length as usize);
    Calls::of_rows(&expression, &operands, size, &per_row, sums)?.run(outputs)
}
