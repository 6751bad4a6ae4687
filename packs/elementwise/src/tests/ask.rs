//! Requests as a host makes them, and what every plan for them has to keep.

use crate::*;
use nx_vulkan_abi::{
    Attr, AttrKind, DType, DeviceInfo, DeviceKind, Dispatch, Features, RSlice, Slot, TensorDesc,
    layout::contiguous_strides,
};

pub(super) fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::DISCRETE,
        subgroup_size: 32,
        shared_bytes: 32 << 10,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_groups: [65535; 3],
        max_buffer_range: u64::from(u32::MAX),
        buffer_align: 16,
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

#[derive(Clone)]
pub(super) struct Operand {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
}

impl Operand {
    pub(super) fn new(dtype: DType, shape: &[u64]) -> Operand {
        Operand {
            dtype,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
        }
    }

    pub(super) fn at(self, offset: u64) -> Operand {
        Operand { offset, ..self }
    }

    pub(super) fn with_strides(self, strides: &[i64]) -> Operand {
        Operand {
            strides: strides.to_vec(),
            ..self
        }
    }

    fn desc(&self) -> TensorDesc<'_> {
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: RSlice::from_slice(&self.shape),
            strides: RSlice::from_slice(&self.strides),
            offset: self.offset,
            storage_len: u64::MAX >> 1,
            reserved: [0; 2],
        }
    }
}

/// Plans row `id` for those operands, a result of that type and shape, and one integer attribute.
pub(super) fn ask_on(
    device: &DeviceInfo<'_>,
    id: &str,
    inputs: &[Operand],
    result: (DType, &[u64]),
    attr: Option<(&str, &[i64])>,
) -> Result<Plan, Refusal> {
    let rows = &Table::get().unwrap().rows;
    let row = rows.iter().position(|row| row.op.op == id).unwrap();
    let inputs: Vec<TensorDesc<'_>> = inputs.iter().map(Operand::desc).collect();
    let output = Operand::new(result.0, result.1);
    let outputs = [output.desc()];
    let attrs: Vec<Attr<'_>> = attr
        .into_iter()
        .map(|(name, ints)| Attr {
            name: name.into(),
            kind: AttrKind::INTS,
            spare: 0,
            ints: RSlice::from_slice(ints),
            floats: RSlice::EMPTY,
            text: "".into(),
        })
        .collect();
    let request = Request {
        op: rows[row].op.op.as_str().into(),
        inputs: RSlice::from_slice(&inputs),
        outputs: RSlice::from_slice(&outputs),
        attrs: RSlice::from_slice(&attrs),
        device,
        spare: [0; 4],
    };
    plan(row as u32, &request)
}

pub(super) fn ask(id: &str, inputs: &[Operand], result: (DType, &[u64])) -> Result<Plan, Refusal> {
    ask_on(&device(), id, inputs, result, None)
}

pub(super) fn define<'a>(plan: &'a Plan, step: &Dispatch, name: &str) -> Option<&'a str> {
    let defines = &plan.shaders[step.shader as usize].defines;
    defines
        .iter()
        .find(|d| d.name == name)
        .map(|d| d.value.as_str())
}

pub(super) fn files(plan: &Plan) -> Vec<&str> {
    plan.steps
        .iter()
        .map(|step| plan.shaders[step.shader as usize].file.as_str())
        .collect()
}

/// Panics unless the steps together store every byte of a result of `len` bytes once, and each has the groups,
/// arguments and parameters that its shader needs.
pub(super) fn check(plan: &Plan, device: &DeviceInfo<'_>, len: u64) {
    let mut stored = Vec::new();
    for step in &plan.steps {
        let shader = &plan.shaders[step.shader as usize];
        assert_eq!(shader.bindings as usize, step.args.len());
        assert_eq!(shader.push_bytes as usize, step.push.len());
        assert!(step.push.len() <= device.push_bytes as usize);
        assert!(
            step.groups
                .iter()
                .zip(device.max_groups)
                .all(|(n, max)| (1..=max).contains(n))
        );
        for arg in &step.args {
            assert!(
                arg.offset % 256 == 0 && arg.len > 0 && arg.len <= device.max_buffer_range,
                "{arg:?}"
            );
        }
        let params: &[u8] = match step.args.iter().find(|arg| arg.slot == Slot::PARAMS) {
            Some(arg) => &plan.params[arg.offset as usize..(arg.offset + arg.len) as usize],
            None => &step.push,
        };
        let wide = define(plan, step, "INDEX") == Some("uint64_t");
        let word = |i: usize| match wide {
            true => u64::from_le_bytes(params[8 * i..8 * i + 8].try_into().unwrap()),
            false => u64::from(u32::from_le_bytes(
                params[4 * i..4 * i + 4].try_into().unwrap(),
            )),
        };
        let output = step
            .args
            .iter()
            .find(|arg| arg.slot == Slot::OUTPUT)
            .unwrap();
        let number =
            |name| define(plan, step, name).map_or(1, |value| value.parse::<u64>().unwrap());
        let size = output.len / (word(0) + word(1));
        assert_eq!(
            output.len,
            (word(0) + word(1)) * size,
            "elements reach beyond the range"
        );
        stored.push((output.offset + word(1) * size, word(0) * size));
        if shader.file != "transpose.comp" {
            let threads = u64::from(step.groups[0]) * u64::from(step.groups[1]) * 256;
            assert!(
                threads * number("WIDTH") * number("VECTORS") >= word(0),
                "too few groups"
            );
            assert!(word(1) % number("WIDTH") == 0, "unaligned vectors");
        }
    }
    stored.sort_unstable();
    let end = stored.iter().fold(0, |end, &(start, len)| {
        assert_eq!(start, end, "bytes are stored twice or never");
        start + len
    });
    assert_eq!(end, len);
}
