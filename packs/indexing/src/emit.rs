//! Parameters of shaders, and where they go: push constants, or the plan's params where they are too many.

use crate::walk::Component;
use nx_vulkan_abi::{BufArg, DType, DTypeSet, DeviceInfo, InputAs, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    span::ALIGN,
    steps::{Step, bytes_of, number},
};

/// Words of a `Params` block.
#[derive(Debug, Default)]
pub(crate) struct Words(Vec<u32>);

impl Words {
    /// A number; a negative one wraps.
    pub(crate) fn push(&mut self, value: i64) {
        self.0.push(value as u32);
    }

    /// Those of others.
    pub(crate) fn append(&mut self, others: Words) {
        self.0.extend(others.0);
    }

    /// The extent of an axis and its `NxvDivisor`.
    pub(crate) fn extent(&mut self, extent: u64) {
        let shift = extent.max(2).next_power_of_two().trailing_zeros() - 1;
        let magic = (1u128 << (32 + shift)) / u128::from(extent.max(2)) + 1;
        self.0.extend([extent as u32, magic as u32, shift]);
    }

    /// An index.
    pub(crate) fn component(&mut self, component: &Component) {
        self.push(component.at);
        self.push(component.limit as i64);
        self.push(component.step);
        self.push(component.number as i64);
        self.0.push(component.kind());
    }

    /// Puts the step with these parameters at the end of `plan`.
    pub(crate) fn add_to(self, mut step: Step, plan: &mut Plan, device: &DeviceInfo<'_>) {
        let bytes = bytes_of(&self.0);
        if bytes.len() <= device.push_bytes as usize {
            step.push = bytes;
        } else {
            let at = plan.params.len().next_multiple_of(ALIGN as usize);
            plan.params.resize(at, 0);
            step.defines
                .push(number("PARAMS_BINDING", step.args.len() as u64));
            step.args
                .push(BufArg::params().range(at as u64, bytes.len() as u64));
            plan.params.extend(bytes);
        }
        step.add_to(plan);
    }
}

/// Whether axes are named once, in order.
pub(crate) fn ascends(axes: &[i64]) -> bool {
    axes.is_sorted_by(|a, b| a < b)
}

/// Asks the host for operands in other forms: `moved` in the result's type, `indices` of 32 or 64 bits, and in order where
/// that is needed.
pub(crate) fn in_form(
    request: &Request<'_>,
    moved: &[usize],
    indices: &[usize],
    in_order: bool,
) -> Result<(), Refusal> {
    let mut wanted = Vec::new();
    let to = request.outputs[0].dtype;
    for &index in moved {
        let from = request.inputs[index].dtype;
        if from == to {
            continue;
        }
        if !DTypeSet::NUMBER.has(from) || !DTypeSet::NUMBER.has(to) {
            return Err(Refusal::decline(format!("{from} does not convert to {to}")));
        }
        wanted.push(InputAs::new(index as u32, to));
    }
    for &index in indices {
        let operand = &request.inputs[index];
        if !operand.dtype.is_integer() {
            return Err(Refusal::decline(format!(
                "indices of {} are not read",
                operand.dtype
            )));
        }
        let dtype = if operand.dtype.size() < 4 {
            DType::S32
        } else {
            operand.dtype
        };
        if dtype != operand.dtype || in_order && !operand.is_contiguous() {
            wanted.push(InputAs::new(index as u32, dtype));
        }
    }
    if wanted.is_empty() {
        Ok(())
    } else {
        Err(Refusal::InputsAs(wanted))
    }
}
