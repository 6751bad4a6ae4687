//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DeviceInfo, RSlice, Slot, TensorDesc, layout::contiguous_strides};

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_buffer_range: u64::from(u32::MAX),
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

/// A request under construction.
#[derive(Clone)]
struct Ask {
    op: &'static str,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    device: DeviceInfo<'static>,
}

#[derive(Clone)]
struct Tensor {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
    /// Elements of the buffer.
    stored: u64,
}

impl Tensor {
    fn new(dtype: DType, shape: &[u64]) -> Tensor {
        Tensor {
            dtype,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
            stored: shape.iter().product(),
        }
    }

    fn desc(&self) -> TensorDesc<'_> {
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: RSlice::from_slice(&self.shape),
            strides: RSlice::from_slice(&self.strides),
            offset: self.offset,
            storage_len: self.stored * self.dtype.size(),
            reserved: [0; 2],
        }
    }
}

impl Ask {
    fn new(op: &'static str, dtype: DType, [chains, steps, extent]: [u64; 3]) -> Ask {
        let families = &Table::get().unwrap().families;
        let family = families.iter().find(|family| family.op == op).unwrap();
        let state = Tensor::new(dtype, &[chains, extent]);
        let chain = Tensor::new(dtype, &[chains, steps, extent]);
        let scalars = Tensor::new(dtype, &[1 + family.parameters.len() as u64]);
        let logp = Tensor::new(dtype, &[chains, steps]);
        Ask {
            op,
            inputs: vec![state.clone(), state.clone(), state, scalars],
            outputs: vec![chain.clone(), chain.clone(), chain, logp],
            device: device(),
        }
    }

    fn plan(&self) -> Result<Plan, Refusal> {
        let inputs: Vec<TensorDesc<'_>> = self.inputs.iter().map(Tensor::desc).collect();
        let outputs: Vec<TensorDesc<'_>> = self.outputs.iter().map(Tensor::desc).collect();
        let families = &Table::get().unwrap().families;
        let row = families.iter().position(|family| family.op == self.op);
        let request = Request {
            op: self.op.into(),
            inputs: RSlice::from_slice(&inputs),
            outputs: RSlice::from_slice(&outputs),
            attrs: RSlice::EMPTY,
            device: &self.device,
            spare: [0; 4],
        };
        plan(row.unwrap() as u32, &request)
    }

    fn declined(&self) -> String {
        match self.plan() {
            Err(Refusal::Decline(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&self) -> String {
        match self.plan() {
            Err(Refusal::BadRequest(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn one_dispatch_takes_the_steps_and_one_adds() {
    let plan = Ask::new("leapfrog_normal", DType::F64, [4, 32, 100])
        .plan()
        .unwrap();
    let [steps, sums] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(plan.scratch[..], [4 * 32 * 100 * 8]);
    assert_eq!(steps.groups, [400u32.div_ceil(64), 1, 1]);
    let push = [400, 100, 32, 0, 100, 1, 0, 100, 1, 0, 100, 1, 0, 1];
    assert_eq!(words(&steps.push), push);
    let slots: Vec<Slot> = steps.args.iter().map(|arg| arg.slot).collect();
    let (input, output) = (Slot::INPUT, Slot::OUTPUT);
    assert_eq!(
        slots,
        [
            input,
            input,
            input,
            input,
            output,
            output,
            output,
            Slot::SCRATCH
        ]
    );
    // 32 invocations share a row of 100 terms.
    assert_eq!(sums.spec[0].value, 32);
    assert_eq!(sums.groups, [4 * 32 / (256 / 32), 1, 1]);
    assert_eq!(words(&sums.push), [128, 100]);
}

#[test]
fn one_coordinate_needs_no_sum() {
    let plan = Ask::new("leapfrog_beta", DType::F32, [7, 3, 1])
        .plan()
        .unwrap();
    assert!(plan.steps.len() == 1 && plan.scratch.is_empty());
    assert_eq!(plan.steps[0].args[7], BufArg::output(3));
}

#[test]
fn no_chains_need_nothing() {
    let plan = Ask::new("leapfrog_gamma", DType::F32, [0, 3, 5])
        .plan()
        .unwrap();
    assert_eq!(plan, Plan::default());
}

/// The prefix property and batches rest on this: what a row is added with does not depend on how many there are.
#[test]
fn the_order_of_a_sum_depends_on_the_coordinates_alone() {
    for extent in [2, 3, 8, 9, 256, 257, 1000, 5000] {
        let lanes = |chains, steps| {
            let ask = Ask::new("leapfrog_cauchy", DType::F64, [chains, steps, extent]);
            ask.plan().unwrap().steps[1].spec[0].value
        };
        let own = lanes(1, 1);
        assert!(own.is_power_of_two() && own <= 256);
        assert_eq!([lanes(1, 1024), lanes(9, 2), lanes(100, 33)], [own; 3]);
    }
}

#[test]
fn every_family_plans_both_types_within_the_smallest_limits() {
    for family in &Table::get().unwrap().families {
        for dtype in [DType::F32, DType::F64] {
            let mut ask = Ask::new(family.op.as_str(), dtype, [3, 5, 300]);
            ask.device = DeviceInfo {
                features: Features(u64::MAX),
                ..DeviceInfo::default()
            };
            let plan = ask.plan().unwrap();
            for step in &plan.steps {
                assert!(step.push.len() <= 128 && step.groups[0] <= 65535);
            }
            for shader in &plan.shaders {
                let workgroup = shader
                    .defines
                    .iter()
                    .find(|define| define.name == "WORKGROUP");
                assert!(workgroup.unwrap().value.parse::<u32>().unwrap() <= 128);
            }
        }
    }
}

#[test]
fn more_workgroups_than_the_device_takes_are_walked() {
    let mut ask = Ask::new("leapfrog_normal", DType::F32, [1 << 20, 2, 100]);
    ask.device.max_groups = [1000; 3];
    let plan = ask.plan().unwrap();
    assert!(plan.steps.iter().all(|step| step.groups == [1000, 1, 1]));
}

#[test]
fn views_are_read_where_they_are() {
    let mut ask = Ask::new("leapfrog_normal", DType::F32, [4, 2, 5]);
    ask.inputs[0].strides = vec![1, 4];
    ask.inputs[1].strides = vec![-5, -1];
    ask.inputs[1].offset = 19;
    ask.inputs[2].strides = vec![0, 1];
    let push = words(&ask.plan().unwrap().steps[0].push);
    assert_eq!(push[3..6], [0, 1, 4]);
    assert_eq!(push[6..9], [19, -5i32 as u32, -1i32 as u32]);
    assert_eq!(push[9..12], [0, 0, 1]);
}

#[test]
fn a_small_part_of_a_large_buffer_is_bound_alone() {
    let mut ask = Ask::new("leapfrog_normal", DType::F64, [4, 2, 5]);
    ask.device.max_buffer_range = 1 << 27;
    ask.inputs[1].stored = 1 << 30;
    ask.inputs[1].offset = (1 << 29) + 3;
    let plan = ask.plan().unwrap();
    let arg = plan.steps[0].args[1];
    assert_eq!((arg.offset, arg.len), (8 << 29, 8 * (3 + 20)));
    assert_eq!(words(&plan.steps[0].push)[6], 3);

    // Rows too far apart for one binding are wished for as a copy, of all such operands at once.
    ask.inputs[1].offset = 0;
    ask.inputs[1].strides = vec![1 << 27, 1];
    ask.inputs[2] = ask.inputs[1].clone();
    let wishes = [1, 2].map(|index| nx_vulkan_abi::InputAs::new(index, DType::F64));
    assert_eq!(ask.plan(), Err(Refusal::InputsAs(wishes.to_vec())));
}

#[test]
fn what_does_not_fit_is_declined_with_a_reason() {
    let mut ask = Ask::new("leapfrog_normal", DType::F64, [1000, 1024, 100]);
    ask.device.max_buffer_range = 1 << 27;
    let why = ask.declined();
    assert!(
        why.contains("f64[1000, 1024, 100]") && why.contains("134217728"),
        "{why}"
    );
    let why = Ask::new("leapfrog_normal", DType::F32, [1 << 20, 1 << 12, 1 << 4]).declined();
    assert!(why.contains("2^31"), "{why}");
    let mut ask = Ask::new("leapfrog_normal", DType::F64, [1, 2, 3]);
    ask.device.features = Features::NONE;
    let why = ask.declined();
    assert!(why.contains("needs fp64"), "{why}");
}

#[test]
fn broken_requests_are_refused() {
    let good = Ask::new("leapfrog_studentt", DType::F64, [2, 3, 4]);
    let refused = |change: &dyn Fn(&mut Ask)| {
        let mut ask = good.clone();
        change(&mut ask);
        ask.refused()
    };
    assert!(good.plan().is_ok());
    let why = refused(&|ask| ask.inputs[3] = Tensor::new(DType::F64, &[3]));
    assert!(
        why.contains("leapfrog_studentt: expected scalars to be f64[4], got: f64[3]"),
        "{why}"
    );
    let why = refused(&|ask| ask.inputs[1] = Tensor::new(DType::F32, &[2, 4]));
    assert!(why.contains("p to be f64[2, 4], got: f32[2, 4]"), "{why}");
    let why = refused(&|ask| ask.outputs[3] = Tensor::new(DType::F64, &[2, 4]));
    assert!(why.contains("logp_chain to be f64[2, 3]"), "{why}");
    let why = refused(&|ask| ask.inputs[0] = Tensor::new(DType::F64, &[8]));
    assert!(why.contains("{chains, d}"), "{why}");
    let why = refused(&|ask| drop(ask.outputs.pop()));
    assert!(why.contains("4 and 3"), "{why}");
    for shape in [[2, 0, 4], [2, 3, 0]] {
        let ask = Ask::new("leapfrog_studentt", DType::F64, shape);
        assert!(ask.refused().contains("no steps"), "{shape:?}");
    }
}
