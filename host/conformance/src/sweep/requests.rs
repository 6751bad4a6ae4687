//! The sweep's requests with operands in place, for those who want requests without results.

use super::cases;
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Runtime, Tensor};
use nx_vulkan_ops::{Attr, Op, Result, values::Rng};

/// A request that keeps its op's contract, on operands of zeros in one of the sweep's layouts.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<(DType, Vec<u64>)>,
    pub(crate) attrs: Vec<Attr>,
}

/// At most `most` requests of `op` with these types, chosen by `seed`.
///
/// # Errors
/// When the device has no memory for the operands.
pub(crate) fn laid(
    runtime: &Runtime,
    op: &'static Op,
    seed: u64,
    most: usize,
    wanted: &dyn Fn(&[DType], DType) -> bool,
) -> Result<Vec<Laid>> {
    let mut cases = cases::cases(op, seed, false)?;
    cases.retain(|case| {
        let types: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        wanted(&types, case.outputs[0].0)
    });
    let mut rng = Rng(seed);
    (1..cases.len()).for_each(|i| cases.swap(i, rng.below(i as u64 + 1) as usize));
    cases.truncate(most);
    let place = |case: cases::Case| {
        let view =
            |input: &super::layout::Operand| input.of(&runtime.zeros(input.dtype, &input.base)?);
        Ok(Laid {
            inputs: case.inputs.iter().map(view).collect::<Result<_>>()?,
            outputs: case.outputs,
            attrs: case.attrs,
        })
    };
    cases.into_iter().map(place).collect()
}
