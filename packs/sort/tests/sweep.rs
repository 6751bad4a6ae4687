//! Sorts of shapes and sizes at which this pack's ways differ, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{self, Contiguous, Reversed, Sliced, Transposed},
    op::Types,
    values::Values,
};

fn own(op: &'static str, dtype: DType, (shape, layout): (&[u64], Layout), attrs: Vec<Attr>) -> Own {
    Own {
        op,
        types: Types {
            inputs: vec![dtype],
            output: None,
        },
        operands: vec![(shape.to_vec(), layout)],
        attrs,
        values: Values::Special,
    }
}

/// One type of each width, and of each class.
const TYPES: [DType; 4] = [DType::S8, DType::BF16, DType::F32, DType::U64];

#[test]
fn short_lines_of_any_length_and_long_ones() {
    let shapes: [(&[u64], i64); 10] = [
        (&[1], 0),
        (&[700, 3], 1),
        (&[3, 700], 0),
        (&[5, 1023], 1),
        (&[2, 1024], 1),
        (&[1025], 0),
        (&[3, 5000], 1),
        (&[5000, 3], 0),
        (&[2, 3001, 2], 1),
        (&[70_001], 0),
    ];
    let mut all = Vec::new();
    for dtype in TYPES {
        for (place, (shape, axis)) in shapes.into_iter().enumerate() {
            let layout = [Contiguous, Transposed, Sliced, Reversed][place % 4];
            let (op, direction) = match place % 2 {
                0 => ("sort", "desc"),
                _ => ("argsort", "asc"),
            };
            let attrs = vec![
                Attr::ints("axis", [axis]),
                Attr::text("direction", direction),
            ];
            all.push(own(op, dtype, (shape, layout), attrs));
        }
    }
    check("sort", None, all);
}

#[test]
fn few_and_many_of_the_largest() {
    let shapes: [(&[u64], i64); 11] = [
        (&[7, 100], 100),
        (&[40, 513], 1),
        (&[9, 1025], 128),
        (&[300, 772], 6),
        (&[5, 4096], 40),
        (&[5, 9001], 10),
        (&[3, 4097], 1),
        (&[2, 9000], 500),
        (&[2, 9000], 3000),
        (&[100_003], 50),
        (&[2, 5000], 5000),
    ];
    // Of two bits thousands are equal.
    let all = TYPES.into_iter().chain([DType::U2]).flat_map(|dtype| {
        shapes.map(|(shape, k)| {
            own(
                "Nx.Block.TopK",
                dtype,
                (shape, Contiguous),
                vec![Attr::ints("k", [k])],
            )
        })
    });
    check("sort", None, all);
}
