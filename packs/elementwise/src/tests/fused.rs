//! Plans of several ops as one.

use super::ask::{ask, checked};
use crate::{describe, plan};
use nx_vulkan_abi::{DType, Features, Plan, Refusal, plan::MAX_BINDINGS};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files, gpu, without, words};

const SHORT: &str = "multiply(i0, i1):f32; add(%0, i2):f32";

fn fused(text: &'static str, inputs: &[Tensor], outputs: &[Tensor]) -> Ask {
    let pack = Pack { describe, plan };
    pack.ask("fused", inputs, outputs).text("expression", text)
}

fn f32s(shape: &[u64]) -> Tensor {
    Tensor::new(DType::F32, shape)
}

fn given<'a, const N: usize>(plan: &'a Plan, names: [&str; N]) -> [&'a str; N] {
    names.map(|name| defined(plan, 0, name))
}

#[test]
fn operands_are_read_as_they_lie() {
    let all = f32s(&[64, 64, 4]);
    let ask = fused(SHORT, &[all.clone(), f32s(&[]), all.clone()], &[all]);
    let plan = checked(&ask);
    assert_eq!(files(&plan), ["fused.comp"]);
    let names = [
        "RANK",
        "WIDTH",
        "I0_READ",
        "I1_READ",
        "I1_VECTOR",
        "I1_LANE(x, n)",
    ];
    assert_eq!(
        given(&plan, names),
        ["1", "4", "READ_VECTOR", "READ_SCALAR", "float", "x"]
    );
    assert_eq!(defined(&plan, 0, "EACH_OPERAND(f)"), "f(0) f(1) f(2)");
    // Elements, the first of the result and of each operand, then the axis with its divisor and strides.
    let words = words(&plan, 0);
    assert_eq!(words[..6], [1 << 14, 0, 0, 0, 0, 1 << 14]);
    assert_eq!(words[8..], [1, 0, 1]);
    let rows = [f32s(&[64, 64]), f32s(&[64, 1]), f32s(&[64])];
    let plan = checked(&fused(SHORT, &rows, &[f32s(&[64, 64])]));
    let names = ["RANK", "I1_READ", "I1_VECTOR", "I2_READ"];
    assert_eq!(
        given(&plan, names),
        ["2", "READ_SCALAR", "vec4", "READ_VECTOR"]
    );
}

#[test]
fn results_have_a_binding_each_behind_the_operands() {
    let (x, bytes) = (f32s(&[1022]), Tensor::new(DType::U8, &[1022]));
    let text = "negate(i0):f32; greater(%0, i0):u8; (%1, %0)";
    let ask = fused(text, std::slice::from_ref(&x), &[bytes, x.clone()]);
    let plan = ask.plan().unwrap();
    let args: Vec<(u32, u64)> = plan.steps[0]
        .args
        .iter()
        .map(|arg| (arg.index, arg.len))
        .collect();
    assert_eq!(args, [(0, 4088), (0, 1022), (1, 4088)]);
    let names = ["WIDTH", "R0_VECTOR", "R1_VECTOR", "R0_MADE", "R1_MADE"];
    assert_eq!(given(&plan, names), ["2", "u8vec2", "vec2", "v1", "v0"]);
}

#[test]
fn long_code_takes_fewer_elements_at_once() {
    let widths = |text: &'static str, device| {
        let ask = fused(text, &[f32s(&[1 << 22])], &[f32s(&[1 << 22])]).on(device);
        let plan = checked(&ask);
        given(&plan, ["WIDTH", "VECTORS"]).map(str::to_owned)
    };
    assert_eq!(widths("negate(i0):f32; abs(%0):f32", gpu()), ["4", "2"]);
    assert_eq!(widths("negate(i0):f32; abs(%0):f32", cpu()), ["4", "4"]);
    let mut long = "sin(i0):f32".to_owned();
    (0..20).for_each(|k| long += &format!("; sin(%{k}):f32"));
    assert_eq!(widths(long.leak(), gpu()), ["1", "1"]);
}

#[test]
fn large_results_are_made_in_parts_and_with_wide_indices() {
    let small = nx_vulkan_abi::DeviceInfo {
        max_buffer_range: 1 << 20,
        ..gpu()
    };
    let x = f32s(&[1_000_003]);
    let ask = fused(SHORT, &[x.clone(), f32s(&[]), x.clone()], &[x]);
    assert_eq!(checked(&ask.on(small)).steps.len(), 4);
    let wide = nx_vulkan_abi::DeviceInfo {
        max_buffer_range: u64::MAX,
        ..gpu()
    };
    let x = Tensor::new(DType::U8, &[2, 3 << 30]);
    let crossed = x.clone().strided(&[2, 3], 0);
    let plan = checked(&fused("add(i0, i1):u8", &[x.clone(), crossed], &[x]).on(wide));
    assert_eq!(defined(&plan, 0, "INDEX"), "uint64_t");
}

#[test]
fn transposed_operands_are_copied_first_where_that_is_worth_it() {
    let (x, n) = (f32s(&[1024, 1024]), 1024);
    let turned = x.clone().strided(&[1, n], 0);
    let answer = fused("add(i0, i1):f32", &[x.clone(), turned], &[x]).plan();
    assert!(matches!(answer, Err(Refusal::InputsAs(which)) if which[0].index == 1));
}

#[test]
fn what_no_dispatch_runs_is_declined() {
    let x = f32s(&[8]);
    let many = vec![x.clone(); MAX_BINDINGS - 3];
    let why = fused("add(i0, i1):f32", &many, std::slice::from_ref(&x)).reason();
    assert!(why.contains("more than a dispatch binds"), "{why}");
    let bare = without(gpu(), Features::FP64);
    let why = fused(
        "as_type(i0):f64; as_type(%0):f32",
        std::slice::from_ref(&x),
        std::slice::from_ref(&x),
    )
    .on(bare);
    assert!(why.reason().contains("fp64"));
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    assert!(bad(fused(
        "exp(i0):f32",
        std::slice::from_ref(&x),
        &[Tensor::new(DType::F16, &[8])]
    )));
    assert!(bad(fused(
        "exp(i0):f32",
        std::slice::from_ref(&x),
        &[x.clone(), x.clone()]
    )));
    assert!(bad(fused(
        "exp(i0):f32; (%0, %0)",
        std::slice::from_ref(&x),
        &[x.clone(), f32s(&[4])]
    )));
    assert!(bad(fused(
        "exp(i1):f32",
        std::slice::from_ref(&x),
        std::slice::from_ref(&x)
    )));
    let empty = f32s(&[0, 3]);
    let plan = fused(
        "exp(i0):f32",
        std::slice::from_ref(&empty),
        std::slice::from_ref(&empty),
    );
    assert_eq!(plan.plan().unwrap(), Plan::default());
    let other = ask("exp", &[x], (DType::F32, &[8]));
    assert_eq!(files(&checked(&other)), ["contiguous.comp"]);
}
