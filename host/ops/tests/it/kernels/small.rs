//! Integers of 2 and 4 bits: every pair of values, by what the ops are among all integers.

use super::{DType, Tensor, bytes_of, vector};
use nx_vulkan_ops::attrs::Attr;

const TYPES: [(DType, i64, i64); 4] = [
    (DType::U2, 0, 3),
    (DType::U4, 0, 15),
    (DType::S2, -2, 1),
    (DType::S4, -8, 7),
];

fn small(dtype: DType, values: &[i64]) -> Tensor {
    let bytes: Vec<i8> = values.iter().map(|x| *x as i8).collect();
    Tensor {
        dtype,
        ..vector(&bytes)
    }
}

/// The one value of the type that differs from `x` by a multiple of its number of values.
fn wrapped((_, low, high): (DType, i64, i64), x: i64) -> i64 {
    low + (x - low).rem_euclid(high - low + 1)
}

fn values(bytes: Vec<u8>, low: i64) -> Vec<i64> {
    let signed = |byte: u8| i64::from(byte as i8);
    let value = |byte| if low < 0 { signed(byte) } else { byte.into() };
    bytes.into_iter().map(value).collect()
}

/// Checks the op on every pair for which `of` has a result.
fn pairs(op: &str, of: impl Fn(i64, i64, i64) -> Option<i64>) {
    for row @ (dtype, low, high) in TYPES {
        let bits = i64::from((high - low + 1).ilog2());
        let all = (low..=high).flat_map(|a| (low..=high).map(move |b| (a, b)));
        let cases: Vec<_> = all
            .filter_map(|(a, b)| Some((a, b, of(a, b, bits)?)))
            .collect();
        let a: Vec<i64> = cases.iter().map(|case| case.0).collect();
        let b: Vec<i64> = cases.iter().map(|case| case.1).collect();
        let (x, y) = (small(dtype, &a), small(dtype, &b));
        let got = bytes_of(op, &[&x, &y], dtype, &[a.len() as u64], &[]).unwrap();
        let expected: Vec<i64> = cases.iter().map(|case| wrapped(row, case.2)).collect();
        assert_eq!(values(got, low), expected, "{op} of {dtype}");
    }
}

#[test]
fn arithmetic_wraps_to_the_own_bits() {
    pairs("add", |a, b, _| Some(a + b));
    pairs("subtract", |a, b, _| Some(a - b));
    pairs("multiply", |a, b, _| Some(a * b));
    pairs("min", |a, b, _| Some(a.min(b)));
    pairs("max", |a, b, _| Some(a.max(b)));
    pairs("quotient", |a, b, _| a.checked_div(b));
    pairs("remainder", |a, b, _| a.checked_rem(b));
    pairs("pow", |a, b, _| {
        Some(a.wrapping_pow(u32::try_from(b).ok()?))
    });
    pairs("bitwise_and", |a, b, _| Some(a & b));
    pairs("bitwise_or", |a, b, _| Some(a | b));
    pairs("bitwise_xor", |a, b, _| Some(a ^ b));
    pairs("left_shift", |a, b, _| (b >= 0).then(|| a << b));
    pairs("right_shift", |a, b, bits| {
        (b >= 0).then(|| a >> b.min(bits))
    });
}

#[test]
fn functions_of_one_operand_see_the_own_bits() {
    let mask = |bits: i64| (1u64 << bits) - 1;
    let ones = |a: i64, bits| (a as u64 & mask(bits)).count_ones().into();
    let zeros = |a: i64, bits: i64| {
        let used = a as u64 & mask(bits);
        bits - (0..bits).rfind(|i| used >> i & 1 == 1).map_or(0, |i| i + 1)
    };
    type Function<'a> = &'a dyn Fn(i64, i64) -> i64;
    let all: [(&str, Function<'_>); 6] = [
        ("negate", &|a, _| -a),
        ("abs", &|a, _| a.abs()),
        ("sign", &|a, _| a.signum()),
        ("bitwise_not", &|a, _| !a),
        ("population_count", &ones),
        ("count_leading_zeros", &zeros),
    ];
    for (op, of) in all {
        for row @ (dtype, low, high) in TYPES {
            let bits = i64::from((high - low + 1).ilog2());
            let a: Vec<i64> = (low..=high).collect();
            let got = bytes_of(op, &[&small(dtype, &a)], dtype, &[a.len() as u64], &[]).unwrap();
            let expected: Vec<i64> = a.iter().map(|a| wrapped(row, of(*a, bits))).collect();
            assert_eq!(values(got, low), expected, "{op} of {dtype}");
        }
    }
}

#[test]
fn conversions_wrap_and_saturate() {
    let floats = [-1e9f32, -8.9, -2.5, -0.5, 1.9, 3.5, 100.0, f32::NAN];
    let integers = [-1000i64, -9, -1, 0, 5, 21, 1 << 40];
    for row @ (dtype, low, high) in TYPES {
        let got = bytes_of("as_type", &[&vector(&floats)], dtype, &[8], &[]).unwrap();
        let expected = floats.map(|x| (x as i64).clamp(low, high));
        assert_eq!(values(got, low), expected, "{dtype}");
        let got = bytes_of("as_type", &[&vector(&integers)], dtype, &[7], &[]).unwrap();
        assert_eq!(
            values(got, low),
            integers.map(|x| wrapped(row, x)),
            "{dtype}"
        );
        let ends = small(dtype, &[low, high]);
        let wide = bytes_of("as_type", &[&ends], DType::F32, &[2], &[]).unwrap();
        let expected = [low as f32, high as f32].map(f32::to_ne_bytes);
        assert_eq!(wide, expected.as_flattened(), "{dtype}");
    }
}

#[test]
fn reductions_sum_to_32_bits_and_start_at_the_own_bounds() {
    for (dtype, low, high) in TYPES {
        let x = small(dtype, &[high; 100]);
        let wide = if low < 0 { DType::S32 } else { DType::U32 };
        let axes = [Attr::ints("axes", [0])];
        let sum = bytes_of("sum", &[&x], wide, &[], &axes).unwrap();
        assert_eq!(sum, (100 * high as i32).to_ne_bytes(), "{dtype}");
        let none = small(dtype, &[]);
        for (op, bound) in [("reduce_max", low), ("reduce_min", high)] {
            let got = bytes_of(op, &[&none], dtype, &[], &axes).unwrap();
            assert_eq!(values(got, low), [bound], "{op} of {dtype}");
        }
    }
}
