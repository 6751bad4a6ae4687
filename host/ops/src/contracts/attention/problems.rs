//! What attention is tried with: few rows and keys of odd sizes, and sizes that kernels of whole tiles take.

use super::{ORDER, SCORES};
use crate::{
    attrs::Attr, contracts::shared::some, layout::Layout, op::Types, problems::Problem, values::Rng,
};
use nx_vulkan_abi::DType;

const BF16: DType = DType::BF16;
const F16: DType = DType::F16;
const F32: DType = DType::F32;
const F64: DType = DType::F64;

/// Shapes of q, k and v, of further operands, and what becomes of the scores.
type Attention = (
    [&'static [u64]; 3],
    &'static [&'static [u64]],
    Option<&'static str>,
);

const SCALED: Option<&str> = Some("multiply(x, 0.125)");
const MASKED: Option<&str> = Some("multiply(x, 0.125); add(%0, i3)");
const CHOSEN: &str = "multiply(x, 0.5); greater(i3, 0.25); select(%1, %0, -inf)";
const SCALED_AND_MASKED: Option<&str> = Some("multiply(x, i4); add(%0, i3)");

const SMALL: &[Attention] = &[
    ([&[5, 7], &[9, 7], &[9, 4]], &[], None),
    ([&[1, 3], &[1, 3], &[1, 2]], &[], SCALED),
    ([&[2, 5, 8], &[2, 6, 8], &[2, 6, 3]], &[&[2, 1, 6]], MASKED),
    (
        [&[2, 3, 5, 4], &[2, 3, 7, 4], &[2, 3, 7, 6]],
        &[&[2, 1, 1, 7]],
        Some(CHOSEN),
    ),
    (
        [&[2, 3, 2, 5, 4], &[2, 3, 7, 4], &[2, 3, 7, 5]],
        &[&[2, 1, 1, 1, 7], &[]],
        SCALED_AND_MASKED,
    ),
    ([&[3, 4, 5], &[6, 5], &[6, 5]], &[&[4, 6]], MASKED),
    ([&[5, 80], &[130, 80], &[130, 40]], &[&[130]], MASKED),
    ([&[64, 64], &[77, 64], &[77, 64]], &[], SCALED),
    ([&[1, 128], &[300, 128], &[300, 64]], &[&[1]], MASKED),
    (
        [&[2, 5, 64], &[2, 77, 64], &[2, 77, 64]],
        &[&[5, 77], &[2, 1, 1]],
        SCALED_AND_MASKED,
    ),
];
const ONE: &[Attention] = &[([&[1, 1]; 3], &[], None)];
const EMPTY: &[Attention] = &[
    ([&[3, 4], &[0, 4], &[0, 2]], &[], None),
    ([&[0, 4], &[5, 4], &[5, 2]], &[&[5]], MASKED),
    ([&[2, 3, 4], &[2, 5, 4], &[2, 5, 0]], &[], SCALED),
    ([&[3, 0], &[5, 0], &[5, 2]], &[], None),
];
const DEEP: &[Attention] = &[
    (
        [&[2, 3, 2, 4, 3], &[2, 3, 5, 3], &[2, 3, 5, 4]],
        &[&[2, 1, 1, 4, 5]],
        MASKED,
    ),
    (
        [&[2, 2, 3, 5, 4], &[2, 2, 3, 6, 4], &[2, 2, 3, 6, 2]],
        &[],
        SCALED,
    ),
];
const LARGE: &[Attention] = &[
    (
        [&[2, 100, 64], &[2, 300, 64], &[2, 300, 64]],
        &[&[2, 1, 300]],
        MASKED,
    ),
    ([&[130, 80], &[260, 80], &[260, 80]], &[], SCALED),
];

/// Whole tiles of rows and keys, and edges; one row, and one key.
const TILES: &[Attention] = &[
    ([&[2, 64, 64], &[2, 128, 64], &[2, 128, 64]], &[], SCALED),
    ([&[64, 128], &[128, 128], &[128, 128]], &[], None),
    (
        [&[1, 2, 100, 64], &[1, 2, 300, 64], &[1, 2, 300, 64]],
        &[&[1, 1, 1, 300]],
        MASKED,
    ),
    (
        [&[2, 2, 4, 5, 64], &[2, 2, 77, 64], &[2, 2, 77, 64]],
        &[&[2, 1, 1, 5, 77]],
        MASKED,
    ),
    (
        [&[1, 2, 3, 1, 128], &[1, 2, 300, 128], &[1, 2, 300, 128]],
        &[&[1, 1, 1, 1, 300]],
        Some(CHOSEN),
    ),
    (
        [&[100, 80], &[130, 80], &[130, 40]],
        &[&[100, 130], &[]],
        SCALED_AND_MASKED,
    ),
    ([&[3, 5, 80], &[3, 1, 80], &[3, 1, 128]], &[], None),
    ([&[2, 1, 64], &[2, 77, 64], &[2, 77, 40]], &[&[]], MASKED),
    (
        [&[64, 64], &[64, 64], &[64, 64]],
        &[&[64, 64]],
        Some(CHOSEN),
    ),
    ([&[5, 40], &[130, 40], &[130, 64]], &[&[5, 1]], MASKED),
    // More rows than a device has units for, an odd number of keys, and a long row of them.
    (
        [&[8, 3, 545, 8], &[8, 257, 8], &[8, 257, 8]],
        &[&[8, 1, 1, 257]],
        MASKED,
    ),
    ([&[1, 64], &[1025, 64], &[1025, 64]], &[], SCALED),
];

/// Types of q, k and v that matrix units are for, and of the operands behind them.
const TILE_TYPES: &[&[DType]] = &[
    &[F16, F16, F16],
    &[BF16, BF16, BF16],
    &[F16, F16, F16, F32],
    &[BF16, BF16, BF16, F32],
];

/// Types of q, k and v, and of the operands behind them.
pub(super) const MIXED: &[&[DType]] = &[
    &[F16, F16, F16, F32],
    &[BF16, BF16, BF16, F32],
    &[BF16, BF16, BF16, DType::U8],
    &[F32, F32, F32, BF16],
    &[F32, F32, F32, F64],
    &[F64, F64, F64, F32],
];

pub(super) fn of(layout: Layout, rng: &mut Rng) -> Vec<Problem> {
    let all = match layout {
        Layout::Contiguous => SMALL.to_vec(),
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => {
            some(SMALL, 4, rng)
        }
        Layout::Empty => EMPTY.to_vec(),
        Layout::Scalar => ONE.to_vec(),
        Layout::Deep => DEEP.to_vec(),
        Layout::Large => some(LARGE, 1, rng),
    };
    // One in three with its result in another order.
    let problems = all.into_iter().map(problem).enumerate();
    let problems = problems.map(|(index, problem)| match index % 3 {
        2 => turned(problem),
        _ => problem,
    });
    problems.collect()
}

/// The problem, in whose result the first axis comes last but one.
fn turned(mut problem: Problem) -> Problem {
    let last = problem.inputs[0].len() as i64 - 1;
    let order = (1..last).chain([0, last]);
    problem.attrs.push(Attr::ints(ORDER, Vec::from_iter(order)));
    problem
}

/// Added integers would choose one key each; so they choose which keys count.
pub(super) fn fit(dtype: DType, problem: &mut Problem) {
    if dtype.is_integer() && problem.inputs.len() > super::OWN {
        problem.inputs.truncate(super::OWN + 1);
        problem.attrs.retain(|attr| attr.name != SCORES);
        problem.attrs.push(Attr::text(SCORES, CHOSEN));
    }
}

pub(super) fn tiles() -> (Vec<Types>, Vec<Problem>) {
    let types = |inputs: &&[DType]| Types {
        inputs: inputs.to_vec(),
        output: None,
    };
    let mut problems: Vec<Problem> = TILES.iter().copied().map(problem).collect();
    let others = problems.iter().step_by(3).cloned().map(turned);
    problems.extend(others.collect::<Vec<_>>());
    (TILE_TYPES.iter().map(types).collect(), problems)
}

fn problem((own, further, scores): Attention) -> Problem {
    let shapes = own.iter().chain(further).map(|shape| shape.to_vec());
    let text = scores.map(|scores| Attr::text(SCORES, scores));
    Problem {
        inputs: shapes.collect(),
        output: Vec::new(),
        attrs: text.into_iter().collect(),
    }
}
