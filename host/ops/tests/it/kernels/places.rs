//! Kernels that read and write elements where they lie, against those that are exact, over every layout of their operands.

use super::{Random, Tensor, tensor};
use nx_vulkan_abi::{DType, layout::contiguous_strides};
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::element::{float, push_float};
use nx_vulkan_ops::kernels::{Out, View, run, run_fast};

/// What elements of a type hold: small numbers, or what is special among floats too.
fn elements(dtype: DType, count: usize, special: bool, random: &mut Random) -> Vec<u8> {
    let list = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-7];
    let mut bytes = Vec::new();
    for _ in 0..count {
        let number = random.below(201) as i64 - 100;
        if !dtype.part().is_float() {
            let length = bytes.len() + dtype.size() as usize;
            bytes.extend(number.to_le_bytes());
            bytes.truncate(length);
            continue;
        }
        for _ in 0..dtype.size() / dtype.part().size() {
            let value = match special && random.below(40) == 0 {
                true => list[random.below(6) as usize],
                false => number as f64 / 64.0,
            };
            push_float(dtype.part(), value, &mut bytes);
        }
    }
    bytes
}

/// A tensor of that shape in each layout: as it is, with its axes turned, reversed, repeated, and with gaps.
pub(super) fn layouts(
    dtype: DType,
    shape: &[u64],
    special: bool,
    random: &mut Random,
) -> Vec<Tensor> {
    let count = shape.iter().product::<u64>() as usize;
    let rows = contiguous_strides(shape);
    let mut turned = contiguous_strides(&shape.iter().rev().copied().collect::<Vec<_>>());
    turned.reverse();
    let reach = |strides: &[i64]| {
        let steps = shape.iter().zip(strides);
        steps
            .map(|(n, step)| (*n as i64 - 1).max(0) * step)
            .sum::<i64>() as u64
    };
    let backwards: Vec<i64> = rows.iter().map(|step| -step).collect();
    let mut repeated = rows.clone();
    repeated.first_mut().into_iter().for_each(|step| *step = 0);
    let mut constant = rows.clone();
    constant.last_mut().into_iter().for_each(|step| *step = 0);
    let spread: Vec<i64> = rows.iter().map(|step| 2 * step).collect();
    let all = [
        (rows.clone(), 3),
        (turned, 0),
        (backwards, reach(&rows)),
        (repeated, 1),
        (constant, 0),
        (spread, 2),
    ];
    let one = |(strides, offset)| Tensor {
        dtype,
        shape: shape.to_vec(),
        strides,
        offset,
        bytes: elements(dtype, 2 * count + 5, special, random),
    };
    all.map(one).into()
}

/// Results of both kernels.
pub(super) fn both(
    op: &str,
    inputs: &[&Tensor],
    outs: &[(DType, &[u64])],
    attrs: &[Attr],
) -> [Vec<Vec<u8>>; 2] {
    let views: Vec<View> = inputs.iter().map(|x| x.view()).collect();
    [run, run_fast].map(|kernel| {
        let sizes = outs
            .iter()
            .map(|(dtype, shape)| shape.iter().product::<u64>() * dtype.size());
        let mut results: Vec<Vec<u8>> = sizes.map(|size| vec![0; size as usize]).collect();
        let each = outs.iter().zip(&mut results);
        let mut outs: Vec<Out> = each
            .map(|(&(dtype, shape), bytes)| Out {
                dtype,
                shape,
                bytes,
            })
            .collect();
        kernel(op, &views, &mut outs, attrs).unwrap();
        results
    })
}

/// Floats are numbers as close as that, or the same NaN or infinity; zeros of either sign are the same. Integers are equal.
pub(super) fn is_close(dtype: DType, results: &[Vec<u8>; 2], most: f64) -> bool {
    let size = dtype.part().size() as usize;
    let pairs = results[0].chunks(size).zip(results[1].chunks(size));
    pairs
        .into_iter()
        .all(|(x, y)| match [x, y].map(|x| float(dtype.part(), x)) {
            [Some(x), Some(y)] => {
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= most * x.abs().max(1.0)
            }
            _ => x == y,
        })
}

pub(super) const TYPES: [DType; 11] = [
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::U8,
    DType::S8,
    DType::S32,
    DType::U32,
    DType::S64,
    DType::U64,
    DType::C64,
];

/// One result of both kernels, which is the same.
fn same(op: &str, inputs: &[&Tensor], dtype: DType, shape: &[u64], attrs: &[Attr]) -> Vec<f32> {
    let [exact, fast] = both(op, inputs, &[(dtype, shape)], attrs);
    assert!(exact == fast, "{op}");
    let cells = exact[0].as_chunks().0.iter();
    cells.map(|x| f32::from_ne_bytes(*x)).collect()
}

#[test]
fn large_tensors_are_joined_and_padded_where_every_element_belongs() {
    let (rows, columns) = (150, 301);
    let x: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let x = tensor(&[rows, columns], &x);
    let at = |i: u64, j: u64| (i * columns + j) as f32;
    for axis in 0..2 {
        let shape = if axis == 0 {
            [2 * rows, columns]
        } else {
            [rows, 2 * columns]
        };
        let got = same(
            "concatenate",
            &[&x, &x],
            DType::F32,
            &shape,
            &[Attr::ints("axis", [axis])],
        );
        for (place, got) in (0..).zip(got) {
            let (i, j) = (place / shape[1], place % shape[1]);
            assert_eq!(got, at(i % rows, j % columns));
        }
    }
    let attrs = [
        Attr::ints("low", [1, -2]),
        Attr::ints("high", [2, 3]),
        Attr::ints("interior", [1, 0]),
    ];
    let shape = [2 * rows - 1 + 3, columns + 1];
    let got = same(
        "pad",
        &[&x, &tensor(&[], &[-1f32])],
        DType::F32,
        &shape,
        &attrs,
    );
    for (place, got) in (0..).zip(got) {
        let (i, j) = (place / shape[1], place % shape[1] + 2);
        let is_inside = i % 2 == 1 && i < 2 * rows && j < columns;
        assert_eq!(got, if is_inside { at(i / 2, j) } else { -1.0 });
    }
}

#[test]
fn numbers_are_counted_along_every_axis() {
    let shape = [3, 70, 101];
    for axis in 0..3 {
        let got = same(
            "iota",
            &[],
            DType::F32,
            &shape,
            &[Attr::ints("axis", [axis])],
        );
        for (place, got) in (0..).zip(got) {
            let index = [place / 7070, place / 101 % 70, place % 101];
            assert_eq!(got, index[axis as usize] as f32);
        }
    }
    let got = same("iota", &[], DType::F32, &shape, &[Attr::ints("axis", [])]);
    assert!((0..).zip(got).all(|(place, got)| got == place as f32));
    for (rows, columns) in [(70, 101), (101, 70), (1, 9), (9, 1), (40, 40)] {
        let got = same("eye", &[], DType::F32, &[3, rows, columns], &[]);
        for (place, got) in (0..).zip(got) {
            let is_one = place / columns % rows == place % columns;
            assert_eq!(got, if is_one { 1.0 } else { 0.0 });
        }
    }
}

#[test]
fn many_rows_are_taken_from_every_layout() {
    let mut random = Random(13);
    let indices: Vec<i64> = (0..4000).map(|_| random.below(60) as i64).collect();
    let indices = tensor(&[40, 100], &indices);
    for x in layouts(DType::F32, &[5, 60, 7], false, &mut random) {
        let attrs = [Attr::ints("axis", [1])];
        let got = same(
            "Nx.Block.Take",
            &[&x, &indices],
            DType::F32,
            &[5, 40, 100, 7],
            &attrs,
        );
        for (place, got) in (0..).zip(got) {
            let index = i64::from_ne_bytes(indices.bytes.as_chunks().0[place / 7 % 4000]);
            let [i, j] = [place / 28_000, place % 7].map(|i| i as i64);
            let at = x.offset as i64 + i * x.strides[0] + index * x.strides[1] + j * x.strides[2];
            assert_eq!(got, f32::from_ne_bytes(x.bytes.as_chunks().0[at as usize]));
        }
    }
}

#[test]
fn many_parts_that_lie_together_are_those_of_their_indices() {
    let mut random = Random(14);
    let rows = 30_000;
    let pairs: Vec<i64> = (0..rows)
        .flat_map(|_| [random.below(12), random.below(5)])
        .map(|index| index as i64)
        .collect();
    let indices = tensor(&[rows, 2], &pairs);
    for last in [1, 2, 3, 4] {
        for x in layouts(DType::F32, &[12, 5, last], false, &mut random) {
            let attrs = [Attr::ints("axes", [0, 1])];
            let got = same("gather", &[&x, &indices], DType::F32, &[rows, last], &attrs);
            assert_eq!(got.len() as u64, rows * last);
            for (place, got) in (0..).zip(got) {
                let (row, k) = (place as u64 / last, place as u64 % last);
                let pair = &pairs[2 * row as usize..][..2];
                let steps = [pair[0], pair[1], k as i64].into_iter().zip(&x.strides);
                let at = x.offset as i64 + steps.map(|(i, step)| i * step).sum::<i64>();
                assert_eq!(got, f32::from_ne_bytes(x.bytes.as_chunks().0[at as usize]));
            }
        }
    }
}

#[test]
fn the_first_elements_are_those_of_a_sorted_line() {
    let mut random = Random(14);
    for dtype in TYPES.into_iter().filter(|dtype| !dtype.is_complex()) {
        for x in layouts(dtype, &[3, 500], true, &mut random) {
            let attrs = [Attr::ints("axis", [1]), Attr::text("direction", "desc")];
            let [order, _] = both("argsort", &[&x], &[(DType::S32, &[3, 500])], &attrs);
            let [sorted, _] = both("sort", &[&x], &[(dtype, &[3, 500])], &attrs);
            for k in [1, 7, 100, 260, 500] {
                let outs = [(dtype, &[3, k as u64][..]), (DType::S32, &[3, k as u64])];
                let [got, fast] = both("Nx.Block.TopK", &[&x], &outs, &[Attr::ints("k", [k])]);
                assert!(got == fast);
                for (got, all) in got.iter().zip([&sorted[0], &order[0]]) {
                    let (own, line) = (got.len() / 3, all.len() / 3);
                    let rows = got.chunks(own).zip(all.chunks(line));
                    rows.into_iter()
                        .for_each(|(got, all)| assert_eq!(got, &all[..own]));
                }
            }
        }
    }
}

#[test]
fn updates_of_one_part_are_summed_before_they_are_rounded() {
    let mut random = Random(15);
    let (rows, columns) = (50, 9);
    for x in layouts(DType::F32, &[rows, columns], false, &mut random) {
        let places: Vec<i64> = (0..700).map(|_| random.below(columns) as i64).collect();
        let updates: Vec<f32> = (0..700 * rows)
            .map(|_| random.below(1 << 24) as f32 / 3.0)
            .collect();
        let inputs = [
            &x,
            &tensor(&[700, 1], &places),
            &tensor(&[700, rows], &updates),
        ];
        let got = same(
            "indexed_add",
            &inputs,
            DType::F32,
            &[rows, columns],
            &[Attr::ints("axes", [1])],
        );
        let mut sums = vec![0f64; got.len()];
        for (row, updates) in places.iter().zip(updates.chunks(rows as usize)) {
            for (i, update) in updates.iter().enumerate() {
                sums[i * columns as usize + *row as usize] += f64::from(*update);
            }
        }
        for (place, (got, sum)) in got.into_iter().zip(sums).enumerate() {
            let [i, j] = [place as u64 / columns, place as u64 % columns].map(|i| i as i64);
            let at = x.offset as i64 + i * x.strides[0] + j * x.strides[1];
            let before = f32::from_ne_bytes(x.bytes.as_chunks().0[at as usize]);
            assert_eq!(got, (f64::from(before) + sum) as f32);
        }
    }
}

#[test]
fn windows_over_rows_agree_with_windows_over_what_lies_apart() {
    let mut random = Random(16);
    for dtype in TYPES {
        for special in [false, true] {
            let all = layouts(dtype, &[3, 11, 40], special, &mut random);
            for (stride, dilation, padding) in [(1, 1, 0), (1, 1, 3), (1, 2, 1), (2, 1, 1)] {
                let extent = |n: i64, window: i64| {
                    ((n + 2 * padding - (window - 1) * dilation - 1) / stride + 1) as u64
                };
                let shape = [extent(3, 1), extent(11, 2), extent(40, 3)];
                let attrs = [
                    Attr::ints("window", [1, 2, 3]),
                    Attr::ints("strides", [stride; 3]),
                    Attr::ints("padding", [padding; 6]),
                    Attr::ints("window_dilations", [1, dilation, dilation]),
                ];
                for op in ["window_sum", "window_product", "window_max", "window_min"] {
                    if dtype.is_complex() && op.starts_with("window_m") {
                        continue;
                    }
                    let [rows, fast] = both(op, &[&all[0]], &[(dtype, &shape)], &attrs);
                    let agree = is_close(dtype, &[rows.concat(), fast.concat()], 0.0);
                    assert!(agree, "{op} of {dtype}");
                    // The same elements with gaps between them.
                    let size = dtype.size() as usize;
                    let own = all[0].bytes[3 * size..].chunks(size);
                    let bytes = own.flat_map(|x| [x, x].concat()).collect();
                    let apart = Tensor {
                        offset: 0,
                        strides: all[0].strides.iter().map(|step| 2 * step).collect(),
                        bytes,
                        ..all[0].clone()
                    };
                    let [apart, _] = both(op, &[&apart], &[(dtype, &shape)], &attrs);
                    assert!(
                        rows == apart,
                        "{op} of {dtype}, {stride} {dilation} {padding}"
                    );
                }
            }
        }
    }
}
