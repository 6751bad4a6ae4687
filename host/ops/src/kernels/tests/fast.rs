//! Kernels that sum in their own precision, against those that sum in f64, which have oracles of their own.

use super::super::{Out, View, run, run_fast};
use crate::{Attr, values::Rng};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

fn numbers(count: usize, rng: &mut Rng) -> Vec<u8> {
    let one = |_| (rng.below(2001) as f32 - 1000.0) / 512.0;
    (0..count).map(one).flat_map(f32::to_ne_bytes).collect()
}

/// Shape, strides, offset and bytes of an operand.
type Operand<'a> = (&'a [u64], Vec<i64>, u64, &'a [u8]);

/// The largest difference relative to the largest result.
fn apart(op: &str, operands: [Operand<'_>; 2], shape: &[u64], attrs: &[Attr]) -> f32 {
    let views = operands
        .each_ref()
        .map(|(shape, strides, offset, bytes)| View {
            dtype: DType::F32,
            shape,
            strides,
            offset: *offset,
            bytes,
        });
    let results = [run, run_fast].map(|kernel| {
        let mut bytes = vec![0; 4 * shape.iter().product::<u64>() as usize];
        let mut out = [Out {
            dtype: DType::F32,
            shape,
            bytes: &mut bytes,
        }];
        kernel(op, &views, &mut out, attrs).unwrap();
        let cells = bytes.as_chunks().0.iter();
        cells
            .map(|cell| f32::from_ne_bytes(*cell))
            .collect::<Vec<_>>()
    });
    let [exact, fast] = &results;
    let largest = exact.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    assert!(exact.len() == fast.len() && largest > 0.0);
    let differences = exact.iter().zip(fast).map(|(x, y)| (x - y).abs());
    differences.fold(0.0, f32::max) / largest
}

fn dot(batch: u64, contract: [i64; 2]) -> Vec<Attr> {
    let batches = Vec::from_iter(0..batch as i64);
    vec![
        Attr::ints("batch_a", batches.clone()),
        Attr::ints("batch_b", batches),
        Attr::ints("contract_a", [contract[0]]),
        Attr::ints("contract_b", [contract[1]]),
    ]
}

#[test]
fn products_in_place_agree_with_wide_ones() {
    let mut rng = Rng(1);
    for (m, k, n) in [
        (1, 1, 1),
        (3, 700, 5),
        (130, 65, 77),
        (1, 300, 40),
        (64, 64, 1),
    ] {
        let (a, b) = (
            numbers((m * k) as usize, &mut rng),
            numbers((k * n) as usize, &mut rng),
        );
        let rows = |shape: &[u64]| contiguous_strides(shape);
        // Rows by rows, and both operands transposed.
        let straight = [
            (&[m, k][..], rows(&[m, k]), 0, &a[..]),
            (&[k, n], rows(&[k, n]), 0, &b),
        ];
        assert!(apart("dot", straight, &[m, n], &dot(0, [1, 0])) < 1e-5);
        let turned = [
            (&[k, m][..], vec![1, k as i64], 0, &a[..]),
            (&[n, k], vec![1, n as i64], 0, &b),
        ];
        assert!(apart("dot", turned, &[m, n], &dot(0, [0, 1])) < 1e-5);
    }
}

#[test]
fn batches_offsets_and_repeated_elements_agree_too() {
    let mut rng = Rng(2);
    let (a, b) = (
        numbers(7 + 3 * 20 * 33, &mut rng),
        numbers(33 * 9, &mut rng),
    );
    let operands = [
        (&[3, 20, 33][..], vec![660, 33, 1], 7, &a[..]),
        (&[3, 33, 9], vec![0, 9, 1], 0, &b),
    ];
    assert!(apart("dot", operands, &[3, 20, 9], &dot(1, [2, 1])) < 1e-5);
    let reversed = [
        (&[20, 33][..], vec![33, -1], 32, &a[..]),
        (&[33, 9], vec![9, 1], 0, &b),
    ];
    assert!(apart("dot", reversed, &[20, 9], &dot(0, [1, 0])) < 1e-5);
}

#[test]
fn convolutions_agree_with_wide_ones() {
    let mut rng = Rng(3);
    let ints = |name, list: &[i64]| Attr::ints(name, list);
    for (stride, dilation, holes, padding) in [
        (1, 1, 1, 1),
        (2, 1, 1, 2),
        (1, 2, 1, 0),
        (3, 1, 2, 3),
        (2, 2, 1, -1),
    ] {
        let (x, kernel) = (
            numbers(2 * 3 * 13 * 17, &mut rng),
            numbers(5 * 3 * 3 * 2, &mut rng),
        );
        let extent = |n: i64, window: i64| {
            ((n - 1) * holes + 1 + 2 * padding - (window - 1) * dilation - 1) / stride + 1
        };
        let shape = [2, 5, extent(13, 3) as u64, extent(17, 2) as u64];
        let same = [0, 1, 2, 3];
        let attrs = [
            ints("strides", &[stride; 2]),
            ints("padding", &[padding; 4]),
            ints("input_dilation", &[holes; 2]),
            ints("kernel_dilation", &[dilation; 2]),
            ints("feature_group_size", &[1]),
            ints("batch_group_size", &[1]),
            ints("input_permutation", &same),
            ints("kernel_permutation", &same),
            ints("output_permutation", &same),
        ];
        let operands = [
            (
                &[2, 3, 13, 17][..],
                contiguous_strides(&[2, 3, 13, 17]),
                0,
                &x[..],
            ),
            (&[5, 3, 3, 2], contiguous_strides(&[5, 3, 3, 2]), 0, &kernel),
        ];
        assert!(apart("conv", operands, &shape, &attrs) < 1e-5);
    }
}
