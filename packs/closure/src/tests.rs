//! Plans as data.

use crate::{describe, plan};
use nx_vulkan_abi::{Access, DType, Features, Refusal, plan::MAX_STEPS};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files, words};

const SUM: &str = "add(i0, i1):f32";

fn ask(op: &str, shape: &[u64], results: &[u64]) -> Ask {
    let inputs = [Tensor::new(DType::F32, shape), Tensor::new(DType::F32, &[])];
    let outputs = [Tensor::new(DType::F32, results)];
    let pack = Pack { describe, plan };
    pack.ask(op, &inputs, &outputs).text("expression", SUM)
}

fn reduce(shape: &[u64], axes: &[i64]) -> Ask {
    let kept = shape
        .iter()
        .zip(0..)
        .filter(|(_, axis)| !axes.contains(axis));
    let results: Vec<u64> = kept.map(|(&extent, _)| extent).collect();
    ask("reduce", shape, &results).ints("axes", axes)
}

#[test]
fn axes_that_go_are_one_where_they_follow_in_memory() {
    let rank = |ask: Ask| defined(&ask.plan().unwrap(), 0, "RANK").to_owned();
    assert_eq!(rank(reduce(&[5, 7, 3], &[0, 1, 2])), "1");
    assert_eq!(rank(reduce(&[5, 7, 3], &[1, 2])), "2");
    assert_eq!(rank(reduce(&[5, 7, 3], &[1])), "3");
    let mut strided = reduce(&[5, 7], &[0, 1]);
    strided.inputs[0] = strided.inputs[0].clone().strided(&[1, 5], 0);
    assert_eq!(rank(strided), "2");
}

#[test]
fn long_results_are_made_in_parts() {
    let plan = reduce(&[(1 << 20) + 3], &[0]).plan().unwrap();
    assert_eq!(files(&plan), ["closure.comp"; 2]);
    assert_eq!(plan.shaders.len(), 2);
    let ends = [0, 1].map(|step| words(&plan, step)[12..].to_vec());
    let most = 1 << 20;
    assert_eq!(ends, [[1, 0, 0, 0, most], [1, 0, 0, most, most + 3]]);
    let access = [0, 1].map(|step: usize| plan.steps[step].args[2].access);
    assert_eq!(access, [Access::WRITE, Access::READ_WRITE]);
    let long = reduce(&[1 << 27, 1 << 3], &[1]).reason();
    assert!(long.contains("too large"), "{long}");
}

/// A window of a billion elements was planned with 954 dispatches, which hosts take for a broken plan.
#[test]
fn what_needs_more_dispatches_than_a_plan_may_have_is_declined() {
    let windows = |window: i64| {
        ask("window_reduce", &[3], &[1])
            .ints("padding", &[0, window - 3])
            .ints("strides", &[1])
            .ints("window", &[window])
    };
    assert_eq!(windows(64 << 20).plan().unwrap().steps.len(), MAX_STEPS);
    let long = windows((64 << 20) + 1).reason();
    assert!(long.contains("take the device too long"), "{long}");
}

#[test]
fn what_has_no_elements_is_the_accumulator() {
    let plan = reduce(&[0, 3], &[0]).plan().unwrap();
    assert_eq!(files(&plan), ["closure.comp"]);
    let buffers: Vec<u32> = plan.steps[0].args.iter().map(|arg| arg.index).collect();
    assert_eq!(buffers, [1, 1, 0]);
    assert_eq!(reduce(&[0, 3], &[1]).plan().unwrap().steps.len(), 0);
}

#[test]
fn a_gpu_loads_ahead_where_the_expression_is_short() {
    let batch = |ask: Ask| defined(&ask.plan().unwrap(), 0, "BATCH").to_owned();
    assert_eq!(batch(reduce(&[64], &[0])), "8");
    let slow = reduce(&[64], &[0]).text("expression", "exp(i0):f32; add(%0, i1):f32");
    assert_eq!(batch(slow), "1");
    assert_eq!(batch(reduce(&[64], &[0]).on(cpu())), "1");
}

#[test]
fn windows_are_those_of_the_attributes() {
    let windows = |padding: &[i64]| {
        ask("window_reduce", &[5], &[5])
            .ints("padding", padding)
            .ints("strides", &[1])
            .ints("window", &[3])
    };
    let plan = windows(&[1, 1]).plan().unwrap();
    assert_eq!(defined(&plan, 0, "WINDOWED"), "1");
    assert_eq!(words(&plan, 0)[12..], [5, u32::MAX, 0, 0, 3]);
    assert!(windows(&[1]).reason().contains("padding"));
}

#[test]
fn what_is_no_such_reduction_is_refused() {
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    assert!(bad(reduce(&[2, 3], &[2])) && bad(reduce(&[2, 3], &[-1])));
    assert!(bad(ask("reduce", &[2, 3], &[3]).ints("axes", &[1])));
    let with = |text: &'static str| reduce(&[3], &[0]).text("expression", text);
    assert!(bad(with("add(i0, i2):f32")) && bad(with("add(i0, i1):f64")) && bad(with("add")));
    assert!(bad(with("sum(i0):f32")));
    let mut vector = reduce(&[3], &[0]);
    vector.inputs[1] = Tensor::new(DType::F32, &[1]);
    assert!(bad(vector));
    let mut double = with("as_type(i0):f64; as_type(%0):f32");
    double.device.features = Features(!Features::FP64.0);
    assert_eq!(double.reason(), "an expression on f64 needs fp64");
}

/// A quotient takes as long as the rest of a normalization: it is the same for all elements of a row.
#[test]
fn what_a_row_has_once_is_computed_once() {
    let plan = |text: &'static str| {
        let inputs = [&[32, 64][..], &[32, 1]].map(|shape| Tensor::new(DType::F32, shape));
        let pack = Pack { describe, plan };
        let ask = pack.ask("fused_rows", &inputs, &inputs[..1]);
        ask.text("expression", text).plan().unwrap()
    };
    let normed = plan(
        "sum(i0):f32; divide(%0, 64:s32):f32; subtract(i0, %1):f32; multiply(%2, %2):f32; sum(%3):f32; \
         divide(%4, 65:s32):f32; rsqrt(%5):f32; multiply(%6, i1):f32; multiply(%2, %7):f32",
    );
    let of = |name| defined(&normed, 0, name).to_owned();
    // Operands 0 and 1 are given, 2 and 4 are the sums; 3 is the mean, 5 what elements are multiplied by.
    assert_eq!(of("EACH_ONCE(f)"), "f(3) f(5)");
    let quotients = |name| of(name).matches("nxv_divide").count();
    assert_eq!([quotients("M0_ONCE"), quotients("M1_ONCE")], [1, 1]);
    assert_eq!([quotients("M1_CODE"), quotients("CODE")], [0, 0]);
    assert!(of("M1_ONCE").contains("i1") && of("M1_ONCE").ends_with("reduced.w5 = v2; "));
    let soft =
        "reduce_max(i0):f32; subtract(i0, %0):f32; exp(%1):f32; sum(%2):f32; divide(%2, %3):f32";
    assert_eq!(defined(&plan(soft), 0, "EACH_ONCE(f)"), "");
    assert_eq!(defined(&plan(soft), 0, "EACH_KEPT(f)"), "f(1)");
    // Of one element all is the row's: the power, and at last the quotient.
    let one = [Tensor::new(DType::F32, &[32, 1])];
    let ask = Pack {
        describe,
        plan: crate::plan,
    }
    .ask("fused_rows", &one, &one);
    let single = ask.text("expression", soft).plan().unwrap();
    let of = |name| defined(&single, 0, name).to_owned();
    assert_eq!([of("EACH_ONCE(f)"), of("EACH_KEPT(f)")], ["f(2) f(4)", ""]);
}
