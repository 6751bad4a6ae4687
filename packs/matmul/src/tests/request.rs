//! Devices and requests for tests of plans, and what every plan must keep to.

use crate::{Table, plan_from};
use nx_vulkan_abi::{
    Access, Attr, AttrKind, BufArg, DType, DeviceInfo, DeviceKind, Features, Plan, RSlice, RStr,
    Refusal, Request, Slot, TensorDesc, layout::contiguous_strides,
};

pub(super) fn gpu() -> DeviceInfo<'static> {
    DeviceInfo {
        name: RStr::from_str("test"),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::DISCRETE,
        subgroup_size: 32,
        shared_bytes: 48 << 10,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_groups: [65535; 3],
        max_buffer_range: 1 << 30,
        buffer_align: 64,
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

pub(super) fn cpu() -> DeviceInfo<'static> {
    DeviceInfo {
        kind: DeviceKind::CPU,
        subgroup_size: 8,
        shared_bytes: 32 << 10,
        compute_units: 0,
        ..gpu()
    }
}

/// One operand: layout, and its batch and contracted axes.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: u64,
    pub(super) storage: u64,
    pub(super) batch: Vec<i64>,
    pub(super) contract: Vec<i64>,
}

impl Side {
    pub(super) fn new(shape: &[u64], batch: &[i64], contract: &[i64]) -> Side {
        Side {
            dtype: DType::F32,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
            storage: u64::MAX,
            batch: batch.to_vec(),
            contract: contract.to_vec(),
        }
    }

    pub(super) fn strided(self, strides: &[i64], offset: u64) -> Side {
        Side {
            strides: strides.to_vec(),
            offset,
            ..self
        }
    }

    pub(super) fn of(self, dtype: DType) -> Side {
        Side { dtype, ..self }
    }

    fn desc(&self) -> TensorDesc<'_> {
        let bytes = self.shape.iter().product::<u64>() * self.dtype.size()
            + self.offset * self.dtype.size();
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: RSlice::from_slice(&self.shape),
            strides: RSlice::from_slice(&self.strides),
            offset: self.offset,
            storage_len: if self.storage == u64::MAX {
                bytes
            } else {
                self.storage
            },
            reserved: [0; 2],
        }
    }
}

pub(super) fn ask_of(
    table: &Table,
    row: u32,
    device: &DeviceInfo<'_>,
    a: &Side,
    b: &Side,
    out: DType,
) -> Result<Plan, Refusal> {
    let free = |side: &Side| -> Vec<u64> {
        let kept = |axis: &i64| !side.batch.contains(axis) && !side.contract.contains(axis);
        (0..side.shape.len() as i64)
            .filter(kept)
            .map(|axis| side.shape[axis as usize])
            .collect()
    };
    let batch = a
        .batch
        .iter()
        .filter_map(|&axis| a.shape.get(axis as usize).copied())
        .collect();
    let shape = [batch, free(a), free(b)].concat();
    let result = Side {
        dtype: out,
        ..Side::new(&shape, &[], &[])
    };
    let ints = |name, values| Attr {
        name: RStr::from_str(name),
        kind: AttrKind::INTS,
        spare: 0,
        ints: RSlice::from_slice(values),
        floats: RSlice::EMPTY,
        text: RStr::from_str(""),
    };
    let attrs = [
        ints("batch_a", &a.batch),
        ints("batch_b", &b.batch),
        ints("contract_a", &a.contract),
        ints("contract_b", &b.contract),
    ];
    let (inputs, outputs) = ([a.desc(), b.desc()], [result.desc()]);
    let request = Request {
        op: RStr::from_str("dot"),
        inputs: RSlice::from_slice(&inputs),
        outputs: RSlice::from_slice(&outputs),
        attrs: RSlice::from_slice(&attrs),
        device,
        spare: [0; 4],
    };
    let answer = plan_from(table, row, &request);
    assert_eq!(
        answer,
        plan_from(table, row, &request),
        "the same request gives the same answer"
    );
    if let Ok(plan) = &answer {
        check(plan, &request);
    }
    answer
}

pub(super) fn ask(row: u32, device: &DeviceInfo<'_>, a: &Side, b: &Side) -> Result<Plan, Refusal> {
    ask_of(Table::get().unwrap(), row, device, a, b, a.dtype)
}

/// A product of matrices in row-major order.
pub(super) fn matrices(
    row: u32,
    device: &DeviceInfo<'_>,
    [m, n, k]: [u64; 3],
    dtype: DType,
) -> Result<Plan, Refusal> {
    ask(
        row,
        device,
        &Side::new(&[m, k], &[], &[1]).of(dtype),
        &Side::new(&[k, n], &[], &[0]).of(dtype),
    )
}

/// What every plan must keep to, whatever it is for.
fn check(plan: &Plan, request: &Request<'_>) {
    let mut written = vec![false; plan.scratch.len()];
    for step in plan.steps.iter() {
        let shader = &plan.shaders[step.shader as usize];
        assert!(
            crate::SOURCES
                .iter()
                .any(|source| source.name == shader.file.as_str())
        );
        assert_eq!(step.args.len() as u32, shader.bindings);
        assert_eq!(step.push.len() as u32, shader.push_bytes);
        assert!(shader.push_bytes <= request.device.push_bytes);
        assert!((0..3).all(|i| (1..=request.device.max_groups[i]).contains(&step.groups[i])));
        for arg in step.args.iter() {
            let index = arg.index as usize;
            let len = match arg.slot {
                Slot::INPUT => request.inputs[index].storage_len,
                Slot::OUTPUT => request.outputs[index].storage_len,
                _ => plan.scratch[index],
            };
            assert!(
                arg.offset.is_multiple_of(256) && arg.offset + arg.len <= len,
                "{arg:?} of {len}"
            );
            let bound = if arg.len == 0 {
                len - arg.offset
            } else {
                arg.len
            };
            assert!(bound <= request.device.max_buffer_range, "{bound}");
            if arg.slot == Slot::SCRATCH {
                let writes = arg.access == Access::WRITE;
                assert!(
                    writes || written[index],
                    "scratch {index} is read before it is written"
                );
                written[index] |= writes;
            }
        }
    }
    let stores = |arg: &BufArg| arg.slot == Slot::OUTPUT;
    let stored = plan
        .steps
        .last()
        .is_some_and(|step| step.args.iter().any(stores));
    assert_eq!(
        stored,
        request.outputs[0].elements() > 0,
        "the last step stores the result"
    );
}

pub(super) fn defined<'a>(plan: &'a Plan, step: usize, name: &str) -> &'a str {
    let shader = &plan.shaders[plan.steps[step].shader as usize];
    shader
        .defines
        .iter()
        .find(|define| define.name == name)
        .map_or("", |define| define.value.as_str())
}

pub(super) fn files(plan: &Plan) -> Vec<&str> {
    plan.steps
        .iter()
        .map(|step| plan.shaders[step.shader as usize].file.as_str())
        .collect()
}

pub(super) fn word(plan: &Plan, step: usize, index: usize) -> u32 {
    let bytes = &plan.steps[step].push[index * 4..index * 4 + 4];
    u32::from_ne_bytes(bytes.try_into().unwrap())
}

pub(super) fn reason(answer: Result<Plan, Refusal>) -> String {
    match answer {
        Err(Refusal::Decline(why) | Refusal::BadRequest(why)) => why,
        other => panic!("expected a refusal with a reason, got {other:?}"),
    }
}
