//! Reductions of elements where they lie, over all axes of every layout.

use super::places::{TYPES, both, is_close, layouts};
use super::{Random, Tensor};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::element::float;

/// The axes of a tensor of three, as they may be reduced.
const AXES: [&[i64]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];

fn without(shape: &[u64], axes: &[i64]) -> Vec<u64> {
    let kept = (0..shape.len()).filter(|axis| !axes.contains(&(*axis as i64)));
    kept.map(|axis| shape[axis]).collect()
}

#[test]
fn reductions_agree_over_all_axes_of_all_layouts() {
    let mut random = Random(11);
    let shapes: [&[u64]; 7] = [
        &[3, 5, 11],
        &[40, 9, 3],
        &[7, 1, 200],
        &[2, 37, 67],
        &[1, 1, 1],
        &[33, 9, 130],
        &[1, 2, 2100],
    ];
    for (shape, dtype) in shapes
        .iter()
        .flat_map(|shape| TYPES.map(|dtype| (*shape, dtype)))
    {
        for x in [false, true]
            .iter()
            .flat_map(|&special| layouts(dtype, shape, special, &mut random))
        {
            for (axes, op) in AXES.iter().flat_map(|axes| {
                ["sum", "product", "reduce_max", "reduce_min"].map(|op| (*axes, op))
            }) {
                if dtype.is_complex() && op.starts_with("reduce") {
                    continue;
                }
                let result = without(shape, axes);
                let outs = [(dtype, &result[..])];
                let results = both(op, &[&x], &outs, &[Attr::ints("axes", axes)]);
                let results = results.map(|all| all.concat());
                // Sums of numbers of either sign may be as small as each.
                let most = match dtype {
                    DType::F64 => 1e-12,
                    DType::F32 | DType::C64 => 1e-6,
                    _ => 1e-2,
                };
                let most = if op.starts_with("reduce") { 0.0 } else { most };
                assert!(
                    is_close(dtype, &results, most),
                    "{op} of {dtype}{shape:?} over {axes:?}, {:?}",
                    x.strides
                );
            }
        }
    }
}

#[test]
fn indices_of_extremes_agree_over_all_axes_of_all_layouts() {
    let mut random = Random(12);
    let shapes: [&[u64]; 6] = [
        &[3, 5, 11],
        &[300, 2, 9],
        &[70, 1, 200],
        &[2, 37, 67],
        &[1, 1, 1],
        &[9, 2, 2100],
    ];
    let types = TYPES.iter().filter(|dtype| !dtype.is_complex());
    for (&dtype, shape) in types.flat_map(|dtype| shapes.map(|shape| (dtype, shape))) {
        for x in [false, true]
            .iter()
            .flat_map(|&special| layouts(dtype, shape, special, &mut random))
        {
            for axis in 0..3 {
                for (op, tie) in ["argmax", "argmin"]
                    .iter()
                    .flat_map(|op| ["low", "high"].map(|tie| (*op, tie)))
                {
                    let result = without(shape, &[axis]);
                    let attrs = [Attr::ints("axis", [axis]), Attr::text("tie_break", tie)];
                    let [got, fast] = both(op, &[&x], &[(DType::S64, &result)], &attrs);
                    let want = extremes(&x, axis as usize, op == "argmax", tie == "high");
                    let of = |bytes: &[Vec<u8>]| -> Vec<i64> {
                        let all = bytes[0].as_chunks().0.iter();
                        all.map(|x| i64::from_le_bytes(*x)).collect()
                    };
                    assert_eq!(of(&got), want, "{op} of {dtype}{shape:?} {:?}", x.strides);
                    assert!(got == fast);
                }
            }
        }
    }
}

/// What those indices are, one element after the other: the last NaN if there is one.
fn extremes(x: &Tensor, axis: usize, largest: bool, last: bool) -> Vec<i64> {
    let size = x.dtype.size() as usize;
    let value = |at: i64| {
        let element = &x.bytes[at as usize * size..][..size];
        let mut word = [if x.dtype.is_signed() && element[size - 1] > 127 {
            255
        } else {
            0
        }; 16];
        word[..size].copy_from_slice(element);
        float(x.dtype, element).map_or_else(|| (0.0, i128::from_le_bytes(word)), |x| (x, 0))
    };
    let mut all = Vec::new();
    let kept: Vec<usize> = (0..3).filter(|other| *other != axis).collect();
    for i in 0..x.shape[kept[0]] as i64 {
        for j in 0..x.shape[kept[1]] as i64 {
            let first = x.offset as i64 + i * x.strides[kept[0]] + j * x.strides[kept[1]];
            let mut best = (value(first), 0);
            for k in 1..x.shape[axis] as i64 {
                let item = value(first + k * x.strides[axis]);
                let beyond = if largest {
                    item > best.0
                } else {
                    item < best.0
                };
                let wins = beyond || last && item == best.0;
                if item.0.is_nan() || !best.0.0.is_nan() && wins {
                    best = (item, k);
                }
            }
            all.push(best.1);
        }
    }
    all
}
