//! Elementwise ops and reductions of rows as one, by an expression: one after the other.

use super::{epilogue::run_program, kernel::Sums};
use crate::{
    attrs::Attr,
    expression::ROWS,
    request::{Request, Spec},
    split::rows,
    view::{Out, Outcome, View},
};

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let results = outputs.iter().map(|out| (out.dtype, out.shape.to_vec()));
    let results: Vec<Spec> = results.collect();
    let request = Request::new(ROWS, specs.collect::<Vec<Spec>>(), results, attrs);
    let program = rows(&request).map_err(|error| error.to_string())?;
    run_program(&program, inputs, outputs, sums).map_err(|error| error.to_string())
}
