//! Reductions and arg reductions: values, edge cases, order.

use half::{bf16, f16};

use super::{DType, Random, Tensor, bytes_of, refusal, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::kernels::with_cores;

fn axes(axes: &[i64]) -> [Attr; 1] {
    [Attr::ints("axes", axes)]
}

fn choice(axis: &[i64], tie_break: &str) -> [Attr; 2] {
    [Attr::ints("axis", axis), Attr::text("tie_break", tie_break)]
}

fn counting(shape: &[u64]) -> Tensor {
    let count: u64 = shape.iter().product();
    tensor(shape, &(0..count as i32).collect::<Vec<_>>())
}

#[test]
fn sums_over_any_axes() {
    let x = counting(&[2, 3, 4]);
    assert_eq!(
        run::<i32>("sum", &[&x], &[3, 4], &axes(&[0])),
        [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34]
    );
    assert_eq!(
        run::<i32>("sum", &[&x], &[2, 4], &axes(&[1])),
        [12, 15, 18, 21, 48, 51, 54, 57]
    );
    assert_eq!(
        run::<i32>("sum", &[&x], &[2, 3], &axes(&[2])),
        [6, 22, 38, 54, 70, 86]
    );
    assert_eq!(
        run::<i32>("sum", &[&x], &[3], &axes(&[0, 2])),
        [60, 92, 124]
    );
    assert_eq!(run::<i32>("sum", &[&x], &[], &axes(&[0, 1, 2])), [276]);
    assert_eq!(
        run::<i32>("sum", &[&x], &[2, 1, 1], &axes(&[1, 2])),
        [66, 210]
    );
}

#[test]
fn integers_wrap_in_the_result_type() {
    assert_eq!(
        run::<u8>("sum", &[&vector(&[200u8, 100])], &[], &axes(&[0])),
        [44]
    );
    assert_eq!(
        run::<u64>("sum", &[&vector(&[200u8, 100])], &[], &axes(&[0])),
        [300]
    );
    assert_eq!(
        run::<i8>("product", &[&vector(&[-128i8, 3])], &[], &axes(&[0])),
        [-128]
    );
    assert_eq!(
        run::<u64>("sum", &[&vector(&[u64::MAX, 2])], &[], &axes(&[0])),
        [1]
    );
    assert_eq!(
        run::<i64>("product", &[&vector(&[i64::MAX, 2, -1])], &[], &axes(&[0])),
        [2]
    );
}

/// A running sum in the narrow type would stop growing.
#[test]
fn floats_accumulate_wider_than_they_are() {
    let ones = vec![f16::ONE; 4096];
    assert_eq!(
        run::<f16>("sum", &[&vector(&ones)], &[], &axes(&[0])),
        [f16::from_f32(4096.0)]
    );
    let ones = vec![bf16::ONE; 1000];
    assert_eq!(
        run::<bf16>("sum", &[&vector(&ones)], &[], &axes(&[0])),
        [bf16::from_f32(1000.0)]
    );
    let x = [1e8f32, 1.0, -1e8, 1.0];
    assert_eq!(run::<f32>("sum", &[&vector(&x)], &[], &axes(&[0])), [2.0]);
    assert_eq!(
        run::<f32>(
            "product",
            &[&vector(&[1e30f32, 1e30, 1e-30, 1e-30])],
            &[],
            &axes(&[0])
        ),
        [1.0]
    );
}

#[test]
fn extremes_spread_nan() {
    let x = tensor(
        &[2, 3],
        &[1.0f32, f32::NAN, 3.0, -1.0, f32::NEG_INFINITY, 2.0],
    );
    let largest: Vec<f32> = run("reduce_max", &[&x], &[2], &axes(&[1]));
    assert!(largest[0].is_nan() && largest[1] == 2.0);
    let smallest: Vec<f32> = run("reduce_min", &[&x], &[3], &axes(&[0]));
    assert!(smallest[0] == -1.0 && smallest[1].is_nan() && smallest[2] == 2.0);
    assert_eq!(
        run::<i8>("reduce_max", &[&vector(&[-128i8, -5])], &[], &axes(&[0])),
        [-5]
    );
    assert_eq!(
        run::<u64>(
            "reduce_min",
            &[&vector(&[u64::MAX, 1 << 63])],
            &[],
            &axes(&[0])
        ),
        [1 << 63]
    );
}

#[test]
fn truths() {
    let x = tensor(&[2, 2], &[f32::NAN, 1.0, 0.0, -0.0]);
    assert_eq!(run::<u8>("all", &[&x], &[2], &axes(&[1])), [1, 0]);
    assert_eq!(run::<u8>("any", &[&x], &[2], &axes(&[1])), [1, 0]);
    assert_eq!(run::<u8>("all", &[&x], &[2], &axes(&[0])), [0, 0]);
    assert_eq!(
        run::<u8>("any", &[&vector(&[0u64, 1 << 63])], &[], &axes(&[0])),
        [1]
    );
    assert_eq!(
        run::<u8>("any", &[&vector(&[0.0f64, 5e-324])], &[], &axes(&[0])),
        [1]
    );
}

#[test]
fn nothing_reduces_to_the_identity() {
    let empty = tensor::<f32>(&[2, 0], &[]);
    assert_eq!(run::<f32>("sum", &[&empty], &[2], &axes(&[1])), [0.0; 2]);
    assert_eq!(
        run::<f16>("product", &[&empty], &[2], &axes(&[1])),
        [f16::ONE; 2]
    );
    assert_eq!(run::<u8>("all", &[&empty], &[2], &axes(&[1])), [1; 2]);
    assert_eq!(run::<u8>("any", &[&empty], &[2], &axes(&[1])), [0; 2]);
    assert_eq!(
        run::<f32>("reduce_max", &[&empty], &[2], &axes(&[1])),
        [f32::NEG_INFINITY; 2]
    );
    assert_eq!(
        run::<f32>("reduce_min", &[&empty], &[2], &axes(&[1])),
        [f32::INFINITY; 2]
    );
    assert_eq!(
        run::<i16>("reduce_max", &[&tensor::<i16>(&[0], &[])], &[], &axes(&[0])),
        [i16::MIN]
    );
    assert_eq!(
        run::<u16>("reduce_min", &[&tensor::<u16>(&[0], &[])], &[], &axes(&[0])),
        [u16::MAX]
    );
    assert!(run::<f32>("sum", &[&empty], &[0], &axes(&[0])).is_empty());
    let chosen = bytes_of("argmax", &[&empty], DType::S32, &[2], &choice(&[1], "low"));
    assert!(refusal(chosen).contains("no elements"));
}

#[test]
fn arg_reductions_break_ties() {
    let x = tensor(&[2, 4], &[1i32, 5, 5, 0, 7, 7, 0, 0]);
    assert_eq!(
        run::<i32>("argmax", &[&x], &[2], &choice(&[1], "low")),
        [1, 0]
    );
    assert_eq!(
        run::<i32>("argmax", &[&x], &[2], &choice(&[1], "high")),
        [2, 1]
    );
    assert_eq!(
        run::<i64>("argmin", &[&x], &[2], &choice(&[1], "low")),
        [3, 2]
    );
    assert_eq!(run::<u8>("argmin", &[&x], &[1], &choice(&[], "high")), [7]);
    assert_eq!(
        run::<i32>("argmax", &[&x], &[4], &choice(&[0], "low")),
        [1, 1, 0, 0]
    );
    assert_eq!(run::<f32>("argmax", &[&x], &[], &choice(&[], "low")), [4.0]);
    assert_eq!(
        run::<i32>(
            "argmin",
            &[&vector(&[0.0f32, -0.0])],
            &[],
            &choice(&[0], "low")
        ),
        [0]
    );
    assert_eq!(
        run::<i32>(
            "argmin",
            &[&vector(&[0.0f32, -0.0])],
            &[],
            &choice(&[0], "high")
        ),
        [1]
    );
}

#[test]
fn the_last_nan_is_the_extreme() {
    let x = vector(&[2.0f32, f32::NAN, f32::INFINITY, f32::NAN, f32::NEG_INFINITY]);
    for op in ["argmax", "argmin"] {
        for tie_break in ["low", "high"] {
            assert_eq!(
                run::<i32>(op, &[&x], &[], &choice(&[0], tie_break)),
                [3],
                "{op} {tie_break}"
            );
        }
    }
}

/// More elements than one stretch, in rows, in columns and as a whole.
#[test]
fn many_elements() {
    let (rows, columns) = (1000u64, 300u64);
    let x: Vec<i64> = (0..(rows * columns) as i64)
        .map(|i| i * 7919 % 1001 - 500)
        .collect();
    let t = tensor(&[rows, columns], &x);
    let all: i64 = x.iter().sum();
    assert_eq!(run::<i64>("sum", &[&t], &[], &axes(&[0, 1])), [all]);
    let down: Vec<i64> = (0..300).map(|c| x[c..].iter().step_by(300).sum()).collect();
    assert_eq!(run::<i64>("sum", &[&t], &[columns], &axes(&[0])), down);
    let across: Vec<i64> = x.chunks(300).map(|row| row.iter().sum()).collect();
    assert_eq!(run::<i64>("sum", &[&t], &[rows], &axes(&[1])), across);
    let (first, last) = (
        x.iter().position(|x| *x == 500),
        x.iter().rposition(|x| *x == 500),
    );
    assert_eq!(
        run::<i64>("argmax", &[&t], &[], &choice(&[], "low")),
        [first.unwrap() as i64]
    );
    assert_eq!(
        run::<i64>("argmax", &[&t], &[], &choice(&[], "high")),
        [last.unwrap() as i64]
    );
    let largest: Vec<i64> = (0..300)
        .map(|c| *x[c..].iter().step_by(300).max().unwrap())
        .collect();
    assert_eq!(
        run::<i64>("reduce_max", &[&t], &[columns], &axes(&[0])),
        largest
    );
    let at: Vec<i32> = (0..300)
        .map(|c| {
            x[c..]
                .iter()
                .step_by(300)
                .position(|v| *v == largest[c])
                .unwrap() as i32
        })
        .collect();
    assert_eq!(
        run::<i32>("argmax", &[&t], &[columns], &choice(&[0], "low")),
        at
    );
}

#[test]
fn a_sum_does_not_depend_on_the_number_of_cores() {
    let mut random = Random(9);
    let x: Vec<f64> = (0..400_000)
        .map(|_| random.next() as f64 * 1e-3 - 9e15)
        .collect();
    let t = tensor(&[4, 100_000], &x);
    let sums = || {
        [axes(&[0, 1]).as_slice(), &axes(&[1])].map(|a| {
            bytes_of(
                "sum",
                &[&t],
                DType::F64,
                if a[0] == axes(&[1])[0] { &[4] } else { &[] },
                a,
            )
            .unwrap()
        })
    };
    let alone = with_cores(1, sums);
    for threads in [2, 5] {
        assert_eq!(with_cores(threads, sums), alone);
    }
}
