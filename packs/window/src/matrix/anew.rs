//! Steps that compute everything anew on the general units, where a word of the plan's scratch says that it is wanted.

use nx_vulkan_abi::{BufArg, Plan, Slot};
use nx_vulkan_pack_kit::steps;

/// Bytes of the workgroup counts that every such step reads.
pub(super) const COUNTS: u64 = 12;
/// Where a range of a buffer may begin on every device (Vulkan 1.4, required limits, `minStorageBufferOffsetAlignment`).
pub(super) const ALIGN: u64 = 256;

/// Puts the steps of `other` behind those of `plan`: each runs as many workgroups as `counts` says, which is none or all.
pub(super) fn add(plan: &mut Plan, other: Plan, counts: BufArg) {
    let params = plan.params.len().next_multiple_of(ALIGN as usize);
    plan.params.resize(params, 0);
    plan.params.extend(other.params.iter().copied());
    let first = plan.scratch.len() as u32;
    plan.scratch.extend(other.scratch.iter().copied());
    for mut step in other.steps {
        let mut shader = other.shaders[step.shader as usize].clone();
        shader.bindings += 1;
        step.shader = steps::shader(plan, shader);
        for arg in step.args.iter_mut() {
            match arg.slot {
                Slot::SCRATCH => arg.index += first,
                Slot::PARAMS => {
                    let all = other.params.len() as u64 - arg.offset;
                    let len = if arg.len == 0 { all } else { arg.len };
                    *arg = arg.range(params as u64 + arg.offset, len);
                }
                _ => {}
            }
        }
        step.args.push(steps::read(counts).counts());
        plan.steps.push(step);
    }
}
