//! Plans are data: they are tested without a GPU. What the shaders compute, `nxv pack test` compares with the CPU kernels.

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo, InputAs};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, words};

/// A request on the least that a device offers. Its plan keeps what the host checks again, or the test fails.
fn ask(op: &str, inputs: &[Tensor], dtype: DType, shape: &[u64]) -> Ask {
    let ask = Pack { describe, plan }.ask(op, inputs, &[Tensor::new(dtype, shape)]);
    ask.on(DeviceInfo::default())
}

#[test]
fn every_row_of_the_table_is_described() {
    let kernels = describe().unwrap().kernels;
    let ops = table::rows().unwrap().iter().map(|row| row.op.as_str());
    assert!(ops.eq(kernels.iter().map(|kernel| kernel.op.as_str())));
}

#[test]
fn a_unary_op_runs_one_invocation_for_each_element() {
    let x = Tensor::new(DType::F32, &[3, 100]);
    let plan = ask("negate", &[x], DType::F32, &[3, 100]).plan().unwrap();
    assert_eq!(plan.steps[0].groups, [3, 1, 1]);
    assert_eq!(words(&plan, 0), [300, 0, 1]);
}

#[test]
fn a_scalar_operand_repeats() {
    let inputs = [&[5][..], &[]].map(|shape| Tensor::new(DType::S32, shape));
    let plan = ask("multiply", &inputs, DType::S32, &[5]).plan().unwrap();
    assert_eq!(words(&plan, 0), [5, 0, 1, 0, 0]);
}

#[test]
fn operands_of_other_types_or_layouts_are_asked_for_in_order() {
    let inputs = [
        Tensor::new(DType::S32, &[2, 3]),
        Tensor::new(DType::F32, &[2, 3]).strided(&[1, 2], 0),
    ];
    let asked = [0, 1].map(|index| InputAs::new(index, DType::F32));
    assert_eq!(
        ask("multiply", &inputs, DType::F32, &[2, 3]).plan(),
        Err(Refusal::InputsAs(asked.to_vec()))
    );
}

#[test]
fn a_reduction_has_one_workgroup_for_each_row() {
    let x = [Tensor::new(DType::F32, &[2, 3, 50])];
    let ask = |shape, axes| ask("reduce_max", &x, DType::F32, shape).ints("axes", axes);
    let plan = ask(&[2], &[1, 2]).plan().unwrap();
    assert_eq!(plan.steps[0].groups, [2, 1, 1]);
    assert_eq!(words(&plan, 0), [0, 2, 150]);
    assert!(ask(&[3, 50], &[0]).reason().contains("last axes only"));
}

#[test]
fn what_does_not_fit_is_refused_and_never_a_panic() {
    let negate = |dtype, shape| ask("negate", &[Tensor::new(dtype, shape)], dtype, shape);
    assert!(negate(DType::F16, &[2]).reason().contains("storage16"));
    assert!(
        negate(DType::F32, &[1 << 40])
            .reason()
            .contains("too large")
    );
    let none = ask("negate", &[], DType::F32, &[1]).plan();
    assert!(matches!(none, Err(Refusal::BadRequest(_))));
    assert!(negate(DType::F32, &[0, 3]).plan().unwrap().steps.is_empty());
}
