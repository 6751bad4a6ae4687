//! Reductions by an expression: values worked by hand, and folds of Rust's own arithmetic.

use half::bf16;

use super::{DType, Tensor, refusal, run, tensor, try_run, vector};
use nx_vulkan_ops::kernels::{Desc, check};
use nx_vulkan_ops::{attrs::Attr, error::Kind};

fn attrs(axes: &[i64], expression: &str) -> [Attr; 2] {
    [
        Attr::ints("axes", axes),
        Attr::text("expression", expression),
    ]
}

fn windows(expression: &str, window: &[i64], padding: &[i64], strides: &[i64]) -> [Attr; 5] {
    [
        Attr::text("expression", expression),
        Attr::ints("padding", padding),
        Attr::ints("strides", strides),
        Attr::ints("window", window),
        Attr::ints("window_dilations", vec![1; window.len()]),
    ]
}

#[test]
fn elements_are_taken_one_after_the_other() {
    let halved = "multiply(i0, 2:s32):f32; multiply(i1, 0.5:f32):f32; add(%0, %1):f32";
    let x = tensor(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let acc = tensor(&[], &[8f32]);
    // ((8/2 + 2)/2 + 4)/2 + 6 = 9.5, and ((8/2 + 8)/2 + 10)/2 + 12 = 20.
    assert_eq!(
        run::<f32>("reduce", &[&x, &acc], &[2], &attrs(&[1], halved)),
        [9.5, 20.0]
    );
    // (8/2 + 2)/2 + 8 = 11, (8/2 + 4)/2 + 10 = 14, (8/2 + 6)/2 + 12 = 17.
    assert_eq!(
        run::<f32>("reduce", &[&x, &acc], &[3], &attrs(&[0], halved)),
        [11.0, 14.0, 17.0]
    );
    let all = run::<f32>("reduce", &[&x, &acc], &[], &attrs(&[0, 1], halved));
    assert_eq!(all, [((9.5 / 2.0 + 8.0) / 2.0 + 10.0) / 2.0 + 12.0]);
    // 2 · 37 + 5 = 79 mod 10 = 9, 9 · 37 + 7 = 340 mod 10 = 0, 0 · 37 + 9 mod 10 = 9.
    let hash = "multiply(i1, 37:s64):s64; add(%0, i0):s64; remainder(%1, 10:s64):s64";
    let [x, acc] = [vector(&[5u8, 7, 9]), tensor(&[], &[2i64])];
    assert_eq!(
        run::<i64>("reduce", &[&x, &acc], &[], &attrs(&[0], hash)),
        [9]
    );
}

#[test]
fn the_order_of_elements_is_that_of_axes_in_any_layout() {
    let digits = "multiply(i1, 10:s32):s32; add(%0, i0):s32";
    let acc = tensor(&[], &[0i32]);
    let x = tensor(&[2, 2, 2], &[1i32, 2, 3, 4, 5, 6, 7, 8]);
    let reduced =
        |x: &Tensor, axes: &[i64]| run::<i32>("reduce", &[x, &acc], &[2], &attrs(axes, digits));
    assert_eq!(reduced(&x, &[0, 2]), [1256, 3478]);
    assert_eq!(reduced(&x, &[0, 1]), [1357, 2468]);
    let backwards = Tensor {
        strides: vec![-4, 1, 0],
        offset: 4,
        ..x
    };
    assert_eq!(reduced(&backwards, &[0, 2]), [5511, 6622]);
    let nothing = tensor::<i32>(&[2, 0], &[]);
    assert_eq!(reduced(&nothing, &[1]), [0, 0]);
}

#[test]
fn each_call_rounds_in_its_own_type() {
    // 1 + 2^-8 is halfway to the next bf16 and goes back to the even 1, as often as it is added.
    let x = vector(&[bf16::from_f32(0.00390625); 3]);
    let acc = tensor(&[], &[bf16::ONE]);
    let sum = |text: &str| run::<bf16>("reduce", &[&x, &acc], &[], &attrs(&[0], text));
    assert_eq!(sum("add(i0, i1):bf16"), [bf16::ONE]);
    // Twice that is a bf16.
    let wide = "add(i0, i0):f32; add(%0, i1):f32; as_type(%1):bf16";
    assert_eq!(sum(wide), [bf16::from_f32(1.0234375)]);
    // 200 + 100 wraps to 44, which is less than 100.
    let [x, acc] = [vector(&[100u8, 1]), tensor(&[], &[200u8])];
    let wraps = "add(i0, i1):u8; less(%0, i0):u8; select(%1, %0, 7:u8):u8";
    assert_eq!(
        run::<u8>("reduce", &[&x, &acc], &[], &attrs(&[0], wraps)),
        [7]
    );
    let first = vector(&[100u8]);
    assert_eq!(
        run::<u8>("reduce", &[&first, &acc], &[], &attrs(&[0], wraps)),
        [44]
    );
    // 2^24 + 1 is no f32, and greater than 2^24 nevertheless.
    let [x, acc] = [vector(&[16_777_217i64]), tensor(&[], &[16_777_216f32])];
    let exact = "greater(i0, i1):u8; select(%0, 1:s32, -1:s32):f32";
    assert_eq!(
        run::<f32>("reduce", &[&x, &acc], &[], &attrs(&[0], exact)),
        [1.0]
    );
}

#[test]
fn padding_is_the_accumulator_as_an_element() {
    let digits = "multiply(i1, 10:s32):s32; add(%0, i0):s32";
    let [x, acc] = [vector(&[1i32, 2, 3]), tensor(&[], &[9i32])];
    let of = |attrs: &[Attr], shape: &[u64]| run::<i32>("window_reduce", &[&x, &acc], shape, attrs);
    assert_eq!(of(&windows(digits, &[2], &[0, 0], &[1]), &[2]), [912, 923]);
    assert_eq!(
        of(&windows(digits, &[2], &[1, 1], &[1]), &[4]),
        [991, 912, 923, 939]
    );
    assert_eq!(of(&windows(digits, &[2], &[1, 0], &[2]), &[2]), [991, 923]);
    assert_eq!(of(&windows(digits, &[1], &[-1, 0], &[1]), &[2]), [92, 93]);
    let mut dilated = windows(digits, &[2], &[0, 0], &[1]);
    dilated[4] = Attr::ints("window_dilations", [2]);
    assert_eq!(of(&dilated, &[1]), [913]);
    // In the type of x: 300 is 44 of u8.
    let [x, acc] = [vector(&[1u8]), tensor(&[], &[300i32])];
    let padded = windows("add(i0, i1):s32", &[2], &[1, 0], &[1]);
    assert_eq!(
        run::<i32>("window_reduce", &[&x, &acc], &[1], &padded),
        [300 + 44 + 1]
    );
    let plane = tensor(&[2, 2], &[1i32, 2, 3, 4]);
    let square = windows(digits, &[2, 2], &[0; 4], &[1, 1]);
    let acc = tensor(&[], &[0i32]);
    assert_eq!(
        run::<i32>("window_reduce", &[&plane, &acc], &[1, 1], &square),
        [1234]
    );
}

#[test]
fn many_results_of_many_elements() {
    let (rows, columns) = (2500usize, 37);
    let mut random = super::Random(7);
    let x: Vec<i32> = (0..rows * columns).map(|_| random.next() as i32).collect();
    let of = |acc: i32, x: &i32| acc.wrapping_mul(31).wrapping_add(*x) % 1009;
    let expected: Vec<i32> = x
        .chunks(columns)
        .map(|row| row.iter().fold(1, of))
        .collect();
    let text = "multiply(i1, 31:s32):s32; add(%0, i0):s32; remainder(%1, 1009:s32):s32";
    let x = tensor(&[rows as u64, columns as u64], &x);
    let acc = tensor(&[], &[1i32]);
    let made = run::<i32>("reduce", &[&x, &acc], &[rows as u64], &attrs(&[1], text));
    assert_eq!(made, expected);
}

#[test]
fn what_has_no_result_is_told() {
    let [x, acc] = [vector(&[3i32, 0]), tensor(&[], &[7i32])];
    let divided = attrs(&[0], "remainder(i1, i0):s32");
    let error = try_run::<i32>("reduce", &[&x, &acc], &[], &divided).unwrap_err();
    assert_eq!(error.kind(), Kind::Arithmetic);
    assert!(error.to_string().contains("division by zero"), "{error}");
    let vector = super::bytes_of("reduce", &[&x, &x], DType::S32, &[], &divided);
    assert!(refusal(vector).contains("the accumulator must be a scalar"));
    let other = super::bytes_of("reduce", &[&x, &acc], DType::S64, &[], &divided);
    assert!(refusal(other).contains("the accumulator's type"));
    let huge = windows("add(i0, i1):s32", &[1 << 30], &[1 << 30, 1 << 30], &[1]);
    let shape = [(1u64 << 30) + 3];
    let desc = |shape| Desc {
        dtype: DType::S32,
        shape,
    };
    let error = check(
        "window_reduce",
        &[desc(&[2]), desc(&[])],
        &[desc(&shape)],
        &huge,
    );
    let error = error.unwrap_err();
    assert!(error.to_string().contains("take too long"), "{error}");
}
