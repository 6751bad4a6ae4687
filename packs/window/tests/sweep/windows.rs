//! Windows at the edges of runs.

use crate::VIEWS;
use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{Attr, op::Types, values::Values};

/// Shape of x, windows, their strides and dilations, padding of both sides of each axis.
type Windows = ([u64; 4], [i64; 4], [i64; 4], [i64; 4], [i64; 8]);

/// Positions around runs, windows that overlap, touch and leave gaps, axes with windows that are not the last ones, columns and
/// rows that are all padding.
const WINDOWS: &[Windows] = &[
    (
        [2, 3, 17, 13],
        [1, 1, 3, 3],
        [1, 1, 2, 2],
        [1; 4],
        [0, 0, 0, 0, 1, 1, 1, 1],
    ),
    ([1, 9, 10, 3], [1, 2, 2, 1], [1, 2, 2, 1], [1; 4], [0; 8]),
    (
        [5, 2, 7, 4],
        [2, 1, 1, 3],
        [1, 1, 1, 2],
        [2, 1, 1, 1],
        [3, 2, 0, 0, 0, 0, 4, 3],
    ),
    (
        [1, 30, 1, 12],
        [1, 2, 1, 4],
        [1, 4, 1, 1],
        [1, 3, 1, 2],
        [0, 0, -2, -1, 0, 0, 0, 2],
    ),
    (
        [3, 4, 5, 6],
        [1, 1, 1, 5],
        [1; 4],
        [1; 4],
        [0, 0, 0, 0, 2, 1, 2, 2],
    ),
    ([2, 3, 15, 20], [1, 1, 5, 5], [1, 1, 5, 5], [1; 4], [0; 8]),
    (
        [1, 2, 19, 16],
        [1, 1, 3, 3],
        [1, 1, 3, 4],
        [1; 4],
        [0, 0, 0, 0, 2, 1, 0, 0],
    ),
];

#[test]
fn windows_along_two_axes() {
    let mut all = Vec::new();
    for op in ["window_sum", "window_product", "window_max", "window_min"] {
        let complex = matches!(op, "window_sum" | "window_product");
        let types = [
            DType::F32,
            DType::F16,
            DType::BF16,
            DType::S16,
            DType::S64,
            DType::C64,
        ];
        for dtype in types.into_iter().filter(|t| complex || !t.is_complex()) {
            let layouts = WINDOWS.iter().zip(VIEWS.iter().cycle());
            for ((shape, window, strides, dilations, padding), layout) in layouts {
                let attr = |name: &str, list: &[i64]| Attr::ints(name, list);
                all.push(Own {
                    op,
                    types: Types {
                        inputs: vec![dtype],
                        output: None,
                    },
                    operands: vec![(shape.to_vec(), *layout)],
                    attrs: vec![
                        attr("padding", padding),
                        attr("strides", strides),
                        attr("window", window),
                        attr("window_dilations", dilations),
                    ],
                    values: match dtype {
                        DType::F32 if !complex => Values::Special,
                        _ => Values::Finite,
                    },
                });
            }
        }
    }
    check("window", None, all);
}
