//! The GLSL of calls, and what is refused.

use super::*;
use crate::testing::gpu;

fn code(text: &str, operands: &[DType]) -> Code {
    let expression: Expression = text.parse().unwrap();
    Code::of(&expression, operands, &gpu()).unwrap()
}

#[test]
fn code_is_the_rows_of_the_elementwise_pack_in_types() {
    let text = "multiply(i0, 2:s32):f16; greater(%0, i1):u8; select(%1, %0, i1):f16";
    assert_eq!(
        code(text, &[DType::F16, DType::F16]).body,
        "float v0; { float a = i0; float b = nxv_to_f16(int(0x2u)); precise float r = a * b; \
         v0 = nxv_load_f16(uint16_t(nxv_store_f16(nxv_to_f16(r)) ^ ZERO)); } \
         uint v1; { float a = v0; float b = i1; v1 = nxv_to_u8(a > b) ^ ZERO; } \
         float v2; { uint a = v1; float b = v0; float c = i1; \
         v2 = nxv_load_f16(uint16_t(nxv_store_f16(nxv_to_f16(truth(a) ? b : c)) ^ ZERO)); } "
    );
}

#[test]
fn loose_code_has_functions_for_narrower_types() {
    let expression = "multiply(i0, i1):f32; erf(%0):f32; add(%1, %0):f32; erf(i2):f64; (%2, %3)";
    let expression: Expression = expression.parse().unwrap();
    let operands = [DType::F32, DType::F32, DType::F64];
    let [exact, loose] = [false, true].map(|loose| {
        Code::within(&expression, &operands, &gpu(), loose)
            .unwrap()
            .body
    });
    assert!(exact.contains("nxv_erf(a)") && !exact.contains("nxv_narrow_erf"));
    assert!(loose.contains("nxv_narrow_erf(a)"), "{loose}");
    // Nothing is contracted in either.
    let precise = |body: &str| body.matches("precise float r").count();
    assert_eq!([precise(&exact), precise(&loose)], [3, 3]);
    // Doubles are what they were.
    let double = exact.split("double v3").nth(1).unwrap();
    assert!(double.contains("nxv_erf(a)") && loose.ends_with(double));
}

#[test]
fn operands_of_types_that_none_holds_are_ordered() {
    let mixed = code("less(i0, i1):u8", &[DType::S64, DType::F32]);
    let order =
        "uint v0; { float a = order(i0, i1); float b = 0.0; v0 = nxv_to_u8(a < b) ^ ZERO; } ";
    assert_eq!(mixed.body, order);
    assert_eq!(mixed.results, ["v0"]);
    let names = |code: &Code| -> Vec<String> {
        let defines = code.defines().into_iter();
        defines.map(|define| define.name.to_string()).collect()
    };
    assert!(names(&mixed).contains(&"MIXED".to_owned()));
    let plain = code(
        "less(i0, i1):u8; exp(i1):f32; add(%0, %1):f32",
        &[DType::F32; 2],
    );
    assert!(!names(&plain).contains(&"MIXED".to_owned()));
    assert!(names(&plain).contains(&"MATH_F32".to_owned()));
    assert_eq!(plain.functions, 1);
    let shift = code("left_shift(i0, 1:u8):s16", &[DType::S16]);
    assert!(
        shift.body.contains("shifted_left(a, b, 16)"),
        "{}",
        shift.body
    );
}

#[test]
fn numbers_that_lose_digits_to_a_float_are_hidden() {
    let hides = |text: &str, dtype| code(text, &[dtype]).body.contains("^ ZERO");
    assert!(hides("as_type(i0):f32", DType::F64));
    assert!(hides("as_type(i0):f32", DType::U32));
    assert!(hides("max(i0, i0):f32", DType::F64));
    assert!(hides("as_type(i0):f64", DType::S64));
    assert!(!hides("as_type(i0):f64", DType::S32));
    assert!(!hides("as_type(i0):f32", DType::S16));
    assert!(!hides("as_type(i0):f64", DType::F32));
}

#[test]
fn squares_and_powers_of_two_are_simpler() {
    let of = |text: &str, dtype| code(text, &[dtype]).body;
    assert!(of("pow(i0, 2:s32):bf16", DType::BF16).contains("r = a * a;"));
    assert!(of("pow(i0, 2.0:f64):f64", DType::F64).contains("r = a * a;"));
    assert!(of("pow(i0, 3:s32):f32", DType::F32).contains("r = power(a, b);"));
    assert!(!of("pow(i0, 2:s32):s32", DType::S32).contains("a * a"));
    let half = "r = nxv_divide_by(a, b, uintBitsToFloat(0x3f000000u));";
    assert!(of("divide(i0, 2:s32):f16", DType::F16).contains(half));
    let root = "r = nxv_divide_by(a, b, uintBitsToFloat(0x3f350";
    assert!(of("divide(i0, 1.4140625:bf16):bf16", DType::BF16).contains(root));
    assert!(of("divide(i0, 1.41421356:f64):bf16", DType::BF16).contains("r = nxv_divide(a, b);"));
    assert!(of("divide(i0, 3:s32):bf16", DType::F32).contains("r = nxv_divide(a, b);"));
    assert!(of("divide(i0, 3:s32):f16", DType::F16).contains("r = nxv_divide(a, b);"));
    assert!(of("divide(i0, 3:s32):f32", DType::F32).contains("r = nxv_divide(a, b);"));
    assert!(of("divide(i0, 2:s32):f64", DType::F64).contains("r = nxv_divide(a, b);"));
    assert!(of("divide(2:s32, i0):f32", DType::F32).contains("r = nxv_divide(a, b);"));
}

#[test]
fn what_is_no_expression_of_reals_is_refused() {
    for (text, operand) in [
        ("dot(i0, i0):f32", DType::F32),
        ("exp(i0, i0):f32", DType::F32),
        ("exp(i1):f32", DType::F32),
        ("exp(i0):c64", DType::F32),
        ("real(i0):f32", DType::C64),
    ] {
        let expression: Expression = text.parse().unwrap();
        let code = Code::of(&expression, &[operand], &gpu());
        assert!(
            matches!(code, Err(Refusal::BadRequest(_))),
            "{text}: {code:?}"
        );
    }
}

#[test]
fn numbers_keep_their_bits() {
    let float = |number: f64, dtype| literal(number.to_bits(), 0, dtype, "", false);
    let whole = |number, dtype, register| literal(0, number, dtype, register, false);
    assert_eq!(whole(-2, DType::S32, "int"), "int(0xfffffffeu)");
    assert_eq!(
        whole(3, DType::U64, "uint64_t"),
        "uint64_t(packUint2x32(uvec2(0x3u, 0x0u)))"
    );
    assert_eq!(
        float(1.0, DType::F64),
        "packDouble2x32(uvec2(0x0u, 0x3ff00000u))"
    );
    assert_eq!(
        float(f64::INFINITY, DType::F32),
        "uintBitsToFloat(0x7f800000u)"
    );
}

#[test]
fn compilers_do_not_know_zeros() {
    for (number, dtype) in [
        (0.0, DType::F32),
        (-0.0, DType::BF16),
        (1e-60, DType::F32),
        (0.0, DType::F64),
    ] {
        let text = literal(f64::to_bits(number), 0, dtype, "", false);
        assert!(text.contains(" ^ ZERO"), "{text}");
    }
    let product = code("multiply(i0, 0:s32):f32", &[DType::F32]).body;
    assert!(
        product.contains("float b = nxv_to_f32(int(0x0u ^ ZERO));"),
        "{product}"
    );
}

#[test]
fn compilers_know_neither_the_numbers_of_functions_nor_what_these_give() {
    let divided = code("divide(i0, 3:s32):f32", &[DType::F32]).body;
    assert!(
        divided.contains("float b = nxv_to_f32(int(0x3u ^ ZERO));"),
        "{divided}"
    );
    let raised = code("pow(0.5:f64, i0):f64", &[DType::F64]).body;
    let half = "packDouble2x32(uvec2(0x0u, 0x3fe00000u) ^ ZERO)";
    assert!(raised.contains(half), "{raised}");
    let kept = "v0 = packDouble2x32(unpackDouble2x32(nxv_to_f64(r)) ^ ZERO);";
    assert!(raised.contains(kept), "{raised}");
    let one = code("divide(i0, i0):f64", &[DType::F64]).body;
    let hidden = "double a = i0; double b = packDouble2x32(unpackDouble2x32(i0) ^ ZERO);";
    assert!(one.contains(hidden), "{one}");
}
