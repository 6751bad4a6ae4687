//! `indexed_add` and `indexed_put`: every update once, and nothing else.

use super::movement::{ints, result};
use super::{Tensor, tensor, try_run};
use nx_vulkan_ops::kernels::with_cores;

#[test]
fn cores_that_share_the_parts_take_every_update_once_and_in_its_order() {
    // Many updates of few parts, few of many, parts of one element and of several.
    for (parts, length, rows, stride) in [
        (40_000u64, 1u64, 5_000u64, 7_919),
        (40_000, 1, 90_000, 7_919),
        (3_000, 17, 9_000, 12),
        (3_000, 3, 900, 7),
        (500, 70, 2_000, 7),
        (1_000_000, 1, 3_000, 331),
        (5, 20_000, 40, 3),
    ] {
        let places: Vec<i32> = (0..rows).map(|row| (row * stride % parts) as i32).collect();
        let before: Vec<i32> = (0..(parts * length) as i32).collect();
        let updates: Vec<i32> = (0..(rows * length) as i32)
            .map(|x| x % 1009 - 500)
            .collect();
        let (mut added, mut put) = (before.clone(), before.clone());
        for (place, own) in places.iter().zip(updates.chunks(length as usize)) {
            for (at, x) in (*place as usize * length as usize..).zip(own) {
                added[at] += x;
                put[at] = *x;
            }
        }
        let inputs = [
            (&[parts, length][..], before.clone()),
            (&[rows, 1], places),
            (&[rows, length], updates),
        ];
        let of = |op: &str| result(op, &inputs, &[parts, length], &[ints("axes", &[0])]).unwrap();
        assert_eq!(of("indexed_add"), added, "{parts} {length} {rows}");
        assert_eq!(of("indexed_put"), put, "{parts} {length} {rows}");

        // What is halves of these is exact in f32 too.
        let halves = |of: &[i32]| of.iter().map(|x| *x as f32 / 2.0).collect::<Vec<f32>>();
        let [shape, index, own] = inputs.each_ref().map(|input| input.0);
        let (t, i, u) = (
            tensor(shape, &halves(&before)),
            tensor(index, &inputs[1].1),
            tensor(own, &halves(&inputs[2].1)),
        );
        let sums: Vec<f32> =
            try_run("indexed_add", &[&t, &i, &u], shape, &[ints("axes", &[0])]).unwrap();
        assert_eq!(sums, halves(&added), "{parts} {length} {rows}");
    }
}

#[test]
fn elements_without_an_update_keep_their_bits_and_zeros_their_sign() {
    // A signalling NaN, which no conversion keeps.
    let odd = f32::from_bits(0x7f80_0001);
    for count in [2u64, 40_000] {
        let mut before = vec![-0.0f32; 50_000];
        before[49_999] = odd;
        let places: Vec<i32> = (0..count as i32).collect();
        let operands = [
            tensor(&[50_000], &before),
            tensor(&[count, 1], &places),
            tensor(&[count], &vec![-0.0f32; count as usize]),
        ];
        let operands: Vec<&Tensor> = operands.iter().collect();
        let got: Vec<f32> =
            try_run("indexed_add", &operands, &[50_000], &[ints("axes", &[0])]).unwrap();
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&got), bits(&before), "{count}");
    }
}

/// Another order, or another number of cores, gives other sums: 1 is lost beside 1e16.
#[test]
fn sums_are_those_of_the_updates_in_their_order() {
    for (parts, length, rows) in [
        (1001u64, 1u64, 30_000u64),
        (10_007, 1, 30_000),
        (701, 90, 9_000),
    ] {
        let places: Vec<i32> = (0..rows).map(|row| (row * 7 % parts) as i32).collect();
        let update = |i: u64| [1e16, 1.0, -1e16, 3.0][(i % 4) as usize];
        let updates: Vec<f64> = (0..rows * length).map(|i| update(i / length)).collect();
        let before = vec![0.0; (parts * length) as usize];
        let mut expected = before.clone();
        for (place, own) in places.iter().zip(updates.chunks(length as usize)) {
            let sums = &mut expected[*place as usize * length as usize..];
            sums.iter_mut().zip(own).for_each(|(sum, x)| *sum += x);
        }
        let shape = [parts, length];
        let inputs = [
            tensor(&shape, &before),
            tensor(&[rows, 1], &places),
            tensor(&[rows, length], &updates),
        ];
        for cores in [1, 2, 7] {
            let sums: Vec<f64> = with_cores(cores, || {
                let inputs = inputs.each_ref();
                try_run("indexed_add", &inputs, &shape, &[ints("axes", &[0])]).unwrap()
            });
            assert!(sums == expected, "{parts} {length} {rows}, {cores} cores");
        }
    }
}

/// Out of bounds by as much as can be.
#[test]
fn indices_of_any_size_are_refused() {
    for far in [i64::MAX, i64::MIN] {
        let inputs = [
            tensor(&[4, 3], &[0i64; 12]),
            tensor(&[1, 2], &[far, far]),
            tensor(&[1], &[1i64]),
        ];
        let attrs = [ints("axes", &[0, 1])];
        let answer = try_run::<i64>("indexed_add", &inputs.each_ref(), &[4, 3], &attrs);
        let refusal = answer.unwrap_err().to_string();
        assert!(refusal.contains("out of bounds"), "{refusal}");
    }
}
