//! A few requests that every new pack is asked before it serves: whether its `plan` comes back at all. Whether its
//! plans are any good is decided for each plan when it is used.

use super::{
    image::{Image, cleaned},
    kernel::KernelEntry,
    request::{Operand, with_abi},
};
use nx_vulkan_abi::{DType, DTypeSet, DeviceInfo, DeviceKind, Fault, Features};
use nx_vulkan_ops::{Op, Request, Spec, infer::infer, ops};

/// Kernels that are asked.
const MAX_KERNELS: usize = 256;

/// Shapes of all operands.
const SHAPES: [[u64; 2]; 2] = [[4, 4], [0, 4]];

/// Asks the kernels; answers with a warning for each that panicked.
pub(super) fn run(image: &Image) -> Vec<String> {
    let kernels = image.kernels.iter().take(MAX_KERNELS);
    kernels.filter_map(ask).collect()
}

fn ask(kernel: &KernelEntry) -> Option<String> {
    let info = ops().find(|op| op.name == kernel.op);
    let device = device(kernel.needs);
    let panicked = SHAPES.iter().find_map(|shape| {
        let request = match info {
            Some(info) => known(kernel, info, shape)?,
            None => unknown(kernel, shape)?,
        };
        let inputs = request.inputs.iter();
        let inputs = inputs.map(|(dtype, shape)| Operand::contiguous(*dtype, shape));
        let asked = request.over(inputs.collect::<Vec<_>>());
        let reply = with_abi(&asked, &device, |asked| kernel.plan(asked));
        (reply.fault == Fault::PANIC).then(|| cleaned(reply.message.as_rstr()))
    });
    let message = panicked?;
    Some(format!(
        "kernel `{}` panicked when it was asked on trial: {message}",
        kernel.id
    ))
}

/// A request of an op that the host knows; `None` when the kernel takes no types that go with it.
fn known(kernel: &KernelEntry, info: &Op, shape: &[u64]) -> Option<Request<'static, Spec>> {
    let dtype = pick(DTypeSet(kernel.inputs.0 & info.types().0));
    let inputs: Vec<Spec> = match info.arity() {
        0 => Vec::new(),
        _ => {
            let types = info.of_type(dtype?).inputs;
            types.into_iter().zip(info.operand_shapes(shape)).collect()
        }
    };
    let infers = info.contract.infers;
    let result = pick(kernel.outputs).filter(|_| !infers);
    let output = result.map(|dtype| (dtype, shape.to_vec()));
    let request = infer(info, &inputs, output, &[]).ok()?;
    let gives = |output: &Spec| kernel.outputs.has(output.0);
    request.outputs.iter().all(gives).then_some(request)
}

/// A request of an op that only the pack knows: one operand, and a result of its type.
fn unknown(kernel: &KernelEntry, shape: &[u64]) -> Option<Request<'static, Spec>> {
    let spec: Spec = (pick(kernel.inputs)?, shape.to_vec());
    let op = kernel.op.clone();
    Some(Request::new(op, vec![spec.clone()], vec![spec], &[]))
}

fn pick(set: DTypeSet) -> Option<DType> {
    let common = [DType::F32].into_iter().chain(DType::all());
    common.into_iter().find(|dtype| set.has(*dtype))
}

/// A device as most are, with no more capabilities than the kernel needs.
fn device(features: Features) -> DeviceInfo<'static> {
    DeviceInfo {
        name: "trial".into(),
        kind: DeviceKind::CPU,
        subgroup_size: 32,
        min_subgroup_size: 32,
        max_subgroup_size: 32,
        shared_bytes: 32_768,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        features,
        ..DeviceInfo::default()
    }
}
