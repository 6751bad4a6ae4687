//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DeviceInfo, Features, Slot};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, defined, words};

fn request(op: &str, dtype: DType, [chains, steps, extent]: [u64; 3]) -> Ask {
    let families = &Table::get().unwrap().families;
    let family = families.iter().find(|family| family.op == op).unwrap();
    let state = Tensor::new(dtype, &[chains, extent]);
    let chain = Tensor::new(dtype, &[chains, steps, extent]);
    let scalars = Tensor::new(dtype, &[1 + family.parameters.len() as u64]);
    let logp = Tensor::new(dtype, &[chains, steps]);
    let inputs = [state.clone(), state.clone(), state, scalars];
    Pack { describe, plan }.ask(op, &inputs, &[chain.clone(), chain.clone(), chain, logp])
}

#[test]
fn one_dispatch_takes_the_steps_and_one_adds() {
    let plan = request("leapfrog_normal", DType::F64, [4, 32, 100])
        .plan()
        .unwrap();
    let [steps, sums] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(plan.scratch[..], [4 * 32 * 100 * 8]);
    assert_eq!(steps.groups, [400u32.div_ceil(64), 1, 1]);
    let push = [400, 100, 32, 0, 100, 1, 0, 100, 1, 0, 100, 1, 0, 1];
    assert_eq!(words(&plan, 0), push);
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
    assert_eq!(words(&plan, 1), [128, 100]);
}

#[test]
fn one_coordinate_needs_no_sum() {
    let plan = request("leapfrog_beta", DType::F32, [7, 3, 1])
        .plan()
        .unwrap();
    assert!(plan.steps.len() == 1 && plan.scratch.is_empty());
    assert_eq!(plan.steps[0].args[7], BufArg::output(3));
}

#[test]
fn no_chains_need_nothing() {
    let plan = request("leapfrog_gamma", DType::F32, [0, 3, 5])
        .plan()
        .unwrap();
    assert_eq!(plan, Plan::default());
}

/// The prefix property and batches rest on this: what a row is added with does not depend on how many there are.
#[test]
fn the_order_of_a_sum_depends_on_the_coordinates_alone() {
    for extent in [2, 3, 8, 9, 256, 257, 1000, 5000] {
        let lanes = |chains, steps| {
            let ask = request("leapfrog_cauchy", DType::F64, [chains, steps, extent]);
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
            let mut ask = request(family.op.as_str(), dtype, [3, 5, 300]);
            ask.device = DeviceInfo {
                features: Features(u64::MAX),
                ..DeviceInfo::default()
            };
            let plan = ask.plan().unwrap();
            for step in &plan.steps {
                assert!(step.push.len() <= 128 && step.groups[0] <= 65535);
            }
            for step in 0..plan.steps.len() {
                let workgroup: u32 = defined(&plan, step, "WORKGROUP").parse().unwrap();
                assert!(workgroup <= 128);
            }
        }
    }
}

#[test]
fn more_workgroups_than_the_device_takes_are_walked() {
    let mut ask = request("leapfrog_normal", DType::F32, [1 << 20, 2, 100]);
    ask.device.max_groups = [1000; 3];
    let plan = ask.plan().unwrap();
    assert!(plan.steps.iter().all(|step| step.groups == [1000, 1, 1]));
}

#[test]
fn views_are_read_where_they_are() {
    let mut ask = request("leapfrog_normal", DType::F32, [4, 2, 5]);
    ask.inputs[0].strides = vec![1, 4];
    ask.inputs[1].strides = vec![-5, -1];
    ask.inputs[1].offset = 19;
    ask.inputs[2].strides = vec![0, 1];
    let push = words(&ask.plan().unwrap(), 0);
    assert_eq!(push[3..6], [0, 1, 4]);
    assert_eq!(push[6..9], [19, -5i32 as u32, -1i32 as u32]);
    assert_eq!(push[9..12], [0, 0, 1]);
}

#[test]
fn a_small_part_of_a_large_buffer_is_bound_alone() {
    let mut ask = request("leapfrog_normal", DType::F64, [4, 2, 5]);
    ask.device.max_buffer_range = 1 << 27;
    ask.inputs[1].storage = Some(8 << 30);
    ask.inputs[1].offset = (1 << 29) + 3;
    let plan = ask.plan().unwrap();
    let arg = plan.steps[0].args[1];
    assert_eq!((arg.offset, arg.len), (8 << 29, 8 * (3 + 20)));
    assert_eq!(words(&plan, 0)[6], 3);

    // Rows too far apart for one binding are wished for as a copy, of all such operands at once.
    ask.inputs[1].offset = 0;
    ask.inputs[1].strides = vec![1 << 27, 1];
    ask.inputs[2] = ask.inputs[1].clone();
    let wishes = [1, 2].map(|index| nx_vulkan_abi::InputAs::new(index, DType::F64));
    assert_eq!(ask.plan(), Err(Refusal::InputsAs(wishes.to_vec())));
}

#[test]
fn what_does_not_fit_is_declined_with_a_reason() {
    let mut ask = request("leapfrog_normal", DType::F64, [1000, 1024, 100]);
    ask.device.max_buffer_range = 1 << 27;
    let why = ask.reason();
    assert!(
        why.contains("f64[1000, 1024, 100]") && why.contains("134217728"),
        "{why}"
    );
    let why = request("leapfrog_normal", DType::F32, [1 << 20, 1 << 12, 1 << 4]).reason();
    assert!(why.contains("2^31"), "{why}");
    let mut ask = request("leapfrog_normal", DType::F64, [1, 2, 3]);
    ask.device.features = Features::NONE;
    let why = ask.reason();
    assert!(why.contains("needs fp64"), "{why}");
}

#[test]
fn broken_requests_are_refused() {
    let good = request("leapfrog_studentt", DType::F64, [2, 3, 4]);
    let refused = |change: &dyn Fn(&mut Ask)| {
        let mut ask = good.clone();
        change(&mut ask);
        ask.reason()
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
        let ask = request("leapfrog_studentt", DType::F64, shape);
        assert!(ask.reason().contains("no steps"), "{shape:?}");
    }
}
