//! Transforms of lengths at which this pack's passes differ, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{self, Contiguous, Transposed},
    op::Types,
    values::Values,
};

fn transform(op: &'static str, dtype: DType, shape: &[u64], axis: usize, layout: Layout) -> Own {
    Own {
        op,
        types: Types {
            inputs: vec![dtype],
            output: None,
        },
        operands: vec![(shape.to_vec(), layout)],
        attrs: vec![Attr::ints("axis", [axis as i64])],
        values: Values::Finite,
    }
}

#[test]
fn lengths_of_one_two_and_three_passes_agree_with_the_host() {
    let shapes: &[(&[u64], usize)] = &[
        (&[70, 16], 1),
        (&[3, 2048], 1),
        (&[16_384], 0),
        (&[2, 4096, 3], 1),
        (&[7 * 7 * 7 * 7 * 5], 0),
        (&[1 << 19], 0),
        (&[2, 2053], 1),
        // Parts exchanged one after the other, alone and beside each other, and odd radices.
        (&[2, 4096], 1),
        (&[2048, 6], 0),
        (&[3, 11 * 13 * 9], 1),
    ];
    let of = |(shape, axis): &(&[u64], usize)| {
        let transform = |op, dtype, layout| transform(op, dtype, shape, *axis, layout);
        [
            transform("fft", DType::C64, Contiguous),
            transform("ifft", DType::F32, Transposed),
        ]
    };
    check("fft", None, shapes.iter().flat_map(of));
    let double = |shape: &[u64]| transform("fft", DType::F64, shape, 0, Contiguous);
    check("fft", None, [&[8192][..], &[1021]].map(double));
}
