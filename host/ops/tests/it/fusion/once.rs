//! What has less than 32 bits is rounded where it leaves a request.

use super::{input, shown};
use nx_vulkan_abi::Expression;
use nx_vulkan_ops::{Attr, DType, Program, Request, Step, fusion::rounded_once, values::Rng};

const SHAPE: &[u64] = &[3, 7];

/// The text that becomes of an expression on operands of that type.
fn once(op: &'static str, text: &str, dtypes: &[DType], results: &[DType]) -> String {
    let inputs: Vec<_> = dtypes.iter().map(|&dtype| input(dtype, SHAPE)).collect();
    let outputs: Vec<_> = results
        .iter()
        .map(|&dtype| (dtype, SHAPE.to_vec()))
        .collect();
    let made = (0..results.len() as u32).map(|made| made + inputs.len() as u32);
    let attrs = vec![Attr::text("expression", text)];
    let values: Vec<u32> = (0..inputs.len() as u32).collect();
    let request = Request::new(op, values, outputs, attrs);
    let made: Vec<u32> = made.collect();
    let program = Program::new(inputs.len(), vec![Step::from(request)], made).unwrap();
    let shown = shown(&rounded_once(program, &inputs).unwrap());
    let text = shown[0].split(" of ").next().unwrap().to_owned();
    // Each call is used, among others.
    assert!(text.parse::<Expression>().is_ok(), "{text}");
    text
}

fn fused(text: &str) -> String {
    once("fused", text, &[DType::BF16; 2], &[DType::BF16])
}

#[test]
fn a_chain_is_in_f32() {
    let gelu = "add(i0, i1):bf16; divide(%0, 1.4140625:bf16):bf16; erf(%1):bf16; add(%2, 1:s32):bf16; \
                multiply(%3, %0):bf16; divide(%4, 2.0:bf16):bf16";
    let wide = "as_type(i0):f32; as_type(i1):f32; add(%0, %1):f32; multiply(%2, 0.7071823477745056:f32):f32; erf(%3):f32; \
                add(%4, 1.0:f32):f32; multiply(%5, %2):f32; multiply(%6, 0.5:f32):f32; as_type(%7):bf16";
    assert_eq!(fused(gelu), wide);
    // It is all said.
    assert_eq!(fused(wide), wide);
}

#[test]
fn rows_are_summed_in_f32() {
    let softmax =
        "reduce_max(i0):f16; subtract(i0, %0):f16; exp(%1):f16; sum(%2):f16; divide(%2, %3):f16";
    let wide = "as_type(i0):f32; reduce_max(%0):f32; subtract(%0, %1):f32; exp(%2):f32; sum(%3):f32; divide(%3, %4):f32; \
                as_type(%5):f16";
    let f16 = [DType::F16];
    assert_eq!(once("fused_rows", softmax, &f16, &f16), wide);
}

/// What is compared is what is chosen, so that a guard guards.
#[test]
fn what_decides_is_rounded_for_all_who_read_it() {
    for (text, wide) in [
        (
            "multiply(i0, i1):bf16; floor(%0):bf16; subtract(%0, %1):bf16; exp(%2):bf16",
            "as_type(i0):f32; as_type(i1):f32; multiply(%0, %1):f32; as_type(%2):bf16; floor(%3):bf16; as_type(%3):f32; \
             as_type(%4):f32; subtract(%5, %6):f32; exp(%7):f32; as_type(%8):bf16",
        ),
        // Nobody else reads it.
        (
            "exp(i0):bf16; tanh(%0):bf16; floor(%1):bf16; add(%2, i1):bf16",
            "as_type(i0):f32; exp(%0):f32; tanh(%1):f32; as_type(%2):bf16; floor(%3):bf16; as_type(%4):f32; \
             as_type(i1):f32; add(%5, %6):f32; as_type(%7):bf16",
        ),
        (
            "exp(i0):bf16; multiply(%0, i1):bf16; less_equal(%1, 1.0:bf16):u8; select(%2, %1, 1.0:bf16):bf16; \
             subtract(1.0:bf16, %3):bf16; sqrt(%4):bf16",
            "as_type(i0):f32; exp(%0):f32; as_type(i1):f32; multiply(%1, %2):f32; as_type(%3):bf16; less_equal(%4, 1.0:bf16):u8; \
             as_type(%4):f32; select(%5, %6, 1.0:f32):f32; subtract(1.0:f32, %7):f32; sqrt(%8):f32; \
             as_type(%9):bf16",
        ),
    ] {
        assert_eq!(fused(text), wide);
    }
}

#[test]
fn only_reciprocals_that_are_normal_stand_for_divisors() {
    for (divisor, stays) in [("2.0", false), ("0.0", true), ("inf", true), ("nan", true)] {
        let text = format!("exp(i0):bf16; divide(%0, {divisor}:bf16):bf16; add(%1, i1):bf16");
        assert_eq!(fused(&text).contains("divide"), stays, "{divisor}");
    }
    // 2^127 and 2^-127: the reciprocal of one is no normal number, nor is the other.
    for divisor in [
        "170141183460469231731687303715884105728",
        "5.877471754111438e-39",
    ] {
        let text = format!("exp(i0):bf16; divide(%0, {divisor}:bf16):bf16; add(%1, i1):bf16");
        assert!(fused(&text).contains("divide"), "{divisor}");
    }
}

#[test]
fn what_gains_nothing_is_left() {
    for (text, dtype) in [
        ("exp(i0):f32; add(%0, i1):f32", DType::F32),
        ("add(i0, i1):bf16; round(%0):bf16", DType::BF16),
        (
            "floor(i0):bf16; floor(i1):bf16; add(%0, %1):bf16",
            DType::BF16,
        ),
        ("bitwise_xor(i0, i1):s32; add(%0, i1):s32", DType::S32),
    ] {
        assert_eq!(once("fused", text, &[dtype; 2], &[dtype]), text);
    }
    // Nobody permitted anything for what is of f32.
    let cast = "exp(i0):bf16; tanh(%0):bf16; as_type(%1):f32; log(%2):f32; (%3, %1)";
    let results = [DType::F32, DType::BF16];
    assert_eq!(once("fused", cast, &[DType::BF16], &results), cast);
    // An integer has as many digits as it had.
    let mixed = "add(i0, i1):bf16; multiply(%0, i1):bf16";
    let dtypes = [DType::BF16, DType::S32];
    assert_eq!(once("fused", mixed, &dtypes, &[DType::BF16]), mixed);
}

/// Every expression that the pass writes is one, whatever it was: no call is left that nobody uses.
#[test]
fn random_expressions_stay_expressions() {
    let mut rng = Rng(33);
    let mut changed = 0;
    for _ in 0..2000 {
        let count = 2 + rng.below(12) as usize;
        let mut calls: Vec<String> = Vec::new();
        let mut tests: Vec<usize> = Vec::new();
        for place in 0..count {
            let term = |rng: &mut Rng| match rng.below(8) {
                0 => "1.5:bf16".to_owned(),
                1 => "3:s32".to_owned(),
                2 => "i1".to_owned(),
                _ if place == 0 => "i0".to_owned(),
                3 => "i0".to_owned(),
                _ => format!("%{}", rng.below(place as u64)),
            };
            let [x, y] = [term(&mut rng), term(&mut rng)];
            let test = tests.last().copied();
            calls.push(match (rng.below(9), test) {
                (0, _) => format!("floor({x}):bf16"),
                (1, _) => {
                    tests.push(place);
                    format!("less({x}, {y}):u8")
                }
                (2, Some(test)) => format!("select(%{test}, {x}, {y}):bf16"),
                (3, _) => format!("divide({x}, 4.0:bf16):bf16"),
                (4, _) => format!("exp({x}):bf16"),
                (5, _) => format!("remainder({x}, {y}):bf16"),
                _ => format!("add({x}, {y}):bf16"),
            });
        }
        // All that nobody reads are results.
        let all = calls.join("; ");
        let is_read = |place: &usize| {
            let name = [format!("%{place},"), format!("%{place})")];
            name.iter().any(|name| all.contains(name.as_str()))
        };
        let results: Vec<usize> = (0..count).filter(|place| !is_read(place)).collect();
        let listed: Vec<String> = results.iter().map(|place| format!("%{place}")).collect();
        let text = format!("{all}; ({})", listed.join(", "));
        let expression: Expression = text.parse().unwrap();
        let gives: Vec<DType> = expression.gives().collect();
        let wide = once("fused", &text, &[DType::BF16; 2], &gives);
        let after: Expression = wide.parse().unwrap();
        assert!(after.gives().eq(gives), "{text}: {wide}");
        changed += usize::from(wide.contains("f32"));
    }
    assert!(changed > 1000, "{changed}");
}
