//! `as_type`, copies and creation: values and roundings.

use half::{bf16, f16};

use super::{DType, binary, bytes_of, run, unary};
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::kernels::{Out, View};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn conversions() {
    assert_eq!(
        unary::<f32, u8>("as_type", &[1.9, -1.9, 300.0, NAN, INF, -INF]),
        [1, 0, 255, 0, 255, 0]
    );
    assert_eq!(
        unary::<f32, i32>("as_type", &[-1.9, 3e9, -INF]),
        [-1, i32::MAX, i32::MIN]
    );
    assert_eq!(unary::<f64, u64>("as_type", &[1e20, -1.0]), [u64::MAX, 0]);
    assert_eq!(unary::<i32, u8>("as_type", &[-1, 256, 300]), [255, 0, 44]);
    assert_eq!(unary::<i8, u64>("as_type", &[-1]), [u64::MAX]);
    assert_eq!(
        unary::<i64, f32>("as_type", &[16_777_219, i64::MAX]),
        [16_777_220.0, 9.223_372e18]
    );
    assert_eq!(unary::<f64, f32>("as_type", &[1e-128, 1e300]), [0.0, INF]);
    assert_eq!(
        unary::<f16, f64>("as_type", &[f16::from_bits(1), f16::MAX]),
        [2f64.powi(-24), 65504.0]
    );
    assert_eq!(unary::<f32, f32>("real", &[1.5]), [1.5]);
    assert_eq!(unary::<f32, f32>("imag", &[1.5]), [0.0]);
}

/// Each value rounds another way when it is rounded to f32 or f64 first.
#[test]
fn conversions_to_16_bits_round_once() {
    let tie = 1.0 + 2f64.powi(-11);
    let above = f16::from_f32(1.0 + 2f32.powi(-10));
    assert_eq!(
        unary::<f64, f16>("as_type", &[tie, tie + 2f64.powi(-40)]),
        [f16::ONE, above]
    );
    assert_eq!(
        binary::<f64, f64, f64>("add", &[tie], &[2f64.powi(-40)]),
        [tie + 2f64.powi(-40)]
    );
    let tie = 1i64 << 62 | 1 << 54;
    let (down, up) = (
        bf16::from_f32(2f32.powi(62)),
        bf16::from_f32(2f32.powi(62) * (1.0 + 2f32.powi(-7))),
    );
    assert_eq!(
        unary::<i64, bf16>("as_type", &[tie, tie + 1, -tie - 1]),
        [down, up, -up]
    );
    assert_eq!(unary::<u64, bf16>("as_type", &[tie as u64 + 1]), [up]);
    assert_eq!(
        unary::<f64, f16>("as_type", &[65519.999, 65520.0, -1e9]),
        [f16::MAX, f16::INFINITY, f16::NEG_INFINITY]
    );
    assert_eq!(
        unary::<f64, f16>("as_type", &[2f64.powi(-25), 2f64.powi(-25) * 1.000_001]),
        [f16::ZERO, f16::from_bits(1)]
    );
    let zeros: Vec<bf16> = unary("as_type", &[1e-300f64, -1e-300]);
    assert_eq!([zeros[0].to_bits(), zeros[1].to_bits()], [0, 0x8000]);
    assert!(unary::<f64, f16>("as_type", &[f64::NAN])[0].is_nan());
}

#[test]
fn a_copy_keeps_every_bit_of_every_type() {
    for dtype in DType::all() {
        let pattern: Vec<u8> = (0..dtype.size() * 6).map(|i| (i * 37 + 11) as u8).collect();
        let mut copy = vec![0; pattern.len()];
        let view = View {
            dtype,
            shape: &[6],
            strides: &[-1],
            offset: 5,
            bytes: &pattern,
        };
        nx_vulkan_ops::kernels::run(
            "as_type",
            &[view],
            &mut [Out {
                dtype,
                shape: &[6],
                bytes: &mut copy,
            }],
            &[],
        )
        .unwrap();
        let reversed: Vec<u8> = pattern
            .rchunks(dtype.size() as usize)
            .flatten()
            .copied()
            .collect();
        assert_eq!(copy, reversed, "{dtype}");
    }
}

#[test]
fn creation() {
    let axis = |axis: &[i64]| [Attr::ints("axis", axis)];
    assert_eq!(
        run::<i32>("iota", &[], &[2, 3], &axis(&[])),
        [0, 1, 2, 3, 4, 5]
    );
    assert_eq!(
        run::<f32>("iota", &[], &[2, 3], &axis(&[0])),
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(
        run::<u8>("iota", &[], &[2, 2, 2], &axis(&[1])),
        [0, 0, 1, 1, 0, 0, 1, 1]
    );
    assert_eq!(
        run::<u8>("iota", &[], &[300], &axis(&[]))[255..258],
        [255, 0, 1]
    );
    assert_eq!(
        run::<bf16>("iota", &[], &[260], &axis(&[0]))[257..]
            .iter()
            .map(|x| x.to_f32())
            .collect::<Vec<_>>(),
        [256.0, 258.0, 260.0]
    );
    assert_eq!(
        run::<i64>("iota", &[], &[40_000], &axis(&[0])),
        (0..40_000).collect::<Vec<i64>>()
    );
    assert_eq!(run::<f16>("iota", &[], &[], &axis(&[])), [f16::ZERO]);
    assert_eq!(
        run::<u8>("eye", &[], &[2, 2, 3], &[]),
        [1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0]
    );
    assert_eq!(
        run::<f32>("eye", &[], &[3, 2], &[]),
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    );
    assert_eq!(
        run::<f32>("fill", &[], &[3], &[Attr::ints("bits", [0x3f80_0000])]),
        [1.0; 3]
    );
    let wide = bytes_of(
        "fill",
        &[],
        DType::C128,
        &[2],
        &[Attr::ints("bits", [1, -1])],
    )
    .unwrap();
    assert_eq!(
        wide.chunks(8)
            .map(|c| i64::from_le_bytes(c.try_into().unwrap()))
            .collect::<Vec<_>>(),
        [1, -1, 1, -1]
    );
    assert!(run::<u8>("fill", &[], &[0], &[Attr::ints("bits", [1])]).is_empty());
}
