//! `dot` at the edges of this pack's tiles, splits and columns, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::{
        LAYOUTS,
        Layout::{self, Broadcast, Contiguous, Reversed, Sliced, Transposed},
    },
    op::Types,
    values::Values,
};

/// Layouts of any rank, with elements.
const VIEWS: &[Layout] = LAYOUTS.split_at(5).0;

const SKINNY: Option<&str> = Some("matmul/dot_skinny");
const TILED: Option<&str> = Some("matmul/dot_tiled");
const DIRECT: Option<&str> = Some("matmul/dot_direct");

/// Shapes of both operands, number of batch axes, axes to contract of each.
type Shapes<'a> = (&'a [u64], &'a [u64], i64, [&'a [i64]; 2]);

/// A type of each kind that the shaders differ by; `nxv check` runs every type.
const TYPES: [DType; 5] = [DType::U8, DType::BF16, DType::F32, DType::S64, DType::F64];

/// A product over the last axis of one and the first of the other.
fn product(dtypes: [DType; 2], operands: [(Vec<u64>, Layout); 2]) -> Own {
    Own {
        op: "dot",
        types: Types {
            inputs: dtypes.to_vec(),
            output: None,
        },
        operands: operands.to_vec(),
        attrs: Vec::new(),
        values: Values::Finite,
    }
}

/// A product of matrices with the given layouts.
fn matrices([m, n, k]: [u64; 3], dtype: DType, [a, b]: [Layout; 2]) -> Own {
    product([dtype; 2], [(vec![m, k], a), (vec![k, n], b)])
}

/// Every pair of layouts in which each layout is on each side.
fn pairs() -> impl Iterator<Item = [Layout; 2]> {
    let straight = [Contiguous, Transposed];
    let straight = straight
        .into_iter()
        .flat_map(move |a| straight.map(|b| [a, b]));
    straight.chain((2..VIEWS.len()).map(|i| [VIEWS[i], VIEWS[(i + 1) % VIEWS.len()]]))
}

#[test]
fn the_packs_own_order_on_every_kind_of_type_and_layout() {
    let sizes = [[33, 65, 70], [64, 32, 16], [2, 2, 395]];
    let of = |dtype| pairs().flat_map(move |pair| sizes.map(|size| matrices(size, dtype, pair)));
    check("matmul", None, TYPES.into_iter().flat_map(of));
}

#[test]
fn tiles_on_every_kind_of_type_and_layout() {
    let every = TYPES.into_iter().flat_map(|dtype| {
        [
            matrices([68, 132, 52], dtype, [Contiguous; 2]),
            matrices([67, 35, 45], dtype, [Transposed, Sliced]),
        ]
    });
    let sizes = [
        [64, 128, 16],
        [132, 36, 60],
        [33, 100, 17],
        [40, 41, 16],
        [129, 127, 131],
        [11, 203, 70],
        [204, 12, 36],
        [96, 64, 512],
        [67, 45, 301],
    ];
    let edges = |dtype| pairs().flat_map(move |pair| sizes.map(|size| matrices(size, dtype, pair)));
    let tall = [
        ([9_000, 27, 36], [Contiguous; 2]),
        ([9_000, 13, 37], [Transposed, Sliced]),
    ];
    let tall = tall.map(|(size, pair)| matrices(size, DType::F32, pair));
    check("matmul", TILED, every.chain(edges(DType::F32)).chain(tall));
}

#[test]
fn deep_tiles_are_split() {
    let deep = [DType::F32, DType::U8, DType::BF16, DType::S64].map(|dtype| {
        [
            matrices([40, 36, 30_000], dtype, [Contiguous; 2]),
            matrices([33, 37, 29_999], dtype, [Transposed; 2]),
        ]
    });
    check("matmul", TILED, deep.into_iter().flatten());
}

#[test]
fn skinny_products_on_every_kind_of_type() {
    let skinny = [
        ([1, 1, 20_000], [Contiguous; 2]),
        ([1, 1, 9_999], [Reversed, Sliced]),
        ([300, 1, 132], [Contiguous; 2]),
        ([300, 2, 132], [Transposed, Contiguous]),
        ([3, 301, 133], [Contiguous, Transposed]),
        ([8, 40, 1_000], [Transposed, Contiguous]),
        ([5, 64, 64], [Broadcast, Reversed]),
        ([7, 301, 133], [Contiguous; 2]),
        // So many that the smaller operand is copied first, where it does not lie along k.
        ([1_000, 6, 801], [Contiguous; 2]),
        ([7, 900, 704], [Sliced, Transposed]),
    ];
    let of = |dtype| skinny.map(|(size, layouts)| matrices(size, dtype, layouts));
    check("matmul", SKINNY, TYPES.into_iter().flat_map(of));
}

/// Types whose elements a shader takes out of words, on values of every kind: an inner product of 32 has few enough terms
/// for subnormal ones to count.
#[test]
fn words_hold_every_kind_of_value() {
    let types = [DType::F16, DType::BF16, DType::F8, DType::S8, DType::U16];
    let of = |dtype| {
        [Contiguous, Transposed].map(|layout| {
            let mut own = matrices([264, 1, 32], dtype, [layout, Contiguous]);
            own.types.inputs[1] = DType::F32;
            own.types.output = Some(DType::F32);
            own.values = Values::Special;
            own
        })
    };
    check("matmul", SKINNY, types.into_iter().flat_map(of));
}

#[test]
fn the_last_resort_takes_any_size() {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::S64] {
        for m in [0, 1, 3, 8, 17] {
            for n in [0, 1, 4, 5, 40] {
                for k in [0, 1, 4, 7, 600] {
                    let layout = VIEWS[(m + n + k) as usize % 2];
                    all.push(matrices([m, n, k], dtype, [layout, Contiguous]));
                }
            }
        }
    }
    // Rows that packs do not fit, and so many results that an invocation has more of them.
    for dtype in TYPES {
        for [m, n, k] in [[70, 33, 3], [9, 129, 4], [3, 1_023, 2]] {
            all.push(matrices([m, n, k], dtype, [Contiguous; 2]));
        }
    }
    all.push(matrices([701, 6_001, 3], DType::F32, [Contiguous; 2]));
    check("matmul", DIRECT, all);
}

#[test]
fn batches_and_several_axes() {
    let shapes: [Shapes<'_>; 8] = [
        (&[3, 40, 20], &[3, 20, 33], 1, [&[2], &[1]]),
        (&[2, 3, 17, 5], &[2, 3, 9, 5], 2, [&[3], &[3]]),
        (&[6, 5, 7], &[7, 4, 6], 0, [&[0, 2], &[2, 0]]),
        (&[6, 40, 7], &[6, 7, 50], 0, [&[2, 0], &[1, 0]]),
        (&[4, 5], &[3, 2], 0, [&[], &[]]),
        (&[500, 4], &[500, 4], 1, [&[1], &[1]]),
        (&[], &[3], 0, [&[], &[]]),
        (&[2, 2, 2, 3, 2], &[3, 2, 2, 5], 0, [&[3, 1], &[0, 2]]),
    ];
    let mut all = Vec::new();
    for (layout, dtype) in VIEWS
        .iter()
        .flat_map(|l| [(*l, DType::F32), (*l, DType::U16)])
    {
        for (a, b, batch, [contract_a, contract_b]) in shapes {
            let other = if layout == Transposed {
                Contiguous
            } else {
                layout
            };
            let attrs = vec![
                Attr::ints("batch_a", Vec::from_iter(0..batch)),
                Attr::ints("batch_b", Vec::from_iter(0..batch)),
                Attr::ints("contract_a", contract_a),
                Attr::ints("contract_b", contract_b),
            ];
            let operands = [(a.to_vec(), layout), (b.to_vec(), other)];
            all.push(Own {
                attrs,
                ..product([dtype; 2], operands)
            });
        }
    }
    check("matmul", None, all.clone());
    check("matmul", DIRECT, all);
}

/// Pairs of types that are converted as they are loaded, with the type of the result.
const MIXED: [[DType; 3]; 8] = [
    [DType::F32, DType::BF16, DType::F32],
    [DType::F16, DType::F32, DType::F32],
    [DType::F32, DType::S8, DType::F32],
    [DType::BF16, DType::U8, DType::BF16],
    [DType::F8, DType::S16, DType::F32],
    [DType::F32, DType::F64, DType::F64],
    [DType::S8, DType::U8, DType::S32],
    [DType::S64, DType::U16, DType::S64],
];

#[test]
fn operands_of_other_types_are_read_as_they_are() {
    let sizes = [
        (SKINNY, [1, 264, 520]),
        (SKINNY, [3, 301, 133]),
        (SKINNY, [530, 5, 96]),
        (TILED, [68, 132, 52]),
        (TILED, [40, 41, 17]),
    ];
    for (kernel, size) in sizes {
        let of = |([a, b, result], layouts): ([DType; 3], [Layout; 2])| {
            let mut own = matrices(size, a, layouts);
            own.types.inputs[1] = b;
            own.types.output = Some(result);
            own
        };
        let layouts = [
            [Contiguous; 2],
            [Transposed, Contiguous],
            [Contiguous, Transposed],
        ];
        let layouts = layouts.into_iter().cycle();
        check("matmul", kernel, MIXED.into_iter().zip(layouts).map(of));
    }
}

#[test]
fn operands_of_other_types_are_cast_first() {
    let types = [
        (DType::U8, DType::F32, DType::F32),
        (DType::S32, DType::U8, DType::S64),
        (DType::F16, DType::BF16, DType::F32),
        (DType::F32, DType::F64, DType::F64),
    ];
    let all = types.map(|(a, b, result)| {
        let operands = [(vec![20, 30], Sliced), (vec![30, 10], Contiguous)];
        let mut own = product([a, b], operands);
        own.types.output = Some(result);
        own
    });
    check("matmul", None, all);
}

#[test]
fn large_products_in_the_packs_own_order() {
    let types = [
        (DType::F16, DType::F16, None),
        (DType::F16, DType::F16, Some(DType::F32)),
        (DType::BF16, DType::BF16, None),
        (DType::F32, DType::BF16, None),
        (DType::F32, DType::F32, None),
        (DType::S8, DType::S8, Some(DType::S32)),
        (DType::U8, DType::U8, None),
    ];
    let sizes = [[160, 192, 128], [129, 203, 117], [17, 400, 700]];
    let of = |(a, b, result)| {
        let (straight, sliced) = ([Contiguous; 2], [Transposed, Sliced]);
        sizes.into_iter().zip([straight, sliced, straight]).map(
            move |([m, n, k], [left, right])| {
                let operands = [(vec![m, k], left), (vec![k, n], right)];
                let mut own = product([a, b], operands);
                own.types.output = result;
                own
            },
        )
    };
    check("matmul", None, types.into_iter().flat_map(of));
}

/// The contracted axis alone runs backwards and neighbours lie along the free one: what is packed for matrix units is then read
/// two rows at a time with a negative stride. A case's number says which axes it reverses; four in a row have every choice.
#[test]
fn contracted_axes_run_backwards() {
    let types = [
        (DType::F16, DType::F16, DType::F16),
        (DType::BF16, DType::BF16, DType::BF16),
        // Conversions that lose nothing.
        (DType::BF16, DType::BF16, DType::F16),
        (DType::F16, DType::BF16, DType::F16),
        (DType::S8, DType::S8, DType::S32),
        (DType::U8, DType::U8, DType::U32),
    ];
    let of = |(a, b, result): (DType, DType, DType)| {
        let operands = [(vec![117, 160], Reversed), (vec![117, 192], Reversed)];
        let mut own = product([a, b], operands);
        own.types.output = Some(result);
        own.attrs = vec![Attr::ints("contract_a", [0]), Attr::ints("contract_b", [0])];
        vec![own; 4]
    };
    check("matmul", None, types.into_iter().flat_map(of));
}

/// Products of f32 that matrix units take where there are some: in parts, and by multiplications of f32 after all where numbers are
/// among them that parts are not exact enough for.
#[test]
fn products_that_are_split_into_parts() {
    let [f32, bf16, f16] = [DType::F32, DType::BF16, DType::F16];
    let sizes = [[800, 784, 640], [1001, 515, 999]];
    let layouts = [
        [Contiguous; 2],
        [Transposed, Sliced],
        [Reversed, Transposed],
        [Contiguous, Reversed],
    ];
    let alone = layouts
        .into_iter()
        .flat_map(|pair| sizes.map(|size| matrices(size, f32, pair)));
    let mixed = [[f32, bf16], [f16, f32]].map(|types| {
        let operands = [(vec![640, 900], Contiguous), (vec![900, 768], Transposed)];
        let mut own = product(types, operands);
        own.types.output = Some(f32);
        own
    });
    let of = |own: Own| {
        [Values::Finite, Values::Special].map(|values| Own {
            values,
            ..own.clone()
        })
    };
    check("matmul", None, alone.chain(mixed).flat_map(of));
}

/// Weights that are packed once, for as many rows as matrix units share tiles of, with ragged ends and an epilogue.
#[test]
fn products_by_what_lasts() {
    let [f32, bf16, f16] = [DType::F32, DType::BF16, DType::F16];
    let sizes = [
        [600, 128, 390],
        [1500, 128, 131],
        [600, 256, 2500],
        [2000, 256, 1003],
        [520, 768, 776],
    ];
    let of = |size: [u64; 3], dtype, result, is_finished: bool| {
        let [m, k, n] = size;
        let mut own = matrices([m, n, k], dtype, [Contiguous; 2]);
        own.types.output = result;
        own.attrs = vec![Attr::ints("lasting", [1])];
        if is_finished {
            own.types.inputs.extend([dtype; 2]);
            own.operands.push((vec![n], Contiguous));
            own.operands.push((vec![m, n], Contiguous));
            let text = "add(x, i2); max(%0, 0); add(%1, i3)";
            own.attrs.insert(0, Attr::text("epilogue", text));
        }
        own
    };
    let own = sizes.into_iter().enumerate().flat_map(|(place, size)| {
        let dtype = [bf16, f16][place % 2];
        let small = (place < 2).then(|| of(size, bf16, Some(f32), false));
        [of(size, dtype, None, true)].into_iter().chain(small)
    });
    check("matmul", None, own);
}
