//! Products of matrices: values, axes, sizes beyond one tile.

use half::{bf16, f16};

use super::{Tensor, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;

fn axes(batch: &[i64], contract_a: &[i64], contract_b: &[i64]) -> [Attr; 4] {
    [
        Attr::ints("batch_a", batch),
        Attr::ints("batch_b", batch),
        Attr::ints("contract_a", contract_a),
        Attr::ints("contract_b", contract_b),
    ]
}

fn transposed(t: &Tensor) -> Tensor {
    let mut t = t.clone();
    t.shape.reverse();
    t.strides.reverse();
    t
}

#[test]
fn vectors_and_matrices() {
    let (a, b) = (
        tensor(&[2, 3], &[1i32, 2, 3, 4, 5, 6]),
        tensor(&[3, 2], &[7i32, 8, 9, 10, 11, 12]),
    );
    assert_eq!(
        run::<i32>("dot", &[&a, &b], &[2, 2], &axes(&[], &[1], &[0])),
        [58, 64, 139, 154]
    );
    let u = vector(&[1.0f32, 2.0, 3.0]);
    assert_eq!(
        run::<f32>("dot", &[&u, &u], &[], &axes(&[], &[0], &[0])),
        [14.0]
    );
    assert_eq!(
        run::<f32>("dot", &[&a, &u], &[2], &axes(&[], &[1], &[0])),
        [14.0, 32.0]
    );
    assert_eq!(
        run::<i32>("dot", &[&b, &b], &[], &axes(&[], &[0, 1], &[0, 1])),
        [559]
    );
    let outer: Vec<f32> = run("dot", &[&u, &u], &[3, 3], &axes(&[], &[], &[]));
    assert_eq!(outer, [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0]);
}

/// 257 is 256 in bf16; the sum of three would be 772.
#[test]
fn operands_have_the_type_of_a_narrow_result_first() {
    let ones = vector(&[bf16::ONE; 3]);
    let attrs = axes(&[], &[0], &[0]);
    let whole = vector(&[257i32; 3]);
    let wide = vector(&[257.0f32; 3]);
    for x in [whole, wide] {
        let sums = [[&x, &ones], [&ones, &x]]
            .map(|operands| run::<bf16>("dot", &operands, &[], &attrs)[0].to_f32());
        assert_eq!(sums, [768.0; 2]);
    }
}

/// Pairs of contracted axes need not be in order.
#[test]
fn contracted_axes_pair_up_as_listed() {
    let a = tensor(&[2, 3, 2], &(0..12).collect::<Vec<i64>>());
    let b = tensor(&[3, 2], &(0..6).collect::<Vec<i64>>());
    let product = |i: i64| (0..6).map(|j| (i * 6 + j) * j).sum::<i64>();
    let expected = [product(0), product(1)];
    assert_eq!(
        run::<i64>("dot", &[&a, &b], &[2], &axes(&[], &[1, 2], &[0, 1])),
        expected
    );
    assert_eq!(
        run::<i64>("dot", &[&a, &b], &[2], &axes(&[], &[2, 1], &[1, 0])),
        expected
    );
}

#[test]
fn batches() {
    let a = tensor(&[2, 1, 2], &[1.0f64, 2.0, 3.0, 4.0]);
    let b = tensor(&[2, 2, 2], &[1.0f64, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 2.0]);
    assert_eq!(
        run::<f64>("dot", &[&a, &b], &[2, 1, 2], &axes(&[0], &[2], &[1])),
        [1.0, 2.0, 6.0, 8.0]
    );
    let many = tensor(&[5000, 2], &(0..10_000).collect::<Vec<i32>>());
    let squares: Vec<i32> = (0..5000).map(|i| 8 * i * i + 4 * i + 1).collect();
    assert_eq!(
        run::<i32>("dot", &[&many, &many], &[5000], &axes(&[0], &[1], &[1])),
        squares
    );
}

#[test]
fn results_of_every_type() {
    let (a, b) = (vector(&[100u8, 200]), vector(&[3u8, 1]));
    assert_eq!(
        run::<u8>("dot", &[&a, &b], &[], &axes(&[], &[0], &[0])),
        [244]
    );
    let (a, b) = (vector(&[-100i8, 100]), vector(&[2i16, -1]));
    assert_eq!(
        run::<i16>("dot", &[&a, &b], &[], &axes(&[], &[0], &[0])),
        [-300]
    );
    let big = vector(&[u64::MAX, 5]);
    assert_eq!(
        run::<u64>("dot", &[&big, &big], &[], &axes(&[], &[0], &[0])),
        [26]
    );
    let ones = vector(&vec![f16::ONE; 5000]);
    assert_eq!(
        run::<f16>("dot", &[&ones, &ones], &[], &axes(&[], &[0], &[0])),
        [f16::from_f32(5000.0)]
    );
    let ones = vector(&vec![bf16::ONE; 1000]);
    assert_eq!(
        run::<bf16>("dot", &[&ones, &ones], &[], &axes(&[], &[0], &[0])),
        [bf16::from_f32(1000.0)]
    );
    let (a, b) = (vector(&[1e8f32, 1.0]), vector(&[1e8f32, 1.0]));
    assert_eq!(
        run::<f32>("dot", &[&a, &b], &[], &axes(&[], &[0], &[0])),
        [1e16]
    );
}

#[test]
fn nothing_contracts_to_zero() {
    let (a, b) = (tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[0, 3], &[]));
    assert_eq!(
        run::<f32>("dot", &[&a, &b], &[2, 3], &axes(&[], &[1], &[0])),
        [0.0; 6]
    );
    assert!(run::<f32>("dot", &[&b, &b], &[0, 0], &axes(&[], &[1], &[1])).is_empty());
}

#[test]
fn non_finite_values_spread() {
    let (a, b) = (vector(&[f32::INFINITY, 1.0]), vector(&[0.0f32, 1.0]));
    assert!(run::<f32>("dot", &[&a, &b], &[], &axes(&[], &[0], &[0]))[0].is_nan());
}

/// Larger than a tile in rows, columns and depth, in each combination of layouts.
#[test]
fn many_tiles() {
    let (m, n, k) = (131usize, 261, 1030);
    let left: Vec<i32> = (0..m * k).map(|i| (i * 31 % 17) as i32 - 8).collect();
    let right: Vec<i32> = (0..k * n).map(|i| (i * 29 % 19) as i32 - 9).collect();
    let mut expected = vec![0i32; m * n];
    for (i, row) in expected.chunks_mut(n).enumerate() {
        for (j, x) in left[i * k..(i + 1) * k].iter().enumerate() {
            row.iter_mut()
                .zip(&right[j * n..])
                .for_each(|(sum, y)| *sum += x * y);
        }
    }
    let float = |x: &[i32]| x.iter().map(|x| *x as f32).collect::<Vec<_>>();
    let (a, b) = (
        tensor(&[m as u64, k as u64], &left),
        tensor(&[k as u64, n as u64], &right),
    );
    let (x, y) = (
        tensor(&a.shape, &float(&left)),
        tensor(&b.shape, &float(&right)),
    );
    let shape = [m as u64, n as u64];
    assert_eq!(
        run::<i32>("dot", &[&a, &b], &shape, &axes(&[], &[1], &[0])),
        expected
    );
    assert_eq!(
        run::<i64>("dot", &[&a, &b], &shape, &axes(&[], &[1], &[0])),
        expected.iter().map(|x| i64::from(*x)).collect::<Vec<_>>()
    );
    assert_eq!(
        run::<f32>("dot", &[&x, &y], &shape, &axes(&[], &[1], &[0])),
        float(&expected)
    );
    assert_eq!(
        run::<f32>(
            "dot",
            &[&transposed(&x), &y],
            &shape,
            &axes(&[], &[0], &[0])
        ),
        float(&expected)
    );
    assert_eq!(
        run::<f32>(
            "dot",
            &[&x, &transposed(&y)],
            &shape,
            &axes(&[], &[1], &[1])
        ),
        float(&expected)
    );
    assert_eq!(
        run::<i32>(
            "dot",
            &[&transposed(&a), &transposed(&b)],
            &shape,
            &axes(&[], &[0], &[1])
        ),
        expected
    );
}
