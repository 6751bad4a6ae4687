//! Attention: the products and the softmax that it stands for, with scores and weights as wide as sums are.

use super::{epilogue::run_program, kernel::Sums};
use crate::{
    attention::{ATTENTION, program, sums},
    attrs::Attr,
    request::{Request, Spec},
    view::{Out, Outcome, View},
};

pub(crate) fn run(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], how: Sums) -> Outcome {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let results = outputs.iter().map(|out| (out.dtype, out.shape.to_vec()));
    let results: Vec<Spec> = results.collect();
    let request = Request::new(ATTENTION, specs.collect::<Vec<Spec>>(), results, attrs);
    let program = program(&request, sums(request.outputs[0].0));
    let done = program.and_then(|program| run_program(&program, inputs, outputs, how));
    done.map_err(|error| error.to_string())
}
