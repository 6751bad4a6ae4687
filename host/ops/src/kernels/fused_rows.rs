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

/// Bytes of a row with all that is made of it, of which each core has one.
const LARGEST: usize = 4 << 20;

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let specs: Vec<Spec> = specs.collect();
    let shape = broadcast(&specs)?;
    let [.., length] = shape[..] else {
        return Err("operands without axes have no rows".to_owned());
    };
    // What others are compared with goes one op after the other.
    if sums == Sums::Wide || shape.contains(&0) {
        return one_by_one(specs, inputs, outputs, attrs, sums);
    }
    let descs = inputs.iter().map(|x| Desc {
        dtype: x.dtype,
        shape: x.shape,
    });
    let descs: Vec<Desc<'_>> = descs.collect();
    let results: Vec<DType> = outputs.iter().map(|out| out.dtype).collect();
    let (expression, _) = read_rows(attrs, &descs, &results, &shape)?;
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
    let calls = Calls::of_rows(&expression, &operands, size, sums)?;
    match calls.row_bytes() <= LARGEST {
        true => calls.run(outputs),
        false => one_by_one(specs, inputs, outputs, attrs, sums),
    }
}

/// Its ops on whole tensors.
fn one_by_one(
    specs: Vec<Spec>,
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
    sums: Sums,
) -> Outcome {
    let results = outputs.iter().map(|out| (out.dtype, out.shape.to_vec()));
    let results: Vec<Spec> = results.collect();
    let request = Request::new(ROWS, specs, results, attrs);
    let program = rows(&request).map_err(|error| error.to_string())?;
    run_program(&program, inputs, outputs, sums).map_err(|error| error.to_string())
}
