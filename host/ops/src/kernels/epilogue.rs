//! Products with an epilogue: the product, then one elementwise kernel after another, on whole tensors in memory.

use super::{Out, View, compute, kernel::Sums};
use crate::{
    Attr,
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
    let mut made: Vec<Option<Made>> = Vec::new();
    for (index, step) in program.steps().iter().enumerate() {
        let Step::Request(step) = step else {
            return Err(Error::bad_input("an epilogue has no views"));
        };
        let value = |value: &u32| match (*value as usize).checked_sub(inputs.len()) {
            None => Some(inputs[*value as usize]),
            Some(index) => made[index].as_ref().map(Made::view),
        };
        let operands = step.inputs.iter().map(value).collect::<Option<Vec<View>>>();
        let operands = operands.ok_or_else(|| Error::bad_input("a value is gone"))?;
        let spec = step.outputs[0].clone();
        let elements = count(&spec.1).unwrap_or(0);
        let mut bytes = vec![0; (elements * spec.0.size()) as usize];
        let mut outs = [Out {
            dtype: spec.0,
            shape: &spec.1,
            bytes: &mut bytes,
        }];
        compute(&step.op, &operands, &mut outs, &step.attrs, sums)?;
        let strides = contiguous_strides(&spec.1);
        made.push(Some(Made {
            spec,
            strides,
            bytes,
        }));
        for done in program.done_with(index, made.len()) {
            made[done] = None;
        }
    }
    let last = made.into_iter().next_back().flatten();
    let last = last.ok_or_else(|| Error::bad_input("an epilogue has a result"))?;
    out.bytes.copy_from_slice(&last.bytes);
    Ok(())
}
