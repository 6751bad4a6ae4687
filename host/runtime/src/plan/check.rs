//! The numbers of a plan against its buffers, its shaders and the device.

use super::{
    refusal::{NEWER, beyond, invalid},
    room,
    source::Source,
    step::CheckedStep,
};
use crate::{
    Result, checked, faults,
    queue::StepArg,
    spirv::{self, Module},
};
use nx_vulkan_abi::{
    Access, BufArg, DeviceInfo, Dispatch, Features, Plan, ShaderVariant, Slot,
    plan::{MAX_BINDINGS, MAX_PARAMS, MAX_SCRATCH, MAX_STEPS},
};

/// Bytes that each step has in the host's own scratch buffer for its workgroup counts.
pub(super) const COUNT_BYTES: u64 = 256;

/// Byte sizes of the buffers that a plan may touch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) inputs: &'a [u64],
    pub(crate) outputs: &'a [u64],
}

pub(super) struct Check<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes<'a>,
    limits: &'a DeviceInfo<'a>,
    declared: Features,
    /// Sizes of all scratch buffers.
    pub(super) scratch: Vec<u64>,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        sizes: Sizes<'a>,
        limits: &'a DeviceInfo<'a>,
        declared: Features,
    ) -> Check<'a> {
        let mut scratch = plan.scratch.to_vec();
        let reads_counts = |step: &Dispatch| step.args.iter().any(|arg| arg.spare != 0);
        if plan.steps.iter().any(reads_counts) {
            scratch.push(COUNT_BYTES * plan.steps.len() as u64);
        }
        Check {
            plan,
            sizes,
            limits,
            declared,
            scratch,
        }
    }

    pub(super) fn totals(&self) -> Result<()> {
        let plan = self.plan;
        let counts = [
            ("steps", plan.steps.len(), MAX_STEPS),
            ("shaders", plan.shaders.len(), MAX_STEPS),
            ("scratch buffers", plan.scratch.len(), MAX_SCRATCH),
            ("bytes of params", plan.params.len(), MAX_PARAMS),
        ];
        for (what, count, limit) in counts {
            if count > limit {
                return Err(invalid(format!("{count} {what}, and the limit is {limit}")));
            }
        }
        let spare = plan.derived().all(|said| said.is_some())
            && plan.shaders.iter().all(|shader| shader.spare == 0)
            && plan
                .steps
                .iter()
                .flat_map(|step| &step.args)
                .all(|arg| arg.spare <= 1);
        if !spare {
            return Err(invalid(NEWER.to_owned()));
        }
        room::scratch(plan, self.limits)
    }

    /// The module of shader `number`, and what it is made of.
    pub(super) fn source(
        &self,
        number: usize,
        variant: &ShaderVariant,
        source: &dyn Fn(usize, &ShaderVariant) -> Result<Source>,
    ) -> Result<Source> {
        let limits = self.limits;
        if variant.bindings as usize > MAX_BINDINGS {
            return Err(invalid(format!(
                "{} bindings, and the limit is {MAX_BINDINGS}",
                variant.bindings
            )));
        }
        if !variant.push_bytes.is_multiple_of(4) {
            return Err(invalid(format!(
                "{} bytes of push constants; it must be a multiple of 4",
                variant.push_bytes
            )));
        }
        if variant.push_bytes > limits.push_bytes {
            return Err(beyond(format!(
                "{} bytes of push constants, and the device takes {}",
                variant.push_bytes, limits.push_bytes
            )));
        }
        let lanes = variant.subgroup_size;
        let promised = limits.min_subgroup_size.max(1)..=limits.max_subgroup_size;
        if lanes != 0 && !(lanes.is_power_of_two() && promised.contains(&lanes)) {
            let refuse = if lanes.is_power_of_two() {
                beyond
            } else {
                invalid
            };
            return Err(refuse(format!(
                "a subgroup size of {lanes}, and the device promises powers of two from {} to {}",
                limits.min_subgroup_size, limits.max_subgroup_size
            )));
        }
        let source = source(number, variant)?;
        let module = &source.module;
        let bindings =
            variant.bindings + u32::from(!source.watched.is_empty()) + u32::from(source.faults);
        if module.bindings.iter().any(|&b| b >= bindings) {
            return Err(invalid(format!(
                "{} uses bindings {:?}, and the plan declares {}",
                variant.file, module.bindings, variant.bindings
            )));
        }
        if module.push_bytes > variant.push_bytes.into() {
            return Err(invalid(format!(
                "{} reads {} bytes of push constants, and the plan declares {}",
                variant.file, module.push_bytes, variant.push_bytes
            )));
        }
        let missing = spirv::missing(module.needs, limits.features);
        if !missing.is_empty() {
            return Err(beyond(format!(
                "{} needs SPIR-V capability {missing}, which the device lacks",
                variant.file
            )));
        }
        if !module.is_for(limits.api) {
            return Err(beyond(format!(
                "{} is SPIR-V for Vulkan 1.3, and the device has an older one",
                variant.file
            )));
        }
        let undeclared = spirv::missing(spirv::declared(module.needs), self.declared);
        if !undeclared.is_empty() {
            return Err(invalid(format!(
                "{} needs SPIR-V capability {undeclared}, which its kernel does not declare",
                variant.file
            )));
        }
        Ok(source)
    }

    pub(super) fn dispatch(
        &self,
        dispatch: &Dispatch,
        variant: &ShaderVariant,
        module: &Module,
    ) -> Result<Vec<(u32, u32)>> {
        let limits = self.limits;
        let counts = [
            (
                "buffer arguments",
                dispatch.args.len(),
                variant.bindings as usize,
            ),
            (
                "bytes of push constants",
                dispatch.push.len(),
                variant.push_bytes as usize,
            ),
        ];
        for (what, got, declared) in counts {
            if got != declared {
                return Err(invalid(format!(
                    "{got} {what}, and {} declares {declared}",
                    variant.file
                )));
            }
        }
        for (binding, arg) in (0..).zip(&dispatch.args) {
            if arg.access == Access::READ && module.written.contains(&binding) {
                return Err(invalid(format!(
                    "{} writes to binding {binding}, which the plan only reads: {} {}",
                    variant.file,
                    slot_name(arg.slot),
                    arg.index
                )));
            }
        }
        if dispatch
            .groups
            .iter()
            .zip(limits.max_groups)
            .any(|(&n, max)| n > max)
        {
            return Err(invalid(format!(
                "{:?} workgroups, and the device allows {:?}",
                dispatch.groups, limits.max_groups
            )));
        }
        let mut constants: Vec<_> = dispatch.spec.iter().map(|c| (c.id, c.value)).collect();
        constants.sort_unstable();
        if constants.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(invalid(
                "a specialization constant is given twice".to_owned(),
            ));
        }
        let special = module
            .specialize(&constants)
            .map_err(|why| invalid(format!("{}: {why}", variant.file)))?;
        if special.shared_bytes > limits.shared_bytes.into() {
            return Err(beyond(format!(
                "{} has {} bytes of shared memory, and the device {}",
                variant.file, special.shared_bytes, limits.shared_bytes
            )));
        }
        let size = special
            .local_size
            .ok_or_else(|| invalid(format!("{} has no workgroup size", variant.file)))?;
        let invocations = size.iter().try_fold(1u32, |n, &e| n.checked_mul(e));
        let fits = invocations.is_some_and(|n| n > 0 && n <= limits.max_invocations)
            && size
                .iter()
                .zip(limits.max_workgroup_size)
                .all(|(&n, max)| n <= max);
        if !fits {
            // None at all fit no device.
            let refuse = if size.contains(&0) { invalid } else { beyond };
            return Err(refuse(format!(
                "a workgroup of {size:?}, and the device allows {:?} with {} invocations",
                limits.max_workgroup_size, limits.max_invocations
            )));
        }
        let (lanes, most) = (variant.subgroup_size, limits.fact("max_subgroups"));
        // Only full ones are asked for (VUID-VkPipelineShaderStageCreateInfo-pNext-02757).
        if lanes != 0 && !size[0].is_multiple_of(lanes) {
            return Err(invalid(format!(
                "a workgroup of {size:?}, whose first extent is no multiple of its subgroup size of {lanes}"
            )));
        }
        if limits.min_subgroup_size != limits.max_subgroup_size && lanes != 0 {
            let subgroups = i64::from(invocations.unwrap_or(0).div_ceil(lanes));
            if let Some(most) = most.iter().find(|&&most| subgroups > most) {
                return Err(beyond(format!(
                    "a workgroup of {size:?} in subgroups of {lanes}, and the device allows {most} of them"
                )));
            }
        }
        Ok(constants)
    }

    pub(super) fn args(&self, dispatch: &Dispatch) -> Result<Vec<StepArg>> {
        dispatch.args.iter().map(|arg| self.arg(arg)).collect()
    }

    fn arg(&self, arg: &BufArg) -> Result<StepArg> {
        let (inputs, outputs) = (self.sizes.inputs, self.sizes.outputs);
        let scratch = self.scratch.as_slice();
        let params = [self.plan.params.len() as u64];
        let (first, of, writable): (usize, &[u64], bool) = match arg.slot {
            Slot::INPUT => (0, inputs, false),
            Slot::OUTPUT => (inputs.len(), outputs, true),
            Slot::SCRATCH => (inputs.len() + outputs.len(), scratch, true),
            Slot::PARAMS => (inputs.len() + outputs.len() + scratch.len(), &params, false),
            other => return Err(invalid(format!("an unknown buffer slot {}", other.0))),
        };
        let index = arg.index as usize;
        let &size = of.get(index).filter(|&&size| size > 0).ok_or_else(|| {
            invalid(format!(
                "{} {index} does not exist or is empty",
                slot_name(arg.slot)
            ))
        })?;
        let (reads, writes) = match arg.access {
            Access::READ => (true, false),
            Access::WRITE => (false, true),
            Access::READ_WRITE => (true, true),
            other => return Err(invalid(format!("an unknown access {}", other.0))),
        };
        if writes && !writable {
            return Err(invalid(format!(
                "it writes to {} {index}",
                slot_name(arg.slot)
            )));
        }
        let limits = self.limits;
        let end = arg.offset.checked_add(arg.len);
        if arg.offset >= size
            || end.is_none_or(|end| end > size)
            || !arg.offset.is_multiple_of(limits.buffer_align)
        {
            return Err(invalid(format!(
                "bytes {}+{} of {} {index}, which has {size} (offsets are multiples of {})",
                arg.offset,
                arg.len,
                slot_name(arg.slot),
                limits.buffer_align
            )));
        }
        let len = if arg.len == 0 {
            size - arg.offset
        } else {
            arg.len
        };
        if len > limits.max_buffer_range {
            return Err(beyond(format!(
                "{} {index} takes {len} bytes, and one binding covers at most {} (maxStorageBufferRange)",
                slot_name(arg.slot),
                limits.max_buffer_range
            )));
        }
        Ok(StepArg {
            buffer: first + index,
            offset: arg.offset,
            len,
            reads,
            writes,
        })
    }

    /// The buffer of reports: it comes after all others.
    pub(super) fn reports(&self) -> StepArg {
        let params = usize::from(!self.plan.params.is_empty());
        let tensors = self.sizes.inputs.len() + self.sizes.outputs.len();
        StepArg {
            buffer: tensors + self.scratch.len() + params,
            offset: 0,
            len: checked::BYTES as u64,
            reads: true,
            writes: true,
        }
    }

    /// The word of faults: it comes last, after the buffer of reports if there is one.
    pub(super) fn word(&self, reports: bool) -> StepArg {
        let last = self.reports();
        StepArg {
            buffer: last.buffer + usize::from(reports),
            len: faults::BYTES,
            ..last
        }
    }

    /// Every byte of every output must be in a range that some step writes.
    pub(super) fn outputs_are_covered(&self, steps: &[CheckedStep]) -> Result<()> {
        for (index, &size) in self.sizes.outputs.iter().enumerate() {
            let buffer = self.sizes.inputs.len() + index;
            let mut ranges: Vec<_> = steps
                .iter()
                .flat_map(|step| &step.args)
                .filter(|arg| arg.buffer == buffer && arg.writes)
                .map(|arg| (arg.offset, arg.offset + arg.len))
                .collect();
            ranges.sort_unstable();
            let covered = ranges.iter().fold(
                0,
                |end, &(from, to)| if from <= end { end.max(to) } else { end },
            );
            if covered < size {
                return Err(invalid(format!(
                    "output {index} has {size} bytes, and those from {covered} on are not written"
                )));
            }
        }
        Ok(())
    }
}

pub(super) fn slot_name(slot: Slot) -> &'static str {
    match slot {
        Slot::INPUT => "input",
        Slot::OUTPUT => "output",
        Slot::SCRATCH => "scratch buffer",
        _ => "params",
    }
}
