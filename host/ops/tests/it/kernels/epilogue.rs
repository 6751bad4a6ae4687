//! Products with an epilogue: what they are, in numbers that are computed here, and what is no epilogue.

use super::{Sample, Tensor, tensor, try_run};
use half::{bf16, f16};
use nx_vulkan_ops::attrs::Attr;

fn attrs(epilogue: &str) -> Vec<Attr> {
    vec![
        Attr::ints("batch_a", []),
        Attr::ints("batch_b", []),
        Attr::ints("contract_a", [1]),
        Attr::ints("contract_b", [0]),
        Attr::text("epilogue", epilogue),
    ]
}

fn dot<S: Sample>(operands: &[&Tensor], epilogue: &str) -> Result<Vec<S>, String> {
    let shape = [operands[0].shape[0], operands[1].shape[1]];
    let got = try_run("dot", operands, &shape, &attrs(epilogue));
    got.map_err(|error| error.to_string())
}

#[test]
fn sums_are_finished_in_f32_and_rounded_once() {
    // 1 + 2^-11 is no f16: rounded before the subtraction it would be 1, and the result 0.
    let a = tensor(&[1, 2], &[1.0, 1.0].map(f16::from_f32));
    let b = tensor(&[2, 1], &[1.0, 2f32.powi(-11)].map(f16::from_f32));
    let one = tensor(&[], &[1.0f32]);
    let got = dot::<f16>(&[&a, &b, &one], "subtract(x, i2)").unwrap();
    assert_eq!(got, [f16::from_f32(2f32.powi(-11))]);
    let wide = dot::<f32>(&[&a, &b], "multiply(x, 0.5)").unwrap();
    assert_eq!(wide, [0.5 + 2f32.powi(-12)]);
}

#[test]
fn operands_broadcast_and_values_are_shared() {
    let a = tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let b = tensor(&[2, 2], &[1.0f32, 0.0, 0.0, -1.0]);
    let (row, column) = (
        tensor(&[2], &[0.5f32, -0.5]),
        tensor(&[2, 1], &[10.0f32, 100.0]),
    );
    let text = "add(x, i2); multiply(%0, i3); max(%1, 0); greater(%2, 20); select(%3, %0, %2)";
    let got = dot::<f32>(&[&a, &b, &row, &column], text).unwrap();
    // x + row: 1.5, -2.5; 3.5, -4.5. Times column: 15, -25; 350, -450.
    assert_eq!(got, [15.0, 0.0, 3.5, 0.0]);
}

#[test]
fn bytes_are_summed_as_integers_and_scaled_as_floats() {
    let a = tensor(&[1, 3], &[100i8, 100, 100]);
    let b = tensor(&[3, 2], &[100i8, 1, 100, 1, 100, -3]);
    let scale = tensor(&[2], &[0.001f32, 0.25]);
    let got = dot::<i8>(
        &[&a, &b, &scale],
        "multiply(x, i2); round(%0); clip(%1, -10, 127)",
    );
    assert_eq!(got.unwrap(), [30, -10]);
    let bias = tensor(&[2], &[1i32, -1]);
    let whole = dot::<i32>(&[&a, &b, &bias], "add(x, i2); multiply(%0, 2)");
    assert_eq!(whole.unwrap(), [60_002, -202]);
    let halves = tensor(&[2], &[bf16::from_f32(0.5); 2]);
    let float = dot::<f32>(&[&a, &b, &halves], "multiply(x, i2)");
    assert_eq!(float.unwrap(), [15_000.0, -50.0]);
}

#[test]
fn what_is_no_epilogue_is_refused_by_name() {
    let a = tensor(&[2, 2], &[1.0f32; 4]);
    let row = tensor(&[2], &[1.0f32; 2]);
    let whole = tensor(&[2, 2], &[1i32; 4]);
    let three = tensor(&[3], &[1.0f32; 3]);
    fn refused<S: Sample>(operands: &[&Tensor], text: &str, told: &str) {
        let error = dot::<S>(operands, text).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
    let f32s = |text, told| refused::<f32>(&[&a, &a, &row], text, told);
    f32s("dot(x, i2)", "dot is no elementwise op");
    f32s("as_type(x); add(%0, i2)", "as_type is no elementwise op");
    f32s("add(x, i2", "expected a call such as");
    f32s("add(x, i2, 1)", "add takes 2 operands, got 3");
    f32s("exp(x)", "nothing uses i2");
    f32s("add(x, i3)", "it uses i3, and the request has only i2");
    f32s(
        "bitwise_and(x, i2)",
        "`bitwise_and(x, i2)` is for integers, and this epilogue is computed in f32",
    );
    refused::<f32>(
        &[&a, &a, &three],
        "add(x, i2)",
        "i2, f32[3], does not broadcast to the result, [2, 2]",
    );
    let s32s = |text, told| refused::<i32>(&[&whole, &whole], text, told);
    s32s("exp(x)", "`exp(x)` is for floats");
    s32s("quotient(x, 2)", "has no result for some integers");
    s32s(
        "multiply(x, 0.5)",
        "has the number 0.5, and this epilogue is computed in s32",
    );
    let error = try_run::<f32>("dot", &[&a, &a, &row], &[2, 2], &attrs("")[..4]).unwrap_err();
    assert!(error.to_string().contains("without an epilogue"), "{error}");
}
