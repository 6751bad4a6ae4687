//! Sorting: by definition, ties, special floats, refusals.

use half::f16;

use super::{DType, Out, Random, Sample, Tensor, bytes_of, refusal, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;

fn ordered(axis: i64, direction: &str) -> [Attr; 2] {
    [
        Attr::ints("axis", [axis]),
        Attr::text("direction", direction),
    ]
}

/// How many elements come before each one, as the definition of a stable sort has it.
fn ranks(x: &[i16], descends: bool) -> Vec<usize> {
    let before = |(at, own): (usize, &i16)| {
        let comes_first = |(other, value): (usize, &i16)| match descends {
            true => value > own || value == own && other < at,
            false => value < own || value == own && other < at,
        };
        x.iter().enumerate().filter(|one| comes_first(*one)).count()
    };
    x.iter().enumerate().map(before).collect()
}

#[test]
fn order_is_that_of_the_definition_and_ties_keep_theirs() {
    let mut random = Random(3);
    for (shape, step) in [
        (&[40u64][..], 1),
        (&[40, 3], 3),
        (&[2, 40], 1),
        (&[2, 40, 5], 5),
    ] {
        let axis = i64::from(shape.len() > 1 && shape[0] == 2);
        let count = shape.iter().product::<u64>();
        let x: Vec<i16> = (0..count).map(|_| random.below(9) as i16 - 4).collect();
        for direction in ["asc", "desc"] {
            let attrs = ordered(axis, direction);
            let sorted = run::<i16>("sort", &[&tensor(shape, &x)], shape, &attrs);
            let from = run::<u16>("argsort", &[&tensor(shape, &x)], shape, &attrs);
            for start in 0..count as usize {
                if start / step % 40 != 0 {
                    continue;
                }
                let at = |i: usize| start + i * step;
                let line: Vec<i16> = (0..40).map(|i| x[at(i)]).collect();
                for (i, rank) in ranks(&line, direction == "desc").into_iter().enumerate() {
                    assert_eq!((sorted[at(rank)], from[at(rank)]), (line[i], i as u16));
                }
            }
        }
    }
}

#[test]
fn nan_is_above_everything_and_zeros_are_equal() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = vector(&[0.0, nan, -inf, -0.0, inf, -nan, 1e-45, -1.0]);
    // np.argsort(x, kind="stable"), and downwards 7 - np.argsort(x[::-1], kind="stable")[::-1]: numpy 2.4.6.
    let from = |direction| run::<i32>("argsort", &[&x], &[8], &ordered(0, direction));
    assert_eq!(from("asc"), [2, 7, 0, 3, 6, 4, 1, 5]);
    assert_eq!(from("desc"), [1, 5, 4, 6, 0, 3, 7, 2]);
    let sorted = run::<f32>("sort", &[&x], &[8], &ordered(0, "asc"));
    assert_eq!(sorted[2].to_bits(), 0);
    assert_eq!(sorted[3].to_bits(), 1 << 31);
    let halves = vector(&[2.0, f32::NAN, -1.0].map(f16::from_f32));
    let from = run::<i64>("argsort", &[&halves], &[3], &ordered(0, "desc"));
    assert_eq!(from, [1, 0, 2]);
}

fn top<S: Sample>(x: &Tensor, k: u64) -> (Vec<S>, Vec<i32>) {
    let shape = [&x.shape[..x.shape.len() - 1], &[k]].concat();
    let count = shape.iter().product::<u64>() as usize;
    let mut values = vec![0; count * size_of::<S>()];
    let mut indices = vec![0; count * 4];
    let outs =
        &mut [(S::DTYPE, &mut values), (DType::S32, &mut indices)].map(|(dtype, bytes)| Out {
            dtype,
            shape: &shape,
            bytes,
        });
    nx_vulkan_ops::kernels::run(
        "Nx.Block.TopK",
        &[x.view()],
        outs,
        &[Attr::ints("k", [k as i64])],
    )
    .unwrap();
    (
        values.chunks(size_of::<S>()).map(S::pop).collect(),
        indices.chunks(4).map(i32::pop).collect(),
    )
}

#[test]
fn the_first_of_equal_elements_is_at_the_top() {
    let x = tensor(&[2, 4], &[3u8, 9, 9, 1, 0, 0, 0, 7]);
    assert_eq!(
        top::<u8>(&x, 3),
        (vec![9, 9, 3, 7, 0, 0], vec![1, 2, 0, 3, 0, 1])
    );
    assert_eq!(top::<u8>(&x, 0), (vec![], vec![]));
    let (values, indices) = top::<f64>(&vector(&[1.0, f64::NAN, f64::INFINITY]), 2);
    assert!(values[0].is_nan() && values[1] == f64::INFINITY && indices == [1, 2]);
}

#[test]
fn requests_that_are_no_sorts_are_refused() {
    let x = vector(&[1i32, 2]);
    let of = |op: &str, shape: &[u64], attrs: &[Attr]| {
        refusal(bytes_of(op, &[&x], DType::S32, shape, attrs))
    };
    assert!(of("sort", &[2], &ordered(1, "asc")).contains("names axis 1"));
    assert!(of("argsort", &[2], &ordered(0, "up")).contains("asc or desc"));
    assert!(of("sort", &[3], &ordered(0, "asc")).contains("shape"));
    assert!(of("Nx.Block.TopK", &[2], &[Attr::ints("k", [1])]).contains("2 results"));
}
