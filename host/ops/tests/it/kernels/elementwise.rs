//! Values of the elementwise ops, where they are exact.

use half::{bf16, f16};

use super::{DType, binary, bytes_of, refusal, run, tensor, try_run, unary, vector};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Compares bits, so that zeros differ by their sign; all NaN are alike.
#[track_caller]
fn same(got: &[f32], expected: &[f32]) {
    let bits = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    let alike = got.iter().map(bits).eq(expected.iter().map(bits));
    assert!(alike, "got {got:?}, expected {expected:?}");
}

#[test]
fn integers_wrap() {
    assert_eq!(binary::<u8, u8, u8>("add", &[255, 200], &[1, 100]), [0, 44]);
    assert_eq!(
        binary::<i8, i8, i8>("multiply", &[127, -128], &[2, -1]),
        [-2, -128]
    );
    assert_eq!(
        binary::<i64, i64, i64>("subtract", &[i64::MIN], &[1]),
        [i64::MAX]
    );
    assert_eq!(unary::<u16, u16>("negate", &[1, 0]), [65535, 0]);
    assert_eq!(unary::<i32, i32>("negate", &[i32::MIN, 5]), [i32::MIN, -5]);
    assert_eq!(unary::<i8, i8>("abs", &[-128, -3, 3]), [-128, 3, 3]);
    assert_eq!(
        binary::<u64, u64, u64>("multiply", &[u64::MAX], &[u64::MAX]),
        [1]
    );
}

#[test]
fn mixed_types_convert_to_the_result_type() {
    assert_eq!(
        binary::<u8, i32, i32>("subtract", &[3, 255], &[-1, 256]),
        [4, -1]
    );
    assert_eq!(
        binary::<i64, f32, f32>("add", &[16_777_217], &[0.0]),
        [16_777_216.0]
    );
    assert_eq!(binary::<u8, i8, i16>("multiply", &[255], &[-128]), [-32640]);
    assert_eq!(
        binary::<bf16, f16, f32>("add", &[bf16::from_f32(1.0)], &[f16::from_f32(0.25)]),
        [1.25]
    );
}

#[test]
fn quotient_and_remainder_truncate() {
    assert_eq!(
        binary::<i32, i32, i32>("quotient", &[7, -7, 7, -7], &[2, 2, -2, -2]),
        [3, -3, -3, 3]
    );
    assert_eq!(
        binary::<i32, i32, i32>("remainder", &[7, -7, 7, -7], &[2, 2, -2, -2]),
        [1, -1, 1, -1]
    );
    assert_eq!(
        binary::<i64, i64, i64>("quotient", &[i64::MIN], &[-1]),
        [i64::MIN]
    );
    assert_eq!(
        binary::<i64, i64, i64>("remainder", &[i64::MIN], &[-1]),
        [0]
    );
    same(
        &binary(
            "remainder",
            &[5.5f32, -5.5, 5.5, 1.0],
            &[2.0f32, 2.0, -2.0, INF],
        ),
        &[1.5, -1.5, 1.5, 1.0],
    );
    same(
        &binary("remainder", &[1.0f32, INF, -0.0], &[0.0f32, 2.0, 2.0]),
        &[NAN, NAN, -0.0],
    );
    for op in ["quotient", "remainder"] {
        let divided = bytes_of(
            op,
            &[&vector(&[1i32, 2]), &vector(&[1i32, 0])],
            DType::S32,
            &[2],
            &[],
        );
        assert!(refusal(divided).contains("division by zero"));
    }
}

#[test]
fn powers() {
    assert_eq!(
        binary::<i32, i32, i32>("pow", &[2, -3, 0, 7, 2], &[10, 3, 0, 1, 32]),
        [1024, -27, 1, 7, 0]
    );
    assert_eq!(
        binary::<u8, u8, u8>("pow", &[3, 255], &[6, 255]),
        [217, 255]
    );
    assert_eq!(
        binary::<u64, u64, u64>("pow", &[3], &[u64::MAX]),
        [12297829382473034411]
    );
    same(
        &binary(
            "pow",
            &[2.0f32, -8.0, 0.0, NAN, 0.5],
            &[0.5f32, 3.0, -1.0, 0.0, INF],
        ),
        &[2f32.sqrt(), -512.0, INF, 1.0, 0.0],
    );
    let negative = bytes_of(
        "pow",
        &[&vector(&[2i32]), &vector(&[-1i32])],
        DType::S32,
        &[1],
        &[],
    );
    assert!(refusal(negative).contains("negative exponent"));
}

#[test]
fn shifts_by_the_width_and_more() {
    assert_eq!(
        binary::<u8, u8, u8>("left_shift", &[1, 1, 255, 1], &[7, 8, 4, 255]),
        [128, 0, 240, 0]
    );
    assert_eq!(
        binary::<i8, i8, i8>("right_shift", &[-128, -128, 64, 64], &[7, 100, 6, 8]),
        [-1, -1, 1, 0]
    );
    assert_eq!(
        binary::<u32, u32, u32>("right_shift", &[u32::MAX; 3], &[31, 32, u32::MAX]),
        [1, 0, 0]
    );
    assert_eq!(
        binary::<i64, i64, i64>("left_shift", &[1, -1], &[63, 1 << 40]),
        [i64::MIN, 0]
    );
    let negative = bytes_of(
        "left_shift",
        &[&vector(&[2i32]), &vector(&[-1i32])],
        DType::S32,
        &[1],
        &[],
    );
    assert!(refusal(negative).contains("shift amount"));
}

#[test]
fn bits() {
    assert_eq!(
        binary::<u8, u8, u8>("bitwise_and", &[0b1100], &[0b1010]),
        [0b1000]
    );
    assert_eq!(binary::<i16, i16, i16>("bitwise_or", &[-2], &[1]), [-1]);
    assert_eq!(binary::<i8, u8, i16>("bitwise_xor", &[-1], &[255]), [-256]);
    assert_eq!(unary::<i8, i8>("bitwise_not", &[0, -1, 5]), [-1, 0, -6]);
    assert_eq!(
        unary::<i8, i8>("count_leading_zeros", &[0, 1, -1]),
        [8, 7, 0]
    );
    assert_eq!(
        unary::<u64, u64>("count_leading_zeros", &[0, 1 << 40]),
        [64, 23]
    );
    assert_eq!(
        unary::<i32, i32>("population_count", &[-1, 0, 6]),
        [32, 0, 2]
    );
}

#[test]
fn rounding_goes_half_away_from_zero() {
    let x = [-2.5f32, -1.5, -0.5, 0.5, 1.5, 2.5, 0.499_999_97, NAN, -INF];
    same(
        &unary("round", &x),
        &[-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 0.0, NAN, -INF],
    );
    same(&unary("ceil", &[1.2f32, -1.2, NAN]), &[2.0, -1.0, NAN]);
    same(&unary("floor", &[1.2f32, -1.2, INF]), &[1.0, -2.0, INF]);
    assert_eq!(unary::<i32, i32>("round", &[-7, 7]), [-7, 7]);
    assert_eq!(unary::<u64, u64>("floor", &[u64::MAX]), [u64::MAX]);
}

#[test]
fn signs() {
    same(
        &unary("sign", &[-INF, -1e-40, -0.0, 0.0, 3.0, NAN]),
        &[-1.0, -1.0, -0.0, 0.0, 1.0, NAN],
    );
    same(&unary("abs", &[-0.0f32, -INF, NAN]), &[0.0, INF, NAN]);
    same(&unary("negate", &[0.0f32, -INF]), &[-0.0, INF]);
    assert_eq!(unary::<i8, i8>("sign", &[-128, 0, 127]), [-1, 0, 1]);
    assert_eq!(unary::<u8, u8>("sign", &[0, 200]), [0, 1]);
}

#[test]
fn minimum_and_maximum_spread_nan() {
    let (a, b) = ([1.0f32, NAN, 1.0, -INF, NAN], [2.0f32, 1.0, NAN, INF, NAN]);
    same(&binary("max", &a, &b), &[2.0, NAN, NAN, INF, NAN]);
    same(&binary("min", &a, &b), &[1.0, NAN, NAN, -INF, NAN]);
    assert_eq!(binary::<u8, i8, i16>("max", &[200], &[-1]), [200]);
}

#[test]
fn comparisons() {
    let (a, b) = ([1.0f32, NAN, 0.0, INF], [2.0f32, NAN, -0.0, INF]);
    for (op, expected) in [
        ("equal", [0, 0, 1, 1]),
        ("not_equal", [1, 1, 0, 0]),
        ("less", [1, 0, 0, 0]),
        ("less_equal", [1, 0, 1, 1]),
        ("greater", [0, 0, 0, 0]),
        ("greater_equal", [0, 0, 1, 1]),
    ] {
        assert_eq!(binary::<f32, f32, u8>(op, &a, &b), expected, "{op}");
    }
    assert_eq!(binary::<u8, i8, u8>("greater", &[255], &[-1]), [1]);
    assert_eq!(binary::<u32, i32, u8>("greater", &[u32::MAX], &[-1]), [1]);
    assert_eq!(
        binary::<i64, f32, u8>("equal", &[16_777_217], &[16_777_216.0f32]),
        [0]
    );
    assert_eq!(
        binary::<u64, i32, u8>("greater", &[u64::MAX, 1 << 63, 3], &[5, -1, 5]),
        [1, 1, 0]
    );
    assert_eq!(
        binary::<i64, i64, u8>("equal", &[(1 << 53) + 1], &[1 << 53]),
        [0]
    );
    assert_eq!(
        binary::<bf16, f16, u8>("less", &[bf16::from_f32(1.0)], &[f16::from_f32(1.0009766)]),
        [1]
    );
}

#[test]
fn nan_is_true() {
    let (a, b) = ([NAN, 0.0, 1e-45, -0.0], [0u8, 1, 1, 0]);
    assert_eq!(binary::<f32, u8, u8>("logical_and", &a, &b), [0, 0, 1, 0]);
    assert_eq!(binary::<f32, u8, u8>("logical_or", &a, &b), [1, 1, 1, 0]);
    assert_eq!(binary::<f32, u8, u8>("logical_xor", &a, &b), [1, 1, 0, 0]);
    let chosen: Vec<i32> = run(
        "select",
        &[&vector(&a), &vector(&[1i32; 4]), &vector(&b)],
        &[4],
        &[],
    );
    assert_eq!(chosen, [1, 1, 1, 0]);
    assert_eq!(unary::<f32, u8>("is_nan", &[NAN, INF, 0.0]), [1, 0, 0]);
    assert_eq!(
        unary::<f32, u8>("is_infinity", &[NAN, INF, -INF]),
        [0, 1, 1]
    );
    assert_eq!(
        unary::<f16, u8>("is_infinity", &[f16::INFINITY, f16::MAX]),
        [1, 0]
    );
    assert_eq!(unary::<i32, u8>("is_nan", &[-1, i32::MIN]), [0, 0]);
}

#[test]
fn clipping() {
    let clip = |x: &[f32], low: f32, high: f32| -> Vec<f32> {
        run(
            "clip",
            &[&vector(x), &tensor(&[], &[low]), &tensor(&[], &[high])],
            &[x.len() as u64],
            &[],
        )
    };
    same(
        &clip(&[-5.0, 0.5, 5.0, NAN, INF], 0.0, 1.0),
        &[0.0, 0.5, 1.0, NAN, 1.0],
    );
    same(&clip(&[0.5], 2.0, 1.0), &[1.0]);
    let mixed: Vec<i16> = run(
        "clip",
        &[
            &vector(&[200u8, 3]),
            &tensor(&[], &[-1i8]),
            &tensor(&[], &[100i8]),
        ],
        &[2],
        &[],
    );
    assert_eq!(mixed, [100, 3]);
}

#[test]
fn many_elements_come_out_in_order() {
    let x: Vec<i32> = (0..100_003).collect();
    let doubled: Vec<i32> = x.iter().map(|x| x * 2).collect();
    assert_eq!(binary::<i32, i32, i32>("add", &x, &x), doubled);
    let roots: Vec<f32> = unary("sqrt", &x);
    assert!(
        roots
            .iter()
            .zip(&x)
            .all(|(root, x)| *root == (*x as f32).sqrt())
    );
}

/// The failing element is in a block that another core works on.
#[test]
fn one_zero_among_many_divisors_is_found() {
    let mut b = vec![1i32; 100_000];
    b[99_999] = 0;
    assert!(try_run::<i32>("quotient", &[&vector(&b), &vector(&b)], &[100_000], &[]).is_err());
}
