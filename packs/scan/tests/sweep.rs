//! Scans of shapes and sizes at which this pack's dispatches differ, on a real device. What any pack is asked, `nxv check`
//! asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{Contiguous, Reversed, Transposed},
    op::Types,
    values::Values,
};

#[test]
fn lines_along_and_across_memory_whole_and_in_parts() {
    let shapes: [(&[u64], i64); 15] = [
        (&[1], 0),
        (&[700, 3], 1),
        (&[3, 700], 0),
        (&[2, 513, 70], 1),
        (&[40, 1025], 1),
        (&[300_007], 0),
        (&[2, 70_001], 1),
        (&[70_001, 3], 0),
        (&[3000, 40], 0),
        (&[5, 2048], 1),
        (&[3, 2056], 1),
        (&[2, 600, 64], 1),
        (&[700, 100], 0),
        (&[300_008], 0),
        (&[1, 20_004], 1),
    ];
    let mut all = Vec::new();
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::S64, DType::F64] {
        for (place, (shape, axis)) in shapes.into_iter().enumerate() {
            for (op, values) in [
                ("Nx.Block.CumulativeSum", Values::Finite),
                ("Nx.Block.CumulativeMax", Values::Special),
            ] {
                all.push(Own {
                    op,
                    types: Types {
                        inputs: vec![dtype],
                        output: None,
                    },
                    operands: vec![(
                        shape.to_vec(),
                        [Contiguous, Transposed, Reversed][place % 3],
                    )],
                    attrs: vec![
                        Attr::ints("axis", [axis]),
                        Attr::ints("reverse", [place as i64 % 2]),
                    ],
                    values,
                });
            }
        }
    }
    check("scan", None, all);
}
