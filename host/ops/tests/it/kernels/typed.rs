//! Functions of other types than f32 where they lie: with the bits of what others are compared with, and with those of Rust.

use super::places::{both, layouts};
use super::{Random, tensor};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::{Out, run, run_fast};

const TYPES: [DType; 9] = [
    DType::F64,
    DType::U8,
    DType::S8,
    DType::U16,
    DType::S16,
    DType::U32,
    DType::S32,
    DType::U64,
    DType::S64,
];

pub(super) const RELATIONS: [&str; 6] = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
];

#[test]
fn all_types_have_the_same_bits_however_they_lie() {
    let mut random = Random(31);
    let shape = [7, 301];
    for dtype in TYPES {
        for x in layouts(dtype, &shape, true, &mut random) {
            for op in ["abs", "negate", "sign", "round", "ceil", "floor"] {
                let [exact, fast] = both(op, &[&x], &[(dtype, &shape)], &[]);
                assert!(exact == fast, "{op} of {dtype}, {:?}", x.strides);
            }
            for y in layouts(dtype, &shape, true, &mut random) {
                for op in ["max", "min", "add", "subtract", "multiply"] {
                    let [exact, fast] = both(op, &[&x, &y], &[(dtype, &shape)], &[]);
                    assert!(
                        exact == fast,
                        "{op} of {dtype}, {:?}, {:?}",
                        x.strides,
                        y.strides
                    );
                }
                for op in RELATIONS {
                    let [exact, fast] = both(op, &[&x, &y], &[(DType::U8, &shape)], &[]);
                    assert!(
                        exact == fast,
                        "{op} of {dtype}, {:?}, {:?}",
                        x.strides,
                        y.strides
                    );
                }
                let pred = &layouts(DType::U8, &shape, true, &mut random)[0];
                let [exact, fast] = both("select", &[pred, &x, &y], &[(dtype, &shape)], &[]);
                assert!(exact == fast, "select of {dtype}, {:?}", x.strides);
                let [exact, fast] = both("clip", &[&x, &y, &x], &[(dtype, &shape)], &[]);
                assert!(exact == fast, "clip of {dtype}, {:?}", x.strides);
            }
        }
    }
}

#[test]
fn doubles_are_those_of_rust() {
    let ends = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.499_999_999_999_999_94,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        1e300,
        -1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        4_503_599_627_370_497.5,
    ];
    let pairs: Vec<(f64, f64)> = ends.iter().flat_map(|x| ends.map(|y| (*x, y))).collect();
    let [x, y]: [Vec<f64>; 2] = pairs.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>().into();
    let shape = [x.len() as u64];
    let (a, b) = (tensor(&shape, &x), tensor(&shape, &y));
    let check = |op: &str, got: &[u8], want: &dyn Fn(f64, f64) -> f64| {
        let got = got.as_chunks().0.iter().map(|z| f64::from_ne_bytes(*z));
        for (got, (x, y)) in got.zip(&pairs) {
            let want = want(*x, *y);
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "{op} of {x:e}, {y:e}: {got:e} for {want:e}");
        }
    };
    type Unary = fn(f64) -> f64;
    let unary: [(&str, Unary); 6] = [
        ("abs", f64::abs),
        ("negate", |x| -x),
        ("round", f64::round),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("sqrt", f64::sqrt),
    ];
    for (op, f) in unary {
        let [exact, fast] = both(op, &[&a], &[(DType::F64, &shape)], &[]);
        check(op, &exact[0], &|x, _| f(x));
        check(op, &fast[0], &|x, _| f(x));
    }
    type Binary = fn(f64, f64) -> f64;
    let binary: [(&str, Binary); 4] = [
        ("add", |x, y| x + y),
        ("subtract", |x, y| x - y),
        ("multiply", |x, y| x * y),
        ("divide", |x, y| x / y),
    ];
    for (op, f) in binary {
        let [exact, fast] = both(op, &[&a, &b], &[(DType::F64, &shape)], &[]);
        check(op, &exact[0], &f);
        check(op, &fast[0], &f);
        // One number of another type.
        let half = tensor(&[], &[0.5f32]);
        let three = tensor(&[], &[-3i32]);
        for (one, number) in [(&half, 0.5), (&three, -3.0)] {
            let [exact, fast] = both(op, &[&a, one], &[(DType::F64, &shape)], &[]);
            check(op, &exact[0], &|x, _| f(x, number));
            check(op, &fast[0], &|x, _| f(x, number));
        }
    }
}

#[test]
fn powers_of_integers_wrap() {
    let mut random = Random(37);
    let x: Vec<i64> = (0..3000).map(|_| random.next() as i64).collect();
    let shape = [3000];
    let a = tensor(&shape, &x);
    let outs = [(DType::S64, &shape[..])];
    for exponent in [0u8, 1, 2, 3, 5, 63, 200] {
        let one = tensor(&[], &[exponent]);
        let [exact, fast] = both("pow", &[&a, &one], &outs, &[]);
        let want = x.iter().map(|x| x.wrapping_pow(exponent.into()));
        let want: Vec<u8> = want.flat_map(i64::to_ne_bytes).collect();
        assert!(exact[0] == want && fast[0] == want, "{exponent}");
    }
    let mut exponents: Vec<i64> = (0..3000).map(|index| index % 70).collect();
    let b = tensor(&shape, &exponents);
    let [exact, fast] = both("pow", &[&a, &b], &outs, &[]);
    let pairs = x.iter().zip(&exponents);
    let want = pairs.map(|(x, y)| x.wrapping_pow(*y as u32));
    let want: Vec<u8> = want.flat_map(i64::to_ne_bytes).collect();
    assert!(exact[0] == want && fast[0] == want);
    exponents[2500] = -1;
    let (b, one) = (tensor(&shape, &exponents), tensor(&[], &[-1i32]));
    for exponents in [&b, &one] {
        for kernel in [run, run_fast] {
            let mut bytes = vec![0; 24_000];
            let mut out = [Out {
                dtype: DType::S64,
                shape: &shape,
                bytes: &mut bytes,
            }];
            let error = kernel("pow", &[a.view(), exponents.view()], &mut out, &[]);
            let text = error.unwrap_err().to_string();
            assert!(text.contains("a negative exponent"), "{text}");
        }
    }
}
