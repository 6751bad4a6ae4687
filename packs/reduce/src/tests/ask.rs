//! Requests as a host makes them, and what every plan for them has to keep.

use crate::*;
use nx_vulkan_abi::{
    Attr, AttrKind, BufArg, DType, DeviceInfo, DeviceKind, RSlice, Slot, TensorDesc,
    layout::contiguous_strides,
};

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::DISCRETE,
        subgroup_size: 32,
        shared_bytes: 48 << 10,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_groups: [u32::MAX >> 1, 65535, 65535],
        max_buffer_range: u64::from(u32::MAX),
        buffer_align: 16,
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

/// A request under construction.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) op: &'static str,
    pub(super) operand: DType,
    pub(super) result: DType,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: u64,
    pub(super) axes: Vec<i64>,
    pub(super) tie: &'static str,
    pub(super) device: DeviceInfo<'static>,
}

impl Ask {
    pub(super) fn new(op: &'static str, dtype: DType, shape: &[u64], axes: &[i64]) -> Ask {
        Ask {
            op,
            operand: dtype,
            result: if op == "all" || op == "any" {
                DType::U8
            } else {
                dtype
            },
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
            axes: axes.to_vec(),
            tie: "low",
            device: device(),
        }
    }

    fn kept(&self) -> Vec<u64> {
        let axes = self.shape.iter().zip(0..);
        axes.filter(|(_, axis)| !self.axes.contains(axis))
            .map(|(extent, _)| *extent)
            .collect()
    }

    pub(super) fn plan(&self) -> Result<Plan, Refusal> {
        let picks = self.op.starts_with("arg");
        let kept = if picks && self.axes.is_empty() {
            Vec::new()
        } else {
            self.kept()
        };
        let reach: u64 = self
            .shape
            .iter()
            .zip(&self.strides)
            .map(|(e, s)| e.saturating_sub(1) * s.unsigned_abs())
            .sum();
        let desc = |dtype: DType, shape, strides, offset, elements: u64| TensorDesc {
            dtype,
            spare: 0,
            shape: RSlice::from_slice(shape),
            strides: RSlice::from_slice(strides),
            offset,
            storage_len: elements * dtype.size(),
            reserved: [0; 2],
        };
        let strides = contiguous_strides(&kept);
        let inputs = [desc(
            self.operand,
            &self.shape,
            &self.strides,
            self.offset,
            self.offset + reach + 1,
        )];
        let outputs = [desc(self.result, &kept, &strides, 0, kept.iter().product())];
        let axes = Attr {
            name: if picks { "axis" } else { "axes" }.into(),
            kind: AttrKind::INTS,
            spare: 0,
            ints: RSlice::from_slice(&self.axes),
            floats: RSlice::EMPTY,
            text: "".into(),
        };
        let tie = Attr {
            name: "tie_break".into(),
            kind: AttrKind::TEXT,
            ints: RSlice::EMPTY,
            text: self.tie.into(),
            ..axes
        };
        let attrs = if picks { vec![axes, tie] } else { vec![axes] };
        let row = Table::get()
            .unwrap()
            .rows
            .iter()
            .position(|row| row.op.op == self.op)
            .unwrap();
        plan(
            row as u32,
            &Request {
                op: self.op.into(),
                inputs: RSlice::from_slice(&inputs),
                outputs: RSlice::from_slice(&outputs),
                attrs: RSlice::from_slice(&attrs),
                device: &self.device,
                spare: [0; 4],
            },
        )
    }

    /// The plan, after every check that the host makes.
    pub(super) fn checked(&self) -> Plan {
        let plan = self
            .plan()
            .unwrap_or_else(|e| panic!("{} {:?}: {e:?}", self.op, self.shape));
        let result: u64 = self.result.size()
            * if self.op.starts_with("arg") && self.axes.is_empty() {
                1
            } else {
                self.kept().iter().product()
            };
        assert!(plan.steps.len() <= 64 && plan.scratch.len() <= 16);
        let mut written: Vec<(u64, u64)> = Vec::new();
        for step in &plan.steps {
            let shader = &plan.shaders[step.shader as usize];
            assert_eq!(step.args.len(), shader.bindings as usize);
            assert_eq!(step.push.len(), shader.push_bytes as usize);
            assert!(
                step.groups
                    .iter()
                    .zip(self.device.max_groups)
                    .all(|(n, max)| (1..=max).contains(n)),
                "{step:?}"
            );
            for arg in &step.args {
                let BufArg {
                    slot,
                    index,
                    offset,
                    len,
                    ..
                } = *arg;
                let end = if len > 0 { offset + len } else { 0 };
                assert!(
                    len <= self.device.max_buffer_range && offset % 256 == 0,
                    "{arg:?}"
                );
                match slot {
                    Slot::SCRATCH => {
                        assert!(plan.scratch[index as usize] <= self.device.max_buffer_range)
                    }
                    Slot::PARAMS => assert!(!plan.params.is_empty()),
                    Slot::OUTPUT => {
                        assert!(end <= result);
                        written.push((offset, if len == 0 { result } else { end }));
                    }
                    _ => {}
                }
            }
        }
        written.sort_unstable();
        let covered = written.iter().fold(
            0,
            |end, &(from, to)| if from <= end { end.max(to) } else { end },
        );
        assert_eq!(
            covered, result,
            "{} {:?} {:?}",
            self.op, self.shape, self.axes
        );
        plan
    }
}

pub(super) fn files(plan: &Plan) -> Vec<&str> {
    plan.steps
        .iter()
        .map(|step| plan.shaders[step.shader as usize].file.as_str())
        .collect()
}

pub(super) fn defines<'a>(plan: &'a Plan, step: usize, name: &str) -> Option<&'a str> {
    let shader = &plan.shaders[plan.steps[step].shader as usize];
    shader
        .defines
        .iter()
        .find(|define| define.name == name)
        .map(|define| define.value.as_str())
}
