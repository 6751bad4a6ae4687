//! Fourier transforms against numpy 2.4.6's results, and against their definition.

use super::{Tensor, bytes_of, refusal, tensor, vector};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::attrs::Attr;

const X: [f64; 7] = [1.5, -2.0, 0.25, 3.0, -1.0, 0.5, 4.0];

fn attrs(axis: i64, length: i64, eps: f64) -> Vec<Attr> {
    vec![
        Attr::ints("axis", [axis]),
        Attr::float("eps", eps),
        Attr::ints("length", [length]),
    ]
}

/// Real and imaginary parts in turn, of a c128.
fn floats(op: &str, x: &Tensor, dtype: DType, shape: &[u64], attrs: &[Attr]) -> Vec<f64> {
    let bytes = bytes_of(op, &[x], dtype, shape, attrs).unwrap();
    let cells = bytes.as_chunks().0.iter();
    cells.map(|cell| f64::from_ne_bytes(*cell)).collect()
}

fn complex(shape: &[u64], parts: &[f64]) -> Tensor {
    let half = shape.iter().product::<u64>() as usize;
    assert_eq!(parts.len(), 2 * half);
    Tensor {
        dtype: DType::C128,
        shape: shape.to_vec(),
        strides: nx_vulkan_abi::layout::contiguous_strides(shape),
        ..vector(parts)
    }
}

#[track_caller]
fn near(got: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(got.len(), expected.len());
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let apart = (got - expected).abs();
        assert!(apart <= bound, "{index}: {got} is not {expected}");
    }
}

#[test]
fn transforms_are_those_of_numpy() {
    let x = vector(&X);
    let fft = floats("fft", &x, DType::C128, &[7], &attrs(0, 7, 0.0));
    let expected = [
        6.25,
        0.0,
        0.77815117,
        3.19918592,
        1.62621108,
        8.86842247,
        -0.27936225,
        -1.49186708,
        -0.27936225,
        1.49186708,
        1.62621108,
        -8.86842247,
        0.77815117,
        -3.19918592,
    ];
    near(&fft, &expected, 1e-8);
    let ifft = floats("ifft", &x, DType::C128, &[7], &attrs(0, 7, 0.0));
    let expected = [
        0.89285714,
        0.0,
        0.11116445,
        -0.45702656,
        0.23231587,
        -1.2669175,
        -0.03990889,
        0.21312387,
        -0.03990889,
        -0.21312387,
        0.23231587,
        1.2669175,
        0.11116445,
        0.45702656,
    ];
    near(&ifft, &expected, 1e-8);
    let rfft = floats("Nx.Block.RFFT", &x, DType::C128, &[5], &attrs(0, 8, 0.0));
    let expected = [
        6.25,
        0.0,
        -1.3890873,
        3.39644661,
        -3.75,
        4.5,
        6.3890873,
        -4.10355339,
        3.25,
        0.0,
    ];
    near(&rfft, &expected, 1e-8);
    let half = complex(&[4], &[3.0, 0.0, 1.0, -2.0, 0.5, 1.0, -1.0, 0.25]);
    let irfft = floats("Nx.Block.IRFFT", &half, DType::F64, &[7], &attrs(0, 7, 0.0));
    let expected = [
        0.57142857,
        0.96956066,
        0.79505779,
        0.72547541,
        -0.07787715,
        -0.67876932,
        0.69512402,
    ];
    near(&irfft, &expected, 1e-8);
    let half = complex(&[4], &[3.0, 1.0, 1.0, -2.0, 0.5, 1.0, -1.0, 0.25]);
    let irfft = floats("Nx.Block.IRFFT", &half, DType::F64, &[6], &attrs(0, 6, 0.0));
    let expected = [
        0.83333333,
        1.03867513,
        0.94935874,
        0.5,
        -0.78269207,
        0.46132487,
    ];
    near(&irfft, &expected, 1e-8);
    let plane = tensor(&[2, 3], &[0i32, 1, 4, 9, 16, 25]);
    let axes = [
        Attr::ints("axes", [0, 1]),
        Attr::float("eps", 0.0),
        Attr::ints("lengths", [2, 3]),
    ];
    let fft2 = floats("Nx.Block.FFT2", &plane, DType::C128, &[2, 3], &axes);
    let expected = [
        55.0,
        0.0,
        -14.0,
        10.39230485,
        -14.0,
        -10.39230485,
        -45.0,
        0.0,
        9.0,
        -5.19615242,
        9.0,
        5.19615242,
    ];
    near(&fft2, &expected, 1e-8);
}

#[test]
fn every_length_is_the_sum_that_it_is_defined_as() {
    for length in (1..=40).chain([64, 97, 128, 143, 210, 2 * 37, 3 * 41, 1009]) {
        let value = |i: usize| ((i * 7 % 11) as f64 - 5.0, (i * i % 13) as f64 - 6.0);
        let parts: Vec<f64> = (0..length)
            .flat_map(|i| <[f64; 2]>::from(value(i)))
            .collect();
        let shape = [length as u64];
        let x = complex(&shape, &parts);
        for (op, sign, scale) in [("fft", -1.0, 1.0), ("ifft", 1.0, 1.0 / length as f64)] {
            let got = floats(op, &x, DType::C128, &shape, &attrs(0, length as i64, 0.0));
            let element = |k: usize| {
                let (mut re, mut im) = (0.0, 0.0);
                for j in 0..length {
                    let turn = (j * k % length) as f64 / length as f64;
                    let (sin, cos) = (sign * turn * std::f64::consts::TAU).sin_cos();
                    let (a, b) = value(j);
                    (re, im) = (re + a * cos - b * sin, im + a * sin + b * cos);
                }
                [re * scale, im * scale]
            };
            let expected: Vec<f64> = (0..length).flat_map(element).collect();
            near(&got, &expected, 1e-12 * length as f64);
        }
    }
}

#[test]
fn rows_are_cut_and_go_on_with_zeros_along_any_axis_of_any_view() {
    let x = tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let turned = Tensor {
        shape: vec![3, 2],
        strides: vec![1, 3],
        ..x.clone()
    };
    let of = |op, x: &Tensor, axis, length, shape: &[u64]| {
        let bytes = bytes_of(op, &[x], DType::C64, shape, &attrs(axis, length, 0.0)).unwrap();
        let cells = bytes.as_chunks().0.iter();
        cells
            .map(|cell| f32::from_ne_bytes(*cell))
            .collect::<Vec<_>>()
    };
    let expected = [3.0, 0.0, -1.0, 0.0, 9.0, 0.0, -1.0, 0.0];
    assert_eq!(of("fft", &x, 1, 2, &[2, 2]), expected);
    let expected = [3.0, 0.0, 9.0, 0.0, -1.0, 0.0, -1.0, 0.0];
    assert_eq!(of("fft", &turned, 0, 2, &[2, 2]), expected);
    let four = of("fft", &turned, 1, 4, &[3, 4]);
    assert_eq!(four[..8], [5.0, 0.0, 1.0, -4.0, -3.0, 0.0, 1.0, 4.0]);
}

#[test]
fn rows_along_an_axis_that_is_not_the_last_are_those_along_the_last() {
    // One block of columns, and several.
    for outer in [1u32, 2] {
        let (own, inner) = (6, 37);
        let values: Vec<f64> = (0..outer * own * inner)
            .map(|i| f64::from(i * i % 97))
            .collect();
        let shape = [outer, own, inner].map(u64::from);
        let along = floats(
            "fft",
            &tensor(&shape, &values),
            DType::C128,
            &[u64::from(outer), 5, 37],
            &attrs(1, 5, 0.0),
        );
        for (o, i) in (0..outer as usize).flat_map(|o| (0..37).map(move |i| (o, i))) {
            let row: Vec<f64> = (0..6).map(|k| values[(o * 6 + k) * 37 + i]).collect();
            let alone = floats("fft", &vector(&row), DType::C128, &[5], &attrs(0, 5, 0.0));
            let cells = (0..5).map(|k| 2 * ((o * 5 + k) * 37 + i));
            let own: Vec<f64> = cells.flat_map(|at| [along[at], along[at + 1]]).collect();
            assert_eq!(own, alone, "{o} {i}");
        }
    }
}

#[test]
fn rows_of_an_empty_axis_are_zeros() {
    let x = |shape: &[u64]| tensor::<f64>(shape, &[]);
    for (shape, axis, out) in [([2, 0, 3], 1, [2, 4, 3]), ([2, 3, 0], 2, [2, 3, 4])] {
        let got = floats("fft", &x(&shape), DType::C128, &out, &attrs(axis, 4, 0.0));
        assert_eq!(got, vec![0.0; 2 * out.iter().product::<u64>() as usize]);
    }
}

#[test]
fn parts_of_at_most_eps_are_zero() {
    let x = vector(&[1.0f64, 1e-3, 0.0, 0.0]);
    let got = floats("fft", &x, DType::C128, &[4], &attrs(0, 4, 1e-3));
    assert_eq!(got, [1.001, 0.0, 1.0, 0.0, 0.999, 0.0, 1.0, 0.0]);
}

#[test]
fn what_is_no_transform_is_refused() {
    let x = vector(&X);
    let of = |op, dtype, shape: &[u64], attrs: &[Attr]| {
        refusal(bytes_of(op, &[&x], dtype, shape, attrs))
    };
    for (why, op, dtype, shape, attrs) in [
        ("names axis 1", "fft", DType::C128, [7], attrs(1, 7, 0.0)),
        ("positive", "fft", DType::C128, [0], attrs(0, 0, 0.0)),
        ("must be [8]", "fft", DType::C128, [7], attrs(0, 8, 0.0)),
        (
            "complex, not f64",
            "ifft",
            DType::F64,
            [7],
            attrs(0, 7, 0.0),
        ),
        ("complex, not s32", "fft", DType::S32, [7], attrs(0, 7, 0.0)),
        (
            "must be a float",
            "Nx.Block.IRFFT",
            DType::S32,
            [7],
            attrs(0, 7, 0.0),
        ),
        (
            "a float, not c64",
            "Nx.Block.IRFFT",
            DType::C64,
            [7],
            attrs(0, 7, 0.0),
        ),
        (
            "attribute eps",
            "fft",
            DType::C64,
            [7],
            attrs(0, 7, 0.0)[..1].to_vec(),
        ),
        (
            "different axes",
            "Nx.Block.FFT2",
            DType::C64,
            [7],
            attrs(0, 7, 0.0),
        ),
    ] {
        let message = of(op, dtype, &shape, &attrs);
        assert!(message.contains(why) && message.contains(op), "{message}");
    }
}
