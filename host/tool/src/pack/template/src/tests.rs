//! Plans are data: they are tested without a GPU. What the shaders compute, `nxv pack test` compares with the CPU kernels.

use super::*;
use nx_vulkan_abi::{Attr, AttrKind, layout::contiguous_strides};

/// Number of the row of that op.
fn row(op: &str) -> u32 {
    let rows = table::rows().unwrap();
    rows.iter().position(|row| row.op == op).unwrap() as u32
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
    op: &str,
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
        row(op),
        &Request {
            op: op.into(),
            inputs: inputs.into(),
            outputs: outputs[..].into(),
            attrs: attrs[..].into(),
            device: &DeviceInfo::default(),
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
    let ops = table::rows().unwrap().iter().map(|row| row.op.as_str());
    assert!(ops.eq(kernels.iter().map(|kernel| kernel.op.as_str())));
}

#[test]
fn a_unary_op_runs_one_invocation_for_each_element() {
    let plan = ask(
        "negate",
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
    let plan = ask("multiply", &inputs, (DType::S32, &[5]), &[]).unwrap();
    assert_eq!(plan.steps[0].push.as_slice(), push(&[5, 0, 1, 0, 0]));
    assert_consistent(&plan);
}

#[test]
fn operands_of_other_types_or_layouts_are_asked_for_in_order() {
    let inputs = [
        tensor(DType::S32, &[2, 3], &[3, 1]),
        tensor(DType::F32, &[2, 3], &[1, 2]),
    ];
    let asked = [0, 1].map(|index| InputAs::new(index, DType::F32));
    assert_eq!(
        ask("multiply", &inputs, (DType::F32, &[2, 3]), &[]),
        Err(Refusal::InputsAs(asked.to_vec()))
    );
}

#[test]
fn a_reduction_has_one_workgroup_for_each_row() {
    let x = tensor(DType::F32, &[2, 3, 50], &[150, 50, 1]);
    let plan = ask("reduce_max", &[x], (DType::F32, &[2]), &[1, 2]).unwrap();
    assert_eq!(plan.steps[0].groups, [2, 1, 1]);
    assert_eq!(plan.steps[0].push.as_slice(), push(&[0, 2, 150]));
    assert_consistent(&plan);
    assert!(matches!(
        ask("reduce_max", &[x], (DType::F32, &[3, 50]), &[0]),
        Err(Refusal::Decline(_))
    ));
}

#[test]
fn what_does_not_fit_is_refused_and_never_a_panic() {
    let half = tensor(DType::F16, &[2], &[1]);
    assert!(matches!(
        ask("negate", &[half], (DType::F16, &[2]), &[]),
        Err(Refusal::Decline(_))
    ));
    let huge = tensor(DType::F32, &[1 << 40], &[1]);
    assert!(matches!(
        ask("negate", &[huge], (DType::F32, &[1 << 40]), &[]),
        Err(Refusal::Decline(_))
    ));
    assert!(matches!(
        ask("negate", &[], (DType::F32, &[1]), &[]),
        Err(Refusal::BadRequest(_))
    ));
    let empty = tensor(DType::F32, &[0, 3], &[3, 1]);
    assert!(
        ask("negate", &[empty], (DType::F32, &[0, 3]), &[])
            .unwrap()
            .steps
            .is_empty()
    );
}
