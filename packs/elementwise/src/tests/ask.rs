//! Requests for elementwise ops, and what every plan for them has to keep.

use crate::{describe, dispatch::WORKGROUP, plan};
use nx_vulkan_abi::{DType, Plan, Slot};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, defined};

/// A request for a result of that type and shape.
pub(super) fn ask(op: &str, inputs: &[Tensor], (dtype, shape): (DType, &[u64])) -> Ask {
    Pack { describe, plan }.ask(op, inputs, &[Tensor::new(dtype, shape)])
}

/// Its plan, whose steps together store every element of the result once.
pub(super) fn checked(ask: &Ask) -> Plan {
    let plan = ask.plan().unwrap();
    let result = &ask.outputs[0];
    let mut stored = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let params: &[u8] = match step.args.iter().find(|arg| arg.slot == Slot::PARAMS) {
            Some(arg) => &plan.params[arg.offset as usize..(arg.offset + arg.len) as usize],
            None => &step.push,
        };
        let wide = defined(&plan, number, "INDEX") == "uint64_t";
        let word = |i: usize| match wide {
            true => u64::from_le_bytes(params[8 * i..8 * i + 8].try_into().unwrap()),
            false => u64::from(u32::from_le_bytes(
                params[4 * i..4 * i + 4].try_into().unwrap(),
            )),
        };
        let mut args = step.args.iter();
        let output = args.find(|arg| arg.slot == Slot::OUTPUT).unwrap();
        let (count, first) = (word(0), word(1));
        let size = output.len / (count + first);
        assert_eq!(
            output.len,
            (count + first) * size,
            "elements reach beyond the range"
        );
        stored.push((output.offset + first * size, count * size));
        let define = |name| defined(&plan, number, name).parse().unwrap_or(1);
        if plan.shaders[step.shader as usize].file != "transpose.comp" {
            let threads = u64::from(step.groups[0]) * u64::from(step.groups[1]) * WORKGROUP;
            let loads: u64 = define("WIDTH") * define("VECTORS");
            assert!(threads * loads >= count, "too few groups");
            assert!(first % define("WIDTH") == 0, "unaligned vectors");
        }
    }
    stored.sort_unstable();
    let end = stored.iter().fold(0, |end, &(start, len)| {
        assert_eq!(start, end, "bytes are stored twice or never");
        start + len
    });
    assert_eq!(
        end,
        result.shape.iter().product::<u64>() * result.dtype.size()
    );
    plan
}
