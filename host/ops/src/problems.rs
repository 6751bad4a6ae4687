//! Shapes and attributes for the sweep, by kind of op and layout; element types are chosen elsewhere.

use crate::{
    Attr,
    infer::operand_shapes,
    kernels::{OpInfo, OpKind},
    layout::Layout,
    values::Rng,
};

/// Shapes of the operands (of the result, for an op without) and attributes.
#[derive(Debug, Clone)]
pub struct Problem {
    pub inputs: Vec<Vec<u64>>,
    pub output: Vec<u64>,
    pub attrs: Vec<Attr>,
}

/// The problems of `op` in `layout`. Elementwise there is one: if it `varies`, one of many shapes, else a shape
/// with which several layouts need the same shader.
pub fn problems(op: &OpInfo, layout: Layout, varies: bool, rng: &mut Rng) -> Vec<Problem> {
    match op.kind {
        OpKind::Iota | OpKind::Eye | OpKind::Fill => creation(op.kind, layout),
        OpKind::Reduction => reductions(layout, rng, false),
        OpKind::ArgReduction => reductions(layout, rng, true),
        OpKind::Dot => dots(layout, rng),
        OpKind::Leapfrog => chains(op, layout, rng),
        _ => vec![elementwise(layout, op.arity, varies, rng)],
    }
}

fn elementwise(layout: Layout, arity: usize, varies: bool, rng: &mut Rng) -> Problem {
    let shapes: &[&[u64]] = match layout {
        Layout::Contiguous => &[&[1021], &[3, 5, 7], &[12, 16], &[1, 259]],
        Layout::Transposed => &[&[9, 7], &[7, 6], &[8, 12], &[4, 5, 8], &[33, 17]],
        Layout::Broadcast | Layout::Reversed => &[&[9, 7], &[8, 16], &[3, 4, 5]],
        Layout::Sliced => &[&[5, 7], &[67], &[8, 12], &[3, 4, 5]],
        Layout::Empty => &[&[0], &[0, 3], &[4, 0]],
        Layout::Scalar => &[&[]],
        Layout::Deep => &[&[2, 3, 2, 5, 3], &[2, 1, 3, 2, 2, 3], &[3, 2, 2, 2, 4]],
        Layout::Large => &[&[(1 << 20) + 3], &[1 << 20]],
    };
    let shape = if varies || layout == Layout::Contiguous {
        rng.pick(shapes)
    } else {
        shapes[0]
    };
    let own = |index: usize| {
        // A later operand may have fewer axes, or axes of extent 1, and repeat along the others.
        if layout != Layout::Broadcast || index == 0 {
            return shape.to_vec();
        }
        match rng.0 >> (8 * index) & 3 {
            _ if !varies => shape[1..].to_vec(),
            0 => shape[1..].to_vec(),
            1 => Vec::new(),
            2 => [&shape[..shape.len() - 1], &[1]].concat(),
            _ => [&[1], &shape[1..]].concat(),
        }
    };
    Problem {
        inputs: (0..arity).map(own).collect(),
        output: shape.to_vec(),
        attrs: Vec::new(),
    }
}

fn creation(kind: OpKind, layout: Layout) -> Vec<Problem> {
    let shapes: &[&[u64]] = match (kind, layout) {
        (OpKind::Eye, Layout::Scalar) => &[],
        (OpKind::Eye, Layout::Empty) => &[&[0, 3], &[2, 0, 4]],
        (OpKind::Eye, Layout::Large) => &[&[1025, 1027]],
        (OpKind::Eye, _) => &[&[5, 7], &[7, 5], &[2, 4, 4], &[1, 1]],
        (_, Layout::Scalar) => &[&[]],
        (_, Layout::Empty) => &[&[0], &[3, 0]],
        (_, Layout::Large) => &[&[(1 << 20) + 3]],
        _ => &[&[1021], &[3, 5, 7], &[2, 3, 2, 5, 3]],
    };
    let problem = |shape: &&[u64], attrs: Vec<Attr>| Problem {
        inputs: Vec::new(),
        output: shape.to_vec(),
        attrs,
    };
    let axes = |shape: &[u64]| -> Vec<Vec<i64>> {
        let each = (0..shape.len() as i64).map(|axis| vec![axis]);
        if kind == OpKind::Iota {
            each.chain([Vec::new()]).collect()
        } else {
            vec![Vec::new()]
        }
    };
    let attrs = |axis: Vec<i64>| {
        if kind == OpKind::Iota {
            vec![Attr::ints("axis", axis)]
        } else {
            Vec::new()
        }
    };
    shapes
        .iter()
        .flat_map(|shape| {
            axes(shape)
                .into_iter()
                .map(move |axis| problem(shape, attrs(axis)))
        })
        .collect()
}

/// Shape, and the axes to reduce. Arg reductions take those with one axis, or with all of them.
type Reduction = (&'static [u64], &'static [i64]);

const REDUCTIONS: &[Reduction] = &[
    (&[5, 7, 3], &[0]),
    (&[5, 7, 3], &[1]),
    (&[5, 7, 3], &[2]),
    (&[5, 7, 3], &[0, 2]),
    (&[5, 7, 3], &[0, 1, 2]),
    (&[37], &[0]),
    (&[3, 1031], &[1]),
    (&[1031, 3], &[0]),
    (&[64, 128], &[0]),
    (&[129, 130], &[1]),
    (&[70_001], &[0]),
];
const DEEP: &[Reduction] = &[
    (&[2, 3, 2, 5, 3], &[1, 3]),
    (&[2, 3, 2, 5, 3], &[2]),
    (&[3, 2, 4, 2, 3], &[0, 4]),
];
const EMPTY: &[Reduction] = &[
    (&[0, 3], &[1]),
    (&[3, 0, 2], &[2]),
    (&[0, 3], &[0]),
    (&[3, 0, 2], &[1]),
];
const SCALAR: &[Reduction] = &[(&[1], &[0]), (&[1, 1], &[0]), (&[1, 1, 1], &[0, 1, 2])];
const LARGE: &[Reduction] = &[
    (&[(1 << 20) + 3], &[0]),
    (&[3, 400_001], &[1]),
    (&[1025, 1027], &[0]),
    (&[1025, 1027], &[1]),
    (&[66, 127, 129], &[1]),
];

fn reductions(layout: Layout, rng: &mut Rng, arg: bool) -> Vec<Problem> {
    let (all, count) = match layout {
        Layout::Contiguous => (REDUCTIONS, REDUCTIONS.len()),
        Layout::Deep => (DEEP, 2),
        // An arg reduction over no elements has no answer.
        Layout::Empty => (if arg { &EMPTY[..2] } else { EMPTY }, EMPTY.len()),
        Layout::Scalar => (SCALAR, SCALAR.len()),
        Layout::Large => (LARGE, LARGE.len()),
        _ => (&REDUCTIONS[..REDUCTIONS.len() - 1], 3),
    };
    let usable = |(shape, axes): &&Reduction| !arg || axes.len() == 1 || axes.len() == shape.len();
    let mut chosen: Vec<&Reduction> = all.iter().filter(usable).collect();
    while chosen.len() > count {
        chosen.swap_remove(rng.below(chosen.len() as u64) as usize);
    }
    let attrs = |(shape, axes): &Reduction, rng: &mut Rng| {
        if !arg {
            return vec![Attr::ints("axes", *axes)];
        }
        let axis = if axes.len() == shape.len() && layout != Layout::Empty {
            &[]
        } else {
            *axes
        };
        vec![
            Attr::ints("axis", axis),
            Attr::text("tie_break", rng.pick(&["low", "high"])),
        ]
    };
    let problem = |reduction: &Reduction, rng: &mut Rng| Problem {
        inputs: vec![reduction.0.to_vec()],
        output: Vec::new(),
        attrs: attrs(reduction, rng),
    };
    chosen
        .into_iter()
        .map(|reduction| problem(reduction, rng))
        .collect()
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
const DEEP_DOTS: &[Dot] = &[
    (&[2, 3, 2, 5, 3], &[2, 3, 5, 4], &[3], &[2], 2),
    (&[2, 3, 2, 4, 3], &[4, 2, 2, 3, 5], &[0, 3], &[1, 0], 0),
];
const EMPTY_DOTS: &[Dot] = &[
    (&[3, 0], &[0, 4], &[1], &[0], 0),
    (&[0, 3], &[3, 4], &[1], &[0], 0),
    (&[0, 3, 2], &[0, 2, 4], &[2], &[1], 1),
];
const LARGE_DOTS: &[Dot] = &[
    (&[260, 300], &[300, 280], &[1], &[0], 0),
    (&[256, 320], &[192, 320], &[1], &[1], 0),
    (&[300, 140], &[300, 200], &[0], &[0], 0),
    (&[3, 128, 130], &[3, 130, 132], &[2], &[1], 1),
    (&[512, 1024], &[1024], &[1], &[0], 0),
    (&[40, 20_000], &[20_000, 36], &[1], &[0], 0),
];

fn dots(layout: Layout, rng: &mut Rng) -> Vec<Problem> {
    let (all, count): (&[Dot], usize) = match layout {
        Layout::Contiguous => (DOTS, DOTS.len()),
        Layout::Deep => (DEEP_DOTS, DEEP_DOTS.len()),
        Layout::Empty => (EMPTY_DOTS, EMPTY_DOTS.len()),
        Layout::Scalar => (&[(&[], &[], &[], &[], 0)], 1),
        Layout::Large => (LARGE_DOTS, LARGE_DOTS.len()),
        _ => (DOTS, 3),
    };
    let mut chosen: Vec<&Dot> = all.iter().collect();
    while chosen.len() > count {
        chosen.swap_remove(rng.below(chosen.len() as u64) as usize);
    }
    let problem = |(a, b, contract_a, contract_b, batch): &Dot| Problem {
        inputs: vec![a.to_vec(), b.to_vec()],
        output: Vec::new(),
        attrs: vec![
            Attr::ints("batch_a", Vec::from_iter(0..*batch)),
            Attr::ints("batch_b", Vec::from_iter(0..*batch)),
            Attr::ints("contract_a", *contract_a),
            Attr::ints("contract_b", *contract_b),
        ],
    };
    chosen.into_iter().map(problem).collect()
}

/// Chains, steps and coordinates. No chains are the only empty problem that keeps the contract.
const CHAINS: &[[u64; 3]] = &[[1, 1, 1], [1, 32, 3], [3, 5, 17], [2, 7, 257], [5, 3, 64]];
const EMPTY_CHAINS: &[[u64; 3]] = &[[0, 3, 5]];
const SCALAR_CHAINS: &[[u64; 3]] = &[[1, 4, 1]];
const LARGE_CHAINS: &[[u64; 3]] = &[[40, 24, 1000], [2, 3, 70_001]];

fn chains(op: &OpInfo, layout: Layout, rng: &mut Rng) -> Vec<Problem> {
    let (all, count) = match layout {
        Layout::Contiguous => (CHAINS, CHAINS.len()),
        Layout::Empty => (EMPTY_CHAINS, 1),
        Layout::Scalar => (SCALAR_CHAINS, 1),
        Layout::Large => (LARGE_CHAINS, LARGE_CHAINS.len()),
        _ => (&CHAINS[1..], 2),
    };
    let mut chosen: Vec<[u64; 3]> = all.to_vec();
    while chosen.len() > count {
        chosen.swap_remove(rng.below(chosen.len() as u64) as usize);
    }
    let problem = |[chains, steps, extent]: [u64; 3]| Problem {
        inputs: operand_shapes(op, &[chains, extent]),
        output: vec![chains, steps, extent],
        attrs: Vec::new(),
    };
    chosen.into_iter().map(problem).collect()
}
