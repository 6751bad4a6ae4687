//! The plan is data: it is tested without a GPU.

use super::*;
use nx_vulkan_abi::{DeviceInfo, TensorDesc};

fn ask(row: u32, shape: &[u64], strides: &[i64], offset: u64) -> Result<Plan, Refusal> {
    let desc = |strides, offset| TensorDesc {
        dtype: DType::F32,
        spare: 0,
        shape: shape.into(),
        strides,
        offset,
        storage_len: 4 * (offset + shape.iter().product::<u64>()),
        reserved: [0; 2],
    };
    let contiguous = nx_vulkan_abi::layout::contiguous_strides(shape);
    let inputs = [desc(strides.into(), offset)];
    let outputs = [desc(contiguous[..].into(), 0)];
    let request = Request {
        op: "square".into(),
        inputs: inputs[..].into(),
        outputs: outputs[..].into(),
        attrs: [][..].into(),
        device: &DeviceInfo::default(),
        spare: [0; 4],
    };
    plan(row, &request)
}

#[test]
fn one_invocation_per_element() {
    let plan = ask(0, &[3, 100], &[100, 1], 7).unwrap();
    let step = &plan.steps[0];
    assert_eq!(step.groups, [3, 1, 1]);
    assert_eq!(step.push.as_slice(), [7, 0, 0, 0, 44, 1, 0, 0]);
    assert_eq!(step.push.len(), plan.shaders[0].push_bytes as usize);
    assert_eq!(step.args.len(), plan.shaders[0].bindings as usize);
}

#[test]
fn a_transposed_operand_is_asked_for_in_order() {
    let asked = Refusal::InputsAs(vec![InputAs::new(0, DType::F32)]);
    assert_eq!(ask(0, &[2, 3], &[1, 2], 0), Err(asked));
}

#[test]
fn each_row_has_its_expression() {
    let expression = |row| {
        let plan = ask(row, &[8], &[1], 0).unwrap();
        plan.shaders[0].defines[1].value.to_string()
    };
    assert_eq!([0, 1].map(expression), ["a * a", "-a"]);
    assert!(matches!(ask(2, &[8], &[1], 0), Err(Refusal::Internal(_))));
}

#[test]
fn an_empty_tensor_needs_no_workgroup() {
    assert_eq!(ask(0, &[0], &[1], 0).unwrap().steps[0].groups, [0, 1, 1]);
}

#[test]
fn a_tensor_beyond_the_device_limits_is_declined() {
    assert!(matches!(
        ask(0, &[1 << 25], &[1], 0),
        Err(Refusal::Decline(_))
    ));
}
