//! Convolutions at the edges of this pack's tiles and splits, in both ways, on a real device. What any pack is asked,
//! `nxv check` asks.

mod windows;

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr, Spec,
    attrs::ints,
    find,
    infer::infer,
    layout::{
        LAYOUTS,
        Layout::{self, Contiguous},
    },
    op::Types,
    values::Values,
};

/// Layouts of any rank, with elements.
const VIEWS: &[Layout] = LAYOUTS.split_at(5).0;
const TILED: Option<&str> = Some("window/conv_tiled");
const DIRECT: Option<&str> = Some("window/conv_direct");

/// Shapes of x and kernel, then attributes.
type Conv = (
    &'static [u64],
    &'static [u64],
    &'static [(&'static str, &'static [i64])],
);

const LAST: [(&str, &[i64]); 3] = [
    ("input_permutation", &[0, 3, 1, 2]),
    ("kernel_permutation", &[3, 2, 0, 1]),
    ("output_permutation", &[0, 3, 1, 2]),
];

/// Filters and positions around the tiles' edges; dilated, grouped, permuted, split.
const CONVS: &[Conv] = &[
    (&[2, 3, 9, 9], &[16, 3, 3, 3], &[("padding", &[1; 4])]),
    (&[1, 8, 17, 9], &[33, 8, 2, 3], &[("strides", &[2, 1])]),
    (
        &[3, 4, 12, 11],
        &[65, 4, 3, 3],
        &[("padding", &[0, 2, -1, 1]), ("kernel_dilation", &[2, 1])],
    ),
    (&[2, 9, 5, 4], &[130, 9, 1, 1], &[("strides", &[2, 1])]),
    (
        &[2, 12, 7, 5],
        &[24, 4, 3, 2],
        &[("feature_group_size", &[3]), ("padding", &[1; 4])],
    ),
    (&[4, 5, 6, 7], &[36, 5, 2, 2], &[("batch_group_size", &[2])]),
    (
        &[2, 6, 5, 4],
        &[20, 6, 3, 3],
        &[("input_dilation", &[2, 3]), ("padding", &[2, 1, 2, 2])],
    ),
    (
        &[2, 9, 8, 12],
        &[3, 3, 12, 40],
        &[LAST[0], LAST[1], LAST[2], ("padding", &[1; 4])],
    ),
    (
        &[1, 30, 12],
        &[17, 30, 3],
        &[("output_permutation", &[2, 1, 0])],
    ),
    (&[40, 16], &[12, 16], &[]),
    (
        &[2, 3, 4, 5, 6],
        &[9, 3, 2, 2, 3],
        &[("strides", &[1, 1, 2])],
    ),
    (&[8, 12, 22, 22], &[16, 12, 20, 20], &[]),
    (&[10, 40, 6, 6], &[64, 40, 4, 4], &[]),
];

const EXCHANGED: [(&str, &[i64]); 3] = [
    ("input_permutation", &[1, 0, 2, 3]),
    ("kernel_permutation", &[1, 0, 2, 3]),
    ("output_permutation", &[1, 0, 2, 3]),
];

const GROUPED: Conv = (
    &[4, 25, 24, 96],
    &[1, 1, 48, 128],
    &[LAST[0], LAST[1], LAST[2], ("feature_group_size", &[2])],
);
const GRADIENTS: [Conv; 2] = [
    (
        &[32, 24, 20, 20],
        &[32, 40, 18, 18],
        &[EXCHANGED[0], EXCHANGED[1], EXCHANGED[2]],
    ),
    (
        &[20, 24, 21, 21],
        &[20, 40, 10, 10],
        &[
            EXCHANGED[0],
            EXCHANGED[1],
            EXCHANGED[2],
            ("kernel_dilation", &[2, 2]),
        ],
    ),
];

/// Blocks of channels of each size, filters and positions around a subgroup's, filters and positions last, gradients of kernels
/// with and without strides, groups, holes.
const MATRICES: &[Conv] = &[
    (&[2, 64, 16, 17], &[70, 64, 3, 3], &[("padding", &[1; 4])]),
    (&[2, 33, 30, 20], &[65, 33, 3, 3], &[("strides", &[2, 3])]),
    (
        &[3, 16, 19, 21],
        &[40, 16, 5, 3],
        &[("kernel_dilation", &[2, 1])],
    ),
    (
        &[1, 8, 44, 41],
        &[17, 8, 3, 3],
        &[("padding", &[0, 2, -1, 1])],
    ),
    (
        &[2, 3, 64, 64],
        &[64, 3, 7, 7],
        &[("strides", &[2, 2]), ("padding", &[3; 4])],
    ),
    (&[4, 64, 20, 20], &[128, 64, 1, 1], &[("strides", &[2, 2])]),
    (
        &[2, 20, 21, 64],
        &[3, 3, 64, 96],
        &[LAST[0], LAST[1], LAST[2], ("padding", &[1; 4])],
    ),
    GROUPED,
    (
        &[4, 37, 24, 64],
        &[1, 1, 64, 96],
        &[LAST[0], LAST[1], LAST[2], ("strides", &[2, 1])],
    ),
    GRADIENTS[0],
    GRADIENTS[1],
    (
        &[3, 96, 14, 15],
        &[66, 32, 3, 3],
        &[("feature_group_size", &[3])],
    ),
    (
        &[8, 32, 13, 14],
        &[64, 32, 3, 3],
        &[("batch_group_size", &[2])],
    ),
    (
        &[2, 32, 12, 13],
        &[48, 32, 3, 3],
        &[("input_dilation", &[2, 2]), ("padding", &[2, 1, 2, 2])],
    ),
    (&[8, 48, 200], &[64, 48, 9], &[("padding", &[4, 4])]),
    (&[2, 32, 8, 9, 10], &[32, 32, 3, 2, 3], &[]),
    (
        &[6, 140, 24, 18],
        &[130, 70, 1, 1],
        &[("feature_group_size", &[2])],
    ),
    (
        &[4, 264, 14, 22],
        &[80, 132, 1, 1],
        &[("feature_group_size", &[2])],
    ),
    (
        &[40, 128, 36],
        &[256, 64, 1],
        &[("feature_group_size", &[2])],
    ),
    // Positions are apart, and so many that units pay: what they read lies in runs.
    (
        &[16, 12, 40, 161],
        &[64, 12, 4, 4],
        &[("strides", &[1, 4]), ("kernel_dilation", &[1, 3])],
    ),
    (
        &[16, 32, 40, 161],
        &[64, 32, 3, 4],
        &[("strides", &[1, 4]), ("kernel_dilation", &[1, 6])],
    ),
    (
        &[16, 32, 40, 161],
        &[64, 32, 3, 4],
        &[("strides", &[1, 3]), ("kernel_dilation", &[1, 2])],
    ),
];

fn own((x, kernel, attrs): Conv, dtype: DType, layout: Layout, values: Values) -> Own {
    Own {
        op: "conv",
        types: Types {
            inputs: vec![dtype; 2],
            output: None,
        },
        operands: vec![(x.to_vec(), layout), (kernel.to_vec(), layout)],
        attrs: attrs
            .iter()
            .map(|(name, list)| Attr::ints(name, *list))
            .collect(),
        values,
    }
}

/// The same with an epilogue of a bias of each filter and a residual, and a result of type `result`.
fn finished(conv: Conv, [dtype, result]: [DType; 2], text: &str, layout: Layout) -> Own {
    let mut own = own(conv, dtype, layout, Values::Finite);
    let inputs: Vec<Spec> = own
        .operands
        .iter()
        .map(|(shape, _)| (dtype, shape.clone()))
        .collect();
    let conv = find("conv").expect("it is an op");
    let plain = infer(conv, &inputs, None, &own.attrs).expect("shapes fit");
    let shape = plain.outputs[0].1.clone();
    let filters = ints(&plain.attrs, "output_permutation")[1] as usize;
    let mut bias = vec![1; shape.len() - filters];
    bias[0] = shape[filters];
    own.operands
        .extend([(bias, Contiguous), (shape, Contiguous)]);
    own.attrs.push(Attr::text("epilogue", text));
    own.types = Types {
        inputs: vec![dtype, dtype, DType::F32, result],
        output: Some(result),
    };
    own
}

const RELU: &str = "add(x, i2); add(%0, i3); max(%1, 0)";
const TANH: &str = "multiply(x, 0.125); add(%0, i2); tanh(%1); multiply(%2, i3)";

/// Types with packs of four elements and of two, and one that is wider in registers than in memory.
fn everything() -> impl Iterator<Item = Own> {
    let whole = CONVS
        .iter()
        .map(|conv| own(*conv, DType::F32, Contiguous, Values::Finite));
    let types = [DType::BF16, DType::F64].into_iter();
    let types = types.flat_map(|dtype| {
        CONVS[..2]
            .iter()
            .map(move |conv| own(*conv, dtype, Contiguous, Values::Finite))
    });
    let views = VIEWS.iter().flat_map(|layout| {
        CONVS[1..3]
            .iter()
            .map(|conv| own(*conv, DType::F32, *layout, Values::Special))
    });
    whole.chain(types).chain(views)
}

#[test]
fn tiles_at_their_edges() {
    check("window", TILED, everything());
}

#[test]
fn straight_from_memory() {
    check("window", DIRECT, everything());
}

#[test]
fn epilogues_on_the_general_units() {
    let [f32, bf16, f16] = [DType::F32, DType::BF16, DType::F16];
    let types = [[f32, f32], [bf16, bf16], [f32, f16], [f16, f32]];
    for kernel in [TILED, DIRECT] {
        let all = CONVS.iter().zip(types.into_iter().cycle()).enumerate();
        let all =
            all.map(|(at, (conv, types))| finished(*conv, types, [RELU, TANH][at % 2], Contiguous));
        check("window", kernel, all);
    }
}

#[test]
fn epilogues_on_matrix_units_or_what_stands_in_for_them() {
    let [f32, bf16, f16] = [DType::F32, DType::BF16, DType::F16];
    let types = [
        [f16, f16],
        [bf16, bf16],
        [f32, f32],
        [f16, f32],
        [bf16, f16],
        [f32, f16],
    ];
    // Each of them with two pairs of types, each pair with a third of them.
    let all = types.into_iter().enumerate().flat_map(|(pair, types)| {
        let convs = MATRICES.iter().enumerate().skip(pair % 3).step_by(3);
        convs.map(move |(at, conv)| finished(*conv, types, [RELU, TANH][at % 2], Contiguous))
    });
    let views = VIEWS
        .iter()
        .map(|layout| finished(MATRICES[0], [f16, f16], RELU, *layout));
    check("window", None, all.chain(views));
}

#[test]
fn gradients_of_kernels() {
    let all = GRADIENTS.into_iter();
    check(
        "window",
        None,
        all.map(|conv| own(conv, DType::F16, Contiguous, Values::Finite)),
    );
}

#[test]
fn matrix_units_or_what_stands_in_for_them() {
    let types = [DType::F16, DType::BF16, DType::F32].into_iter();
    let all = types.flat_map(|dtype| {
        let finite = MATRICES
            .iter()
            .map(move |conv| own(*conv, dtype, Contiguous, Values::Finite));
        let views = VIEWS.iter().flat_map(move |layout| {
            let special = [MATRICES[0], GROUPED].into_iter();
            special.map(move |conv| own(conv, dtype, *layout, Values::Special))
        });
        finite.chain(views)
    });
    check("window", None, all);
}
