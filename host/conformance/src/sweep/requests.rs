//! The sweep's requests with operands in place, for those who want requests without results.

use super::{cases, extent::Extent};
use nx_vulkan_abi::DType;
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{Op, Request, Result, values::Rng};
use nx_vulkan_registry::request::Operand;

/// Requests of whole tiles among those of an op: some kernels take nothing else.
const TILES: usize = 6;

/// At most `most` requests of `op` with these types and operands in row-major order, chosen by `seed`. They keep its
/// contract, and take no device.
///
/// # Errors
/// Never for the ops of the table.
pub(crate) fn in_order(
    op: &'static Op,
    seed: u64,
    most: usize,
    wanted: &dyn Fn(&[DType], DType) -> bool,
) -> Result<Vec<Request<'static, Operand>>> {
    let mut cases = chosen(op, seed, most, wanted)?;
    let in_order = |case: cases::Case| {
        let inputs = case.inputs.iter();
        let inputs = inputs.map(|input| Operand::contiguous(input.dtype, &input.shape));
        Request::new(
            op.name,
            inputs.collect::<Vec<_>>(),
            case.outputs,
            case.attrs,
        )
    };
    Ok(cases.drain(..).map(in_order).collect())
}

/// At most `most` requests of `op` with these types, chosen by `seed`. They keep its contract.
///
/// # Errors
/// When the device has no memory for the operands.
pub(crate) fn laid(
    runtime: &Runtime,
    op: &'static Op,
    seed: u64,
    most: usize,
    wanted: &dyn Fn(&[DType], DType) -> bool,
) -> Result<Vec<Request<'static, Operand>>> {
    let cases = chosen(op, seed, most, wanted)?;
    let place = |case: cases::Case| {
        let operand = |input: &super::layout::Operand| {
            let view = input.of(&runtime.zeros(input.dtype, &input.base)?)?;
            Ok(view.operand())
        };
        let inputs = case
            .inputs
            .iter()
            .map(operand)
            .collect::<Result<Vec<_>>>()?;
        Ok(Request::new(op.name, inputs, case.outputs, case.attrs))
    };
    cases.into_iter().map(place).collect()
}

fn chosen(
    op: &'static Op,
    seed: u64,
    most: usize,
    wanted: &dyn Fn(&[DType], DType) -> bool,
) -> Result<Vec<cases::Case>> {
    let is_wanted = |case: &cases::Case| {
        let types: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        wanted(&types, case.outputs[0].0)
    };
    let mut cases = cases::cases(op, seed, Extent::Full)?;
    cases.retain(is_wanted);
    let mut tiles = cases::tiles(op, seed, TILES)?;
    tiles.retain(is_wanted);
    tiles.truncate(TILES);
    let mut rng = Rng(seed);
    (1..cases.len()).for_each(|i| cases.swap(i, rng.below(i as u64 + 1) as usize));
    cases.truncate(most.saturating_sub(tiles.len()));
    cases.extend(tiles);
    Ok(cases)
}
