//! Plans are data: they are tested without a GPU. What the shaders compute, `nxv pack test` compares with the CPU kernels.

use super::*;
use nx_vulkan_abi::{Attr, AttrKind, layout::contiguous_strides};

const NEGATE: u32 = 0;
const MULTIPLY: u32 = 1;
const LARGEST: u32 = 2;

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: 0,
        subgroup_size: 32,
        shared_bytes: 16384,
        push_bytes: 128,
        max_invocations: 128,
        compute_units: 0,
        max_workgroup_size: [128, 128, 64],
        max_groups: [65535; 3],
        max_buffer_range: 1 << 27,
        buffer_align: 256,
        features: Features::NONE,
        spare: [0; 4],
    }
}

/// A contiguous tensor, or with `strides` another view.
fn tensor<'a>(dtype: DType, shape: &'a [u64], strides: &'a [i64]) -> TensorDesc<'a> {
    TensorDesc {
        dtype,
        spare: 0,
        shape: shape.into(),
        strides: strides.into(),
        offset: 0,
        storage_len: dtype.size() * shape.iter().product::<u64>(),
        reserved: [0; 2],
    }
}

fn ask(
    row: u32,
    inputs: &[TensorDesc<'_>],
    output: (DType, &[u64]),
    axes: &[i64],
) -> Result<Plan, Refusal> {
    let strides = contiguous_strides(output.1);
    let outputs = [tensor(output.0, output.1, &strides)];
    let attrs = [Attr {
        name: "axes".into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: axes.into(),
        floats: [][..].into(),
        text: "".into(),
    }];
    plan(
        row,
        &Request {
            op: "test".into(),
            inputs: inputs.into(),
            outputs: outputs[..].into(),
            attrs: attrs[..].into(),
            device: &device(),
            spare: [0; 4],
        },
    )
}

/// What the host checks again: as many arguments and bytes as the shader declares.
fn assert_consistent(plan: &Plan) {
    for step in &plan.steps {
        let shader = &plan.shaders[step.shader as usize];
        assert_eq!(step.args.len(), shader.bindings as usize);
        assert_eq!(step.push.len(), shader.push_bytes as usize);
    }
}

#[test]
fn every_row_of_the_table_is_described() {
    let kernels = describe().unwrap().kernels;
    let ops: Vec<&str> = kernels.iter().map(|kernel| kernel.op.as_str()).collect();
    assert_eq!(ops, ["negate", "multiply", "reduce_max"]);
}

#[test]
fn a_unary_op_runs_one_invocation_for_each_element() {
    let plan = ask(
        NEGATE,
        &[tensor(DType::F32, &[3, 100], &[100, 1])],
        (DType::F32, &[3, 100]),
        &[],
    )
    .unwrap();
    assert_eq!(plan.steps[0].groups, [3, 1, 1]);
    assert_eq!(plan.steps[0].push.as_slice(), push(&[300, 0, 1]));
    assert_consistent(&plan);
}

#[test]
fn a_scalar_operand_repeats() {
    let inputs = [tensor(DType::S32, &[5], &[1]), tensor(DType::S32, &[], &[])];
    let plan = ask(MULTIPLY, &inputs, (DType::S32, &[5]), &[]).unwrap();
    assert_eq!(plan.steps[0].push.as_slice(), push(&[5, 0, 1, 0, 0]));
    assert_consistent(&plan);
}

#[test]
fn operands_of_other_types_or_layouts_are_asked_for_in_order() {
    let inputs = [
        tensor(DType::S32, &[2, 3], &[3, 1]),
        tensor(DType::F32, &[2, 3], &[1, 2]),
    ];
    let asked = [0, 1].map(|index| InputAs {
        index,
        dtype: DType::F32,
    });
    assert_eq!(
        ask(MULTIPLY, &inputs, (DType::F32, &[2, 3]), &[]),
        Err(Refusal::InputsAs(asked.to_vec()))
    );
}

#[test]
fn a_reduction_has_one_workgroup_for_each_row() {
    let x = tensor(DType::F32, &[2, 3, 50], &[150, 50, 1]);
    let plan = ask(LARGEST, &[x], (DType::F32, &[2]), &[1, 2]).unwrap();
    assert_eq!(plan.steps[0].groups, [2, 1, 1]);
    assert_eq!(plan.steps[0].push.as_slice(), push(&[0, 2, 150]));
    assert_consistent(&plan);
    assert!(matches!(
        ask(LARGEST, &[x], (DType::F32, &[3, 50]), &[0]),
        Err(Refusal::Decline(_))
    ));
}

#[test]
fn what_does_not_fit_is_refused_and_never_a_panic() {
    let half = tensor(DType::F16, &[2], &[1]);
    assert!(matches!(
        ask(NEGATE, &[half], (DType::F16, &[2]), &[]),
        Err(Refusal::Decline(_))
    ));
    let huge = tensor(DType::F32, &[1 << 40], &[1]);
    assert!(matches!(
        ask(NEGATE, &[huge], (DType::F32, &[1 << 40]), &[]),
        Err(Refusal::Decline(_))
    ));
    assert!(matches!(
        ask(NEGATE, &[], (DType::F32, &[1]), &[]),
        Err(Refusal::BadRequest(_))
    ));
    let empty = tensor(DType::F32, &[0, 3], &[3, 1]);
    assert!(
        ask(NEGATE, &[empty], (DType::F32, &[0, 3]), &[])
            .unwrap()
            .steps
            .is_empty()
    );
}
