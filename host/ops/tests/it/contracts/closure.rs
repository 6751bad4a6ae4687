//! Which expressions a reduction may have, and what they lack results for.

use nx_vulkan_abi::{DType, DTypeSet, expression::ATTRIBUTE};
use nx_vulkan_ops::{
    Attr, Op,
    attrs::text,
    find,
    infer::infer,
    kernels::{Desc, check},
    layout::LAYOUTS,
    values::Rng,
};
use std::collections::BTreeSet;

fn reduce() -> &'static Op {
    find("reduce").unwrap()
}

/// The expressions that the sweep may try with an accumulator of that type.
fn tried(dtype: DType) -> BTreeSet<String> {
    let mut rng = Rng(5);
    let problems = LAYOUTS
        .iter()
        .flat_map(|layout| reduce().problems(*layout, dtype, true, &mut rng));
    let text = |attrs: &[Attr]| text(attrs, ATTRIBUTE).unwrap().to_owned();
    problems.map(|problem| text(&problem.attrs)).collect()
}

#[test]
fn what_the_sweep_tries_is_allowed() {
    let all: Vec<DType> = DType::all()
        .filter(|dtype| DTypeSet::REAL.has(*dtype))
        .collect();
    for dtype in &all {
        let texts = tried(*dtype);
        assert_eq!(texts.len(), 7);
        for text in texts {
            let attrs = [Attr::text(ATTRIBUTE, &text)];
            for x in all.iter().filter(|x| x.merge(*dtype) == *dtype) {
                let inputs = [(*x, vec![3]), (*dtype, vec![])];
                let request = infer(reduce(), &inputs, None, &attrs).unwrap();
                assert_eq!(request.outputs[..], [(*dtype, vec![])]);
                request.check().unwrap();
            }
        }
    }
}

#[test]
fn what_is_no_such_expression_is_refused() {
    let refused = |text: &str, types: [DType; 3], told: &str| {
        let attrs = [Attr::text(ATTRIBUTE, text)];
        let [x, acc, out] = types.map(|dtype| Desc { dtype, shape: &[] });
        let error = check("reduce", &[x, acc], &[out], &attrs).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(told), "{text}: {error}");
    };
    let (f32, s32) = (DType::F32, DType::S32);
    for (text, told) in [
        ("add(i0, i2):f32", "uses i2, and there are 2 operands"),
        ("add(i0):f32", "expected 2 operands, got 1"),
        ("sum(i0):f32", "sum is no elementwise op"),
        ("reduce(i0, i1):f32", "reduce is no elementwise op"),
        ("iota():f32", "expected an operand"),
        ("add(i0, i1):f64", "it gives f64, and the result is f32"),
        (
            "add(i0, i1):f32; (%0, %0)",
            "it gives 2 results, and there are 1",
        ),
        ("add(i0, i1):c64; real(%0):f32", "c64 is no real type"),
        (
            "greater(i0, i1):s32; add(%0, i1):f32",
            "the result must be u8",
        ),
        ("bitwise_and(i0, i1):f32", "f32 operands are not allowed"),
        ("add(i0, 0.1:f32):f32", "f32 does not hold 0.1"),
        ("add(i0, 1e6:f16):f32", "f16 does not hold 1000000.0"),
    ] {
        refused(text, [f32; 3], told);
    }
    refused("exp(i0):s32", [s32; 3], "the result must be a float");
    refused("add(i0, i1):f32", [DType::C64, f32, f32], "real types only");
}

#[test]
fn only_what_may_lack_a_result_is_watched() {
    let op = reduce();
    let reason = |text: &str, dtype: DType| {
        let attrs = [Attr::text(ATTRIBUTE, text)];
        op.partial_of(&[dtype; 2], &attrs)
            .map(|partial| partial.reason)
    };
    let zero = Some("integer division by zero");
    assert_eq!(reason("remainder(i0, i1):s32", DType::S32), zero);
    assert_eq!(reason("remainder(i0, 0:s32):s32", DType::S32), zero);
    assert_eq!(reason("remainder(i0, 1009:s32):s32", DType::S32), None);
    // A byte of 256 is 0.
    assert_eq!(reason("remainder(i0, 256:s32):u8", DType::U8), zero);
    assert_eq!(reason("remainder(i0, i1):f32", DType::F32), None);
    let shift = Some("a negative shift amount");
    assert_eq!(
        reason("add(i0, i1):s8; left_shift(%0, i1):s8", DType::S8),
        shift
    );
    assert_eq!(reason("left_shift(i0, i1):u8", DType::U8), None);
}

/// A shift by a negative amount was told as a division by zero where the expression divides too.
#[test]
fn of_several_reasons_none_is_told_alone() {
    let reason = |text: &str| {
        let attrs = [Attr::text(ATTRIBUTE, text)];
        let partial = reduce().partial_of(&[DType::S32; 2], &attrs).unwrap();
        partial.reason
    };
    let all =
        "integer division by zero, a negative exponent of an integer or a negative shift amount";
    assert_eq!(reason("quotient(i0, i1):s32; left_shift(%0, i1):s32"), all);
    assert_eq!(reason("pow(i0, i1):s32; remainder(%0, i1):s32"), all);
    assert_eq!(
        reason("quotient(i0, i1):s32; remainder(%0, i1):s32"),
        "integer division by zero"
    );
}
