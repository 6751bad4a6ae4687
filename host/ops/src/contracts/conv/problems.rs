//! What `conv` is tried with: shapes, attributes, epilogues.

use super::super::shared::{EPILOGUE, loosened, some};
use crate::{attrs::Attr, layout::Layout, problems::Problem, values::Rng};
use nx_vulkan_abi::DType;

/// Those in a layout.
pub(super) fn of(layout: Layout, rng: &mut Rng) -> Vec<Problem> {
    let finished: Vec<Problem> = match layout {
        Layout::Contiguous => FINISHED.iter().copied().map(finished).collect(),
        Layout::Large => FINISHED_LARGE.iter().copied().map(finished).collect(),
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => {
            vec![finished(rng.pick(&FINISHED))]
        }
        Layout::Empty => vec![finished(FINISHED_EMPTY)],
        Layout::Scalar | Layout::Deep => Vec::new(),
    };
    let (all, count): (&[Conv], usize) = match layout {
        Layout::Contiguous => (CONVS, CONVS.len()),
        Layout::Deep => (DEEP, DEEP.len()),
        Layout::Empty => (EMPTY, EMPTY.len()),
        Layout::Scalar => (SINGLE, SINGLE.len()),
        Layout::Large => (LARGE, LARGE.len()),
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => (CONVS, 3),
    };
    let plain = some(all, count, rng).into_iter().map(problem);
    let problems = plain.chain(finished);
    problems.map(|problem| loosened(problem, rng)).collect()
}

/// Shapes of x and kernel, then attributes by name; the others have their defaults.
type Conv = (
    &'static [u64],
    &'static [u64],
    &'static [(&'static str, &'static [i64])],
);

/// A product of matrices.
const PRODUCT: Conv = (
    &[2, 3, 5, 8],
    &[1, 1, 8, 6],
    &[
        ("input_permutation", &[0, 3, 1, 2]),
        ("kernel_permutation", &[3, 2, 0, 1]),
        ("output_permutation", &[0, 3, 1, 2]),
    ],
);
/// A product of matrices for each of the batch, with channels behind it.
const PLANES: Conv = (&[3, 7, 5, 2], &[6, 7, 1, 1], &[]);
const CONVS: &[Conv] = &[
    (&[2, 3, 9, 8], &[4, 3, 3, 2], &[("padding", &[1, 1, 0, 1])]),
    (
        &[2, 7, 6, 3],
        &[3, 2, 3, 10],
        &[
            ("input_permutation", &[0, 3, 1, 2]),
            ("kernel_permutation", &[3, 2, 0, 1]),
            ("output_permutation", &[0, 3, 1, 2]),
            ("strides", &[2, 1]),
        ],
    ),
    (
        &[2, 4, 11],
        &[6, 2, 3],
        &[("feature_group_size", &[2]), ("kernel_dilation", &[2])],
    ),
    (
        &[4, 3, 5, 5],
        &[6, 3, 2, 2],
        &[("batch_group_size", &[2]), ("padding", &[-1, 2, 1, 0])],
    ),
    (
        &[1, 6, 7, 7],
        &[6, 1, 3, 3],
        &[("feature_group_size", &[6]), ("padding", &[1; 4])],
    ),
    (
        &[2, 3, 4, 5],
        &[9, 3, 3, 3],
        &[
            ("input_dilation", &[2, 3]),
            ("padding", &[2, 2, 1, 3]),
            ("strides", &[1, 2]),
        ],
    ),
    (
        &[3, 5, 4, 4],
        &[18, 5, 1, 1],
        &[("output_permutation", &[1, 0, 3, 2])],
    ),
    (
        &[2, 2, 3, 4, 5],
        &[3, 2, 2, 2, 3],
        &[("strides", &[1, 2, 1]), ("padding", &[0, 0, 1, 1, 0, 0])],
    ),
    (&[5, 7], &[9, 7], &[]),
    (
        &[12, 16, 40],
        &[12, 16, 33],
        &[
            ("input_permutation", &[1, 0, 2]),
            ("kernel_permutation", &[1, 0, 2]),
        ],
    ),
    (
        &[1, 1, 2],
        &[8, 1, 5],
        &[
            ("padding", &[6, 6]),
            ("kernel_dilation", &[2]),
            ("input_dilation", &[4]),
        ],
    ),
    PRODUCT,
    PLANES,
    // One product, of a kernel with channels first.
    (
        &[1, 5, 9],
        &[5, 4, 1],
        &[("kernel_permutation", &[1, 0, 2])],
    ),
];
const DEEP: &[Conv] = &[
    (
        &[2, 3, 3, 4, 3],
        &[8, 3, 2, 2, 2],
        &[
            ("kernel_dilation", &[1, 2, 1]),
            ("padding", &[1, 0, 1, 1, 0, 1]),
        ],
    ),
    (
        &[2, 2, 2, 3, 2, 3],
        &[3, 2, 1, 2, 2, 2],
        &[("strides", &[1, 1, 1, 2])],
    ),
];
const EMPTY: &[Conv] = &[
    (&[2, 0, 4], &[3, 0, 2], &[]),
    (&[0, 2, 4], &[3, 2, 2], &[]),
    (&[2, 2, 4], &[0, 2, 2], &[]),
];
const SINGLE: &[Conv] = &[(&[1, 1], &[1, 1], &[]), (&[1, 1, 1], &[1, 1, 1], &[])];
const LARGE: &[Conv] = &[
    (&[4, 16, 40, 41], &[33, 16, 3, 3], &[("padding", &[1; 4])]),
    (
        &[2, 30, 31, 24],
        &[3, 3, 24, 64],
        &[
            ("input_permutation", &[0, 3, 1, 2]),
            ("kernel_permutation", &[3, 2, 0, 1]),
            ("output_permutation", &[0, 3, 1, 2]),
        ],
    ),
    // A gradient of the kernel: few results of many terms.
    (&[8, 12, 30, 30], &[16, 12, 28, 28], &[]),
    (
        &[16, 8, 20, 20],
        &[128, 8, 18, 18],
        &[("batch_group_size", &[4])],
    ),
    // Few filters of many elements.
    (&[1, 512, 20, 20], &[5, 512, 3, 3], &[("padding", &[1; 4])]),
    (
        &[2, 12, 12, 300],
        &[3, 3, 300, 3],
        &[
            ("input_permutation", &[0, 3, 1, 2]),
            ("kernel_permutation", &[3, 2, 0, 1]),
            ("output_permutation", &[0, 3, 1, 2]),
        ],
    ),
];

/// A convolution, shapes of further operands, and what becomes of it.
type Finished = (Conv, &'static [&'static [u64]], &'static str);

const GELU: &str = "add(x, i2); multiply(%0, 0.7071067811865476); erf(%1); add(%2, 1); multiply(%0, %3); multiply(%4, 0.5)";
const FINISHED: [Finished; 9] = [
    // A bias of each filter, whichever axis that is.
    (CONVS[0], &[&[4, 1, 1]], "add(x, i2); max(%0, 0)"),
    (CONVS[1], &[&[10]], GELU),
    (
        CONVS[2],
        &[&[6, 1], &[2, 6, 7]],
        "add(x, i2); sigmoid(%0); multiply(%0, %1); add(%2, i3)",
    ),
    (
        CONVS[3],
        &[&[2, 1, 1, 1], &[]],
        "multiply(x, i2); subtract(%0, i3)",
    ),
    (
        CONVS[4],
        &[&[6, 1, 1], &[1, 6, 1, 1]],
        "multiply(x, i2); add(%0, i3); clip(%1, 0, 6)",
    ),
    // Axes that do not collapse.
    (
        CONVS[5],
        &[&[9, 1, 8]],
        "add(x, i2); greater(%0, 0); multiply(%0, 0.01); select(%1, %0, %2)",
    ),
    (CONVS[5], &[], "abs(x); log1p(%0)"),
    (
        PRODUCT,
        &[&[6], &[2, 3, 5, 6]],
        "add(x, i2); add(%0, i3); max(%1, 0)",
    ),
    (
        PLANES,
        &[&[6, 1, 1], &[3, 6, 5, 2]],
        "add(x, i2); add(%0, i3); max(%1, 0)",
    ),
];
const FINISHED_LARGE: [Finished; 4] = [
    (LARGE[0], &[&[33, 1, 1]], "add(x, i2); max(%0, 0)"),
    (
        LARGE[1],
        &[&[64], &[2, 28, 29, 64]],
        "add(x, i2); add(%0, i3); max(%1, 0)",
    ),
    (LARGE[2], &[&[8, 16, 1, 1]], "multiply(x, i2); tanh(%0)"),
    (LARGE[3], &[&[]], "multiply(x, i2); negate(%0)"),
];
const FINISHED_EMPTY: Finished = (EMPTY[0], &[&[3, 1]], "add(x, i2)");

/// What is multiplied in one type, finished in another and kept in a third.
pub(super) const MIXED: &[(&[DType], DType)] = &[
    (&[DType::BF16, DType::BF16, DType::F32], DType::BF16),
    (&[DType::F16, DType::F16, DType::F32], DType::F32),
    (&[DType::F32, DType::BF16, DType::F32], DType::F32),
    (&[DType::F32, DType::F32, DType::F32], DType::F16),
    (&[DType::F32, DType::F32, DType::F64], DType::F64),
    (&[DType::S8, DType::U8, DType::F32], DType::F16),
];

fn finished((conv, operands, epilogue): Finished) -> Problem {
    let mut problem = problem(conv);
    let operands = operands.iter().map(|shape| shape.to_vec());
    problem.inputs.extend(operands);
    problem.attrs.push(Attr::text(EPILOGUE.name, epilogue));
    problem
}

fn problem((x, kernel, attrs): Conv) -> Problem {
    Problem {
        inputs: vec![x.to_vec(), kernel.to_vec()],
        output: Vec::new(),
        attrs: attrs
            .iter()
            .map(|(name, list)| Attr::ints(name, *list))
            .collect(),
    }
}
