//! Closures at sizes at which this pack's dispatches differ, on a real device, with the bits of the host's. What any pack is
//! asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{Contiguous, Reversed, Transposed},
    op::Types,
    values::Values,
};

#[test]
fn results_in_one_dispatch_and_in_parts() {
    let shapes: [(&[u64], &[i64]); 5] = [
        (&[(1 << 20) + 9], &[0]),
        (&[3, 5, 700, 2], &[0, 2]),
        (&[70, 9, 11], &[1, 2]),
        (&[1027, 33], &[0]),
        (&[2, 513], &[1]),
    ];
    let texts = [
        "multiply(i1, 31:s32):T; add(%0, i0):T; max(%1, i0):T; subtract(%2, %0):T",
        "greater(i0, i1):u8; multiply(i0, 2:s32):T; select(%0, %1, i1):T; min(%2, 100:s32):T",
    ];
    let mut all = Vec::new();
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::S64, DType::F64] {
        for (place, (shape, axes)) in shapes.into_iter().enumerate() {
            let text = texts[place % 2].replace('T', dtype.name());
            all.push(Own {
                op: "reduce",
                types: Types {
                    inputs: vec![dtype; 2],
                    output: None,
                },
                operands: vec![
                    (
                        shape.to_vec(),
                        [Contiguous, Transposed, Reversed][place % 3],
                    ),
                    (Vec::new(), Contiguous),
                ],
                attrs: vec![Attr::ints("axes", axes), Attr::text("expression", &text)],
                values: [Values::Finite, Values::Special][place % 2],
            });
        }
    }
    check("closure", None, all);
}
