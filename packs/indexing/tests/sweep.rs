//! Moves and updates of shapes at which this pack's ways differ, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{Contiguous, Reversed, Transposed},
    op::Types,
    values::Values,
};

/// Indices along both axes are below 2, so that every update goes to one of four places.
#[test]
fn few_places_take_short_lists_and_long_ones() {
    let mut all = Vec::new();
    for dtype in [DType::S32, DType::F32, DType::BF16, DType::C64] {
        for (rows, part) in [(9, 1), (120, 3), (400, 65), (2000, 4), (19_999, 1)] {
            all.push(Own {
                op: "indexed_add",
                types: Types {
                    inputs: vec![dtype, DType::S32, dtype],
                    output: None,
                },
                operands: vec![
                    (vec![2, 5000, part], Contiguous),
                    (vec![rows, 2], Contiguous),
                    (vec![rows, part], Contiguous),
                ],
                attrs: vec![Attr::ints("axes", [0, 1])],
                values: Values::Finite,
            });
        }
    }
    check("indexing", None, all);
}

#[test]
fn padding_at_every_alignment() {
    let mut all = Vec::new();
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::C64, DType::C128] {
        for (place, (shape, low, high, interior)) in [
            (vec![700], vec![3], vec![5], vec![0]),
            (vec![40, 33], vec![1, 1], vec![1, 1], vec![0, 0]),
            (vec![40, 64], vec![-3, 16], vec![2, -16], vec![0, 0]),
            (vec![17, 9], vec![0, 2], vec![1, -3], vec![2, 1]),
            (vec![3, 5, 7], vec![1, 0, -2], vec![0, 2, 4], vec![0, 1, 0]),
            (vec![2, 70, 4], vec![0, 1, 0], vec![0, 1, 0], vec![0, 0, 0]),
        ]
        .into_iter()
        .enumerate()
        {
            all.push(Own {
                op: "pad",
                types: Types {
                    inputs: vec![dtype, dtype],
                    output: None,
                },
                operands: vec![
                    (shape, [Contiguous, Transposed, Reversed][place % 3]),
                    (Vec::new(), Contiguous),
                ],
                attrs: vec![
                    Attr::ints("high", high),
                    Attr::ints("interior", interior),
                    Attr::ints("low", low),
                ],
                values: Values::Special,
            });
        }
    }
    check("indexing", None, all);
}
