//! Blocks that scan an axis: each result is made of the elements up to it.

use super::{
    reduce::{FACTORS, Reduction, reductions},
    shared::{ELEMENTWISE, NUMBER, REAL, default, in_range},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, scan},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    problems::Problem,
    tolerance::{Bound, Growth},
    values::{
        Domain::{self, Factor, Repeating, Term},
        Rng,
    },
};

const SHAPE: Contract = Contract {
    title: "Scans",
    attributes: &[
        Attribute {
            name: "axis",
            kind: AttributeKind::Ints,
            doc: "the axis to scan; 0 by default",
        },
        Attribute {
            name: "reverse",
            kind: AttributeKind::Ints,
            doc: "1 to scan from the end, 0 (the default) from the start",
        },
    ],
    complete: |_, _, attrs| {
        default(attrs, Attr::ints("axis", [0]));
        default(attrs, Attr::ints("reverse", [0]));
    },
    infer: |_, inputs, _| Ok(inputs[0].clone()),
    check: |_, inputs, outputs, attrs| {
        let (x, out, axis) = (&inputs[0], &outputs[0], ints(attrs, "axis"));
        let &[_] = axis else {
            return Err(format!("attribute axis must be one axis, got {axis:?}"));
        };
        in_range("axis", axis, x)?;
        let reverse = ints(attrs, "reverse");
        if !matches!(reverse, [] | [0 | 1]) {
            return Err(format!("attribute reverse must be 0 or 1, got {reverse:?}"));
        }
        if x.shape != out.shape {
            return Err("the result's shape is not the operand's".to_owned());
        }
        Ok(())
    },
    problems: |_, layout, _, rng| scans(layout, |(_, axes)| axes.len() == 1, rng),
    terms: |inputs, _, attrs| {
        let axis = ints(attrs, "axis").first().copied().unwrap_or(0);
        inputs[0].get(axis as usize).copied().unwrap_or(1)
    },
    ..ELEMENTWISE
};

const SCAN: Contract = SHAPE;

/// Long lines of factors come to overflow within the sweep's tolerance of it, where nothing tells infinity from a number.
const PRODUCT: Contract = Contract {
    problems: |_, layout, _, rng| {
        let short = |(shape, axes): &Reduction| axes.len() == 1 && shape[axes[0] as usize] < 2000;
        scans(layout, short, rng)
    },
    ..SHAPE
};

fn scans(layout: Layout, usable: fn(&Reduction) -> bool, rng: &mut Rng) -> Vec<Problem> {
    let chosen = reductions(layout, EMPTY, usable, rng);
    let problem = |(shape, axis): Reduction| Problem {
        inputs: vec![shape.to_vec()],
        output: Vec::new(),
        attrs: vec![
            Attr::ints("axis", axis),
            Attr::ints("reverse", [rng.below(2) as i64]),
        ],
    };
    chosen.into_iter().map(problem).collect()
}

const EMPTY: &[Reduction] = &[(&[0, 3], &[1]), (&[0, 3], &[0]), (&[3, 0, 2], &[2])];

const fn row(
    name: &'static str,
    (bound, domains): (Bound, &'static [Domain]),
    kernel: Kernel,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract: &SCAN,
        takes: &[REAL],
        gives: Gives::Operand,
        bound,
        domains,
        partial: None,
        lane: None,
        kernel,
    }
}

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    Op { takes: &[NUMBER], ..row("Nx.Block.CumulativeSum", (Bound::reduces(Growth::Terms), &[Term]), Kernel::Whole(scan::sum), "sums of the elements up to each, accumulated in the operand's type, f16 and bf16 in f32; integers wrap") },
    Op { contract: &PRODUCT, takes: &[NUMBER], ..row("Nx.Block.CumulativeProduct", (FACTORS, &[Factor]), Kernel::Whole(scan::product), "products of the elements up to each, accumulated as sums are") },
    row("Nx.Block.CumulativeMax", (Bound::ORDERS, &[Repeating]), Kernel::Whole(scan::max), "the largest of the elements up to each; NaN from the first NaN on"),
    row("Nx.Block.CumulativeMin", (Bound::ORDERS, &[Repeating]), Kernel::Whole(scan::min), "the smallest of the elements up to each; NaN from the first NaN on"),
];
