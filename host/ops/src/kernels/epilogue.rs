//! Requests that stand for several: one kernel after another, on whole tensors in memory.

use super::{Out, View, compute, kernel::Sums};
use crate::{
    Attr, Program, Value,
    epilogue::split,
    error::{Error, Result},
    program::Step,
    request::{Request, Spec},
    view::count,
};
use nx_vulkan_abi::layout::contiguous_strides;

/// What a step made.
struct Made {
    spec: Spec,
    strides: Vec<i64>,
    bytes: Vec<u8>,
}

impl Made {
    fn blank(spec: &Spec) -> Made {
        let elements = count(&spec.1).unwrap_or(0);
        Made {
            spec: spec.clone(),
            strides: contiguous_strides(&spec.1),
            bytes: vec![0; (elements * spec.0.size()) as usize],
        }
    }

    fn out(&mut self) -> Out<'_> {
        Out {
            dtype: self.spec.0,
            shape: &self.spec.1,
            bytes: &mut self.bytes,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            dtype: self.spec.0,
            shape: &self.spec.1,
            strides: &self.strides,
            offset: 0,
            bytes: &self.bytes,
        }
    }
}

/// Runs the ops that `op` with its epilogue stands for. The request keeps its contract.
pub(super) fn run(
    op: &str,
    inputs: &[View],
    out: &mut Out,
    attrs: &[Attr],
    sums: Sums,
) -> Result<()> {
    let specs = inputs.iter().map(|x| (x.dtype, x.shape.to_vec()));
    let result = (out.dtype, out.shape.to_vec());
    let request = Request::new(op, specs.collect::<Vec<_>>(), vec![result], attrs);
    let program = split(&request)?.ok_or_else(|| Error::bad_input("it has no epilogue"))?;
    run_program(&program, inputs, std::slice::from_mut(out), sums)
}

/// Runs a program without views; it has as many results as there are `outputs`.
pub(super) fn run_program(
    program: &Program<'_>,
    inputs: &[View],
    outputs: &mut [Out],
    sums: Sums,
) -> Result<()> {
    let mut made: Vec<Option<Made>> = Vec::new();
    for (index, step) in program.steps().iter().enumerate() {
        let Step::Request(step) = step else {
            return Err(Error::bad_input("a request of several ops has no views"));
        };
        let value = |value: &u32| match (*value as usize).checked_sub(inputs.len()) {
            None => Some(inputs[*value as usize]),
            Some(index) => made[index].as_ref().map(Made::view),
        };
        let operands = step.inputs.iter().map(value).collect::<Option<Vec<View>>>();
        let operands = operands.ok_or_else(|| Error::bad_input("a value is gone"))?;
        let mut results: Vec<Made> = step.outputs.iter().map(Made::blank).collect();
        let mut outs: Vec<Out> = results.iter_mut().map(Made::out).collect();
        compute(&step.op, &operands, &mut outs, &step.attrs, sums)?;
        made.extend(results.into_iter().map(Some));
        for done in program.done_with(index, made.len()) {
            made[done] = None;
        }
    }
    let result = |value: &Value| {
        let made = made.get((*value as usize).checked_sub(inputs.len())?)?;
        made.as_ref()
    };
    for (out, value) in outputs.iter_mut().zip(program.results()) {
        let made = result(value).ok_or_else(|| Error::bad_input("a result is gone"))?;
        if out.bytes.len() != made.bytes.len() {
            return Err(Error::bad_input("a result has another size"));
        }
        out.bytes.copy_from_slice(&made.bytes);
    }
    Ok(())
}
