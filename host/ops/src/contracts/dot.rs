//! `dot`: contraction of axes, with batches.

use super::shared::{
    ELEMENTWISE, EPILOGUE, NUMBER, PRECISION, fit_epilogue, high, in_range, loosened, result_type,
    some, without,
};
use crate::{
    attrs::{Attr, ints},
    kernels::{dot, kernel::Kernel},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    request::Spec,
    tolerance::{Bound, Growth},
    values::Domain::Term,
    view::Desc,
};
use nx_vulkan_abi::{DType, lasting::ATTRIBUTE as LASTING};

const NAMES: [&str; 4] = ["batch_a", "batch_b", "contract_a", "contract_b"];

const DOT: Contract = Contract {
    title: "Products",
    operands: &["a", "b"],
    attributes: &[
        axes(
            "batch_a",
            "the leading axes of a, `[0, 1, …]`, one for each of b; none by default",
        ),
        axes("batch_b", "the leading axes of b"),
        axes(
            "contract_a",
            "axes of a to sum over, in pairs with those of b; by default the last one",
        ),
        axes(
            "contract_b",
            "axes of b to sum over; by default the first one that is no batch axis",
        ),
        EPILOGUE,
        PRECISION,
        Attribute {
            name: LASTING,
            kind: AttributeKind::Ints,
            doc: "operands, of 0 and 1, that hold the same in many calls, as weights do: a kernel may prefer a form of them that is \
                  kept. None by default",
        },
    ],
    variadic: true,
    complete: |inputs, _, attrs| complete(inputs, attrs),
    infer: |op, inputs, attrs| Ok((result_type(op, inputs)?, shape(inputs, attrs))),
    check: |_, inputs, outputs, attrs| check(&inputs[0], &inputs[1], &outputs[0], attrs),
    problems: |_, layout, _, rng| {
        let finished: Vec<Problem> = match layout {
            Layout::Contiguous => FINISHED.iter().copied().map(finished).collect(),
            Layout::Large => vec![finished(rng.pick(&FINISHED_LARGE))],
            Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => {
                vec![finished(rng.pick(&FINISHED))]
            }
            Layout::Empty => vec![finished(FINISHED_EMPTY)],
            Layout::Scalar | Layout::Deep => Vec::new(),
        };
        let (all, count): (&[Dot], usize) = match layout {
            Layout::Contiguous => (DOTS, DOTS.len()),
            Layout::Deep => (DEEP, DEEP.len()),
            Layout::Empty => (EMPTY, EMPTY.len()),
            Layout::Scalar => (&[(&[], &[], &[], &[], 0)], 1),
            Layout::Large => (LARGE, LARGE.len()),
            Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => (DOTS, 3),
        };
        let plain = some(all, count, rng).into_iter().map(problem);
        let problems = plain.chain(finished);
        let mut all: Vec<Problem> = problems.map(|problem| loosened(problem, rng)).collect();
        let kept: Vec<Problem> = all.iter().step_by(8).cloned().map(lasts).collect();
        all.extend(kept);
        all
    },
    fit: fit_epilogue,
    alone: |op, dtype| Types {
        inputs: vec![dtype; op.arity()],
        output: Some(dtype),
    },
    mixed: |_| {
        let types = |(inputs, output): &(&[DType], DType)| Types {
            inputs: inputs.to_vec(),
            output: Some(*output),
        };
        (MIXED.iter().map(types).collect(), MIXED.len())
    },
    tiles,
    tiled: true,
    terms: |inputs, _, attrs| {
        let axes = ints(attrs, "contract_a").iter();
        axes.filter_map(|&n| inputs[0].get(n as usize)).product()
    },
    // |a| = mk, |b| = kn and |result| = mn; a batch enlarges each by the root of its extent.
    work: |inputs, output| {
        let elements = |shape: &[u64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
        let (a, b, c) = (elements(inputs[0]), elements(inputs[1]), elements(output));
        let extent = |x: f64, y: f64, z: f64| (x * y / z.max(1.0)).sqrt();
        vec![extent(a, c, b), extent(b, c, a), extent(a, b, c)]
    },
    // The operands of a product are square: their shapes must fit.
    square: |power| vec![1 << (power / 2); 2],
    ..ELEMENTWISE
};

const fn axes(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

fn complete(inputs: &[Spec], attrs: &mut Vec<Attr>) {
    for name in &NAMES[..2] {
        super::shared::default(attrs, Attr::ints(name, []));
    }
    if attrs.iter().any(|attr| attr.name.starts_with("contract")) {
        return;
    }
    let batch = ints(attrs, "batch_a").len() as i64;
    let last = inputs[0].1.len() as i64 - 1;
    let first = (inputs[1].1.len() as i64 > batch).then_some(batch);
    let pair = first.filter(|_| last >= batch).map(|first| [last, first]);
    for (side, name) in NAMES[2..].iter().enumerate() {
        attrs.push(Attr::ints(
            name,
            Vec::from_iter(pair.map(|pair| pair[side])),
        ));
    }
}

/// The problem, whose right operand lasts.
fn lasts(mut problem: Problem) -> Problem {
    problem.attrs.push(Attr::ints(LASTING, [1]));
    problem
}

fn shape(inputs: &[Spec], attrs: &[Attr]) -> Vec<u64> {
    let [batch_a, batch_b, contract_a, contract_b] = NAMES.map(|name| ints(attrs, name));
    let (a, b) = (&inputs[0].1, &inputs[1].1);
    let mut shape: Vec<u64> = a.iter().take(batch_a.len()).copied().collect();
    shape.extend(without(a, &[batch_a, contract_a].concat()));
    shape.extend(without(b, &[batch_b, contract_b].concat()));
    shape
}

fn check(a: &Desc<'_>, b: &Desc<'_>, out: &Desc<'_>, attrs: &[Attr]) -> Result<(), String> {
    let [batch_a, batch_b, contract_a, contract_b] = NAMES.map(|name| ints(attrs, name));
    for (name, axes, x) in [("batch_a", batch_a, a), ("batch_b", batch_b, b)] {
        in_range(name, axes, x)?;
        if !axes.iter().copied().eq(0..axes.len() as i64) {
            return Err(format!(
                "attribute {name} must be the leading axes [0, 1, ...], got {axes:?}"
            ));
        }
    }
    for (name, axes, batch, x) in [
        ("contract_a", contract_a, batch_a, a),
        ("contract_b", contract_b, batch_b, b),
    ] {
        in_range(name, axes, x)?;
        let repeats = (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
        if repeats || axes.iter().any(|axis| batch.contains(axis)) {
            return Err(format!(
                "attribute {name} repeats an axis or names a batch axis: {axes:?}"
            ));
        }
    }
    for (name, left, right) in [
        ("batch", batch_a, batch_b),
        ("contract", contract_a, contract_b),
    ] {
        if left.len() != right.len() {
            return Err(format!("{name} axes {left:?} and {right:?} do not pair up"));
        }
        let mut pairs = left.iter().zip(right);
        let unequal = pairs.find(|(i, j)| a.shape[**i as usize] != b.shape[**j as usize]);
        if let Some((i, j)) = unequal {
            return Err(format!("{name} axes {i} and {j} have different extents"));
        }
    }
    if let Some(operand) = ints(attrs, LASTING).iter().find(|n| !(0..2).contains(*n)) {
        return Err(format!(
            "attribute {LASTING} names operand {operand}, and a product is of 0 and 1"
        ));
    }
    let specs = [a, b].map(|x| (x.dtype, x.shape.to_vec()));
    if shape(&specs, attrs) == out.shape {
        Ok(())
    } else {
        Err("the result's shape is not batch, free axes of a, free axes of b".to_owned())
    }
}

/// Shapes of both operands, axes to contract of each, number of batch axes.
type Dot = (
    &'static [u64],
    &'static [u64],
    &'static [i64],
    &'static [i64],
    i64,
);

const DOTS: &[Dot] = &[
    (&[5, 7], &[7, 9], &[1], &[0], 0),
    (&[5, 7], &[9, 7], &[1], &[1], 0),
    (&[7, 5], &[7, 9], &[0], &[0], 0),
    (&[7, 5], &[9, 7], &[0], &[1], 0),
    (&[64, 64], &[64, 64], &[1], &[0], 0),
    (&[65, 129], &[129, 67], &[1], &[0], 0),
    (&[33, 65], &[65], &[1], &[0], 0),
    (&[65], &[65, 33], &[0], &[0], 0),
    (&[37], &[37], &[0], &[0], 0),
    (&[5], &[7], &[], &[], 0),
    (&[3, 2051], &[2051, 5], &[1], &[0], 0),
    (&[1, 3000], &[3000], &[1], &[0], 0),
    (&[3, 5, 7], &[3, 7, 4], &[2], &[1], 1),
    (&[2, 3, 4, 5], &[2, 3, 5, 6], &[3], &[2], 2),
    (&[3, 4, 5], &[4, 5, 6], &[1, 2], &[0, 1], 0),
    (&[3, 4, 5], &[5, 4, 6], &[1, 2], &[1, 0], 0),
    (&[4, 3, 5], &[6, 4, 2], &[0], &[1], 0),
];
const DEEP: &[Dot] = &[
    (&[2, 3, 2, 5, 3], &[2, 3, 5, 4], &[3], &[2], 2),
    (&[2, 3, 2, 4, 3], &[4, 2, 2, 3, 5], &[0, 3], &[1, 0], 0),
];
const EMPTY: &[Dot] = &[
    (&[3, 0], &[0, 4], &[1], &[0], 0),
    (&[0, 3], &[3, 4], &[1], &[0], 0),
    (&[0, 3, 2], &[0, 2, 4], &[2], &[1], 1),
];
const LARGE: &[Dot] = &[
    (&[260, 300], &[300, 280], &[1], &[0], 0),
    (&[256, 320], &[192, 320], &[1], &[1], 0),
    (&[300, 140], &[300, 200], &[0], &[0], 0),
    (&[3, 128, 130], &[3, 130, 132], &[2], &[1], 1),
    (&[512, 1024], &[1024], &[1], &[0], 0),
    (&[40, 20_000], &[20_000, 36], &[1], &[0], 0),
];

/// A product, shapes of further operands, and what becomes of it.
type Finished = (Dot, &'static [&'static [u64]], &'static str);

const GELU: &str = "add(x, i2); multiply(%0, 0.7071067811865476); erf(%1); add(%2, 1); multiply(%0, %3); multiply(%4, 0.5)";
const FINISHED: [Finished; 9] = [
    (
        (&[5, 7], &[7, 9], &[1], &[0], 0),
        &[&[9]],
        "add(x, i2); max(%0, 0)",
    ),
    ((&[33, 40], &[29, 40], &[1], &[1], 0), &[&[29]], GELU),
    (
        (&[40, 33], &[40, 32], &[0], &[0], 0),
        &[&[33, 1], &[33, 32]],
        "multiply(x, i2); add(%0, i3)",
    ),
    (
        (&[3, 5, 7], &[3, 7, 4], &[2], &[1], 1),
        &[&[4], &[]],
        "add(x, i2); sigmoid(%0); multiply(%0, %1); multiply(%2, i3)",
    ),
    (
        (&[2, 3, 4, 5], &[2, 3, 5, 6], &[3], &[2], 2),
        &[&[2, 3, 1, 1]],
        "subtract(x, i2); tanh(%0)",
    ),
    (
        (&[64, 2051], &[2051], &[1], &[0], 0),
        &[&[64]],
        "add(x, i2); greater(%0, 0); multiply(%0, 0.01); select(%1, %0, %2)",
    ),
    (
        (&[65], &[65, 133], &[0], &[0], 0),
        &[&[133]],
        "max(x, i2); abs(%0); negate(%1)",
    ),
    (
        (&[3, 2051], &[2051, 5], &[1], &[0], 0),
        &[&[1, 5]],
        "multiply(x, 0.125); add(%0, i2)",
    ),
    (
        (&[5], &[7], &[], &[], 0),
        &[&[5, 7], &[7], &[5, 1]],
        "multiply(x, i4); add(%0, i2); min(%1, i3)",
    ),
];
const FINISHED_LARGE: [Finished; 3] = [
    ((&[260, 300], &[300, 280], &[1], &[0], 0), &[&[280]], GELU),
    (
        (&[40, 20_000], &[20_000, 36], &[1], &[0], 0),
        &[&[36], &[40, 36]],
        "add(x, i2); sigmoid(%0); multiply(%0, %1); add(%2, i3)",
    ),
    (
        (&[512, 1024], &[1024], &[1], &[0], 0),
        &[&[]],
        "multiply(x, i2); exp(%0); log1p(%1)",
    ),
];
/// Of any type, integers too.
const FINISHED_TILES: [Finished; 2] = [
    (
        TILES[7],
        &[&[264], &[200, 264]],
        "add(x, i2); max(%0, 0); add(%1, i3)",
    ),
    (TILES[8], &[&[130]], "multiply(x, i2); negate(%0)"),
];
const FINISHED_EMPTY: Finished = ((&[0, 3], &[3, 4], &[1], &[0], 0), &[&[4]], "add(x, i2)");

/// What is multiplied in one type, finished in another and kept in a third.
const MIXED: &[(&[DType], DType)] = &[
    (&[DType::BF16, DType::BF16, DType::F32], DType::BF16),
    (&[DType::F16, DType::F16, DType::F32], DType::F32),
    (&[DType::F32, DType::BF16, DType::F32], DType::F32),
    (&[DType::F32, DType::F32, DType::F32], DType::F16),
    (&[DType::F32, DType::F32, DType::F64], DType::F64),
    (&[DType::S8, DType::S8, DType::F32], DType::S8),
    (&[DType::S8, DType::S8, DType::F32], DType::F16),
    (&[DType::U8, DType::U8, DType::U8], DType::S32),
];

/// Whole tiles of 64, 128 and 320, the four orders of axes, batches, and edges.
const TILES: &[Dot] = &[
    (&[128, 128], &[128, 128], &[1], &[0], 0),
    (&[256, 256], &[256, 256], &[1], &[0], 0),
    (&[320, 320], &[320, 320], &[1], &[0], 0),
    (&[256, 192], &[320, 192], &[1], &[1], 0),
    (&[192, 256], &[192, 128], &[0], &[0], 0),
    (&[128, 320], &[256, 128], &[0], &[1], 0),
    (&[3, 128, 64], &[3, 64, 128], &[2], &[1], 1),
    (&[200, 136], &[136, 264], &[1], &[0], 0),
    (&[129, 77], &[77, 130], &[1], &[0], 0),
];

/// Types of a, b and the result that cooperative matrices are for, converted ones among them.
const TILE_TYPES: &[[DType; 3]] = &[
    [DType::F16; 3],
    [DType::F16, DType::F16, DType::F32],
    [DType::BF16; 3],
    [DType::BF16, DType::BF16, DType::F32],
    [DType::F32; 3],
    [DType::F32, DType::BF16, DType::F32],
    [DType::F16, DType::F32, DType::F32],
    [DType::S8; 3],
    [DType::S8, DType::S8, DType::S32],
    [DType::U8, DType::U8, DType::U32],
];

fn tiles() -> (Vec<Types>, Vec<Problem>) {
    let types = |[a, b, result]: &[DType; 3]| Types {
        inputs: vec![*a, *b],
        output: Some(*result),
    };
    let plain = TILES.iter().copied().map(problem);
    let all = plain.chain(FINISHED_TILES.iter().copied().map(finished));
    let mut problems: Vec<Problem> = all.collect();
    let less = problems[1..].iter().step_by(4).cloned().map(high);
    let kept = problems.iter().step_by(2).cloned().map(lasts);
    problems.extend(less.chain(kept).collect::<Vec<_>>());
    (TILE_TYPES.iter().map(types).collect(), problems)
}

fn finished((dot, operands, epilogue): Finished) -> Problem {
    let mut problem = problem(dot);
    let operands = operands.iter().map(|shape| shape.to_vec());
    problem.inputs.extend(operands);
    problem.attrs.push(Attr::text(EPILOGUE.name, epilogue));
    problem
}

fn problem((a, b, contract_a, contract_b, batch): Dot) -> Problem {
    Problem {
        inputs: vec![a.to_vec(), b.to_vec()],
        output: Vec::new(),
        attrs: vec![
            Attr::ints("batch_a", Vec::from_iter(0..batch)),
            Attr::ints("batch_b", Vec::from_iter(0..batch)),
            Attr::ints("contract_a", contract_a),
            Attr::ints("contract_b", contract_b),
        ],
    }
}

pub(super) const OPS: &[Op] = &[Op {
    name: "dot",
    doc: "sums of products over the contracted axes; result axes are batch, free axes of a, free axes of b. Operands \
          convert to the result's type first; f16 and bf16 accumulate in f32, f32 in f32 or wider, integers wrap",
    contract: &DOT,
    takes: &[NUMBER, NUMBER],
    gives: Gives::Real,
    bound: Bound::reduces(Growth::Terms),
    domains: &[Term, Term],
    partial: None,
    lane: None,
    kernel: Kernel::Product(dot::run),
}];
