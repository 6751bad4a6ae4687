//! The index of an extreme element: `argmax`, `argmin`.

use super::{
    reduce::{Reduction, kept, reductions},
    shared::{ELEMENTWISE, MIXED, REAL, at_most_one_axis, default, pairs, types_of, without},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, reduce},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Domain::Repeating,
};
use nx_vulkan_abi::{DType, DTypeSet};

const ARG: Contract = Contract {
    title: "Index of an extreme element",
    attributes: &[
        Attribute {
            name: "axis",
            kind: AttributeKind::Ints,
            doc: "one axis, or empty (the default) for the flattened operand",
        },
        Attribute {
            name: "tie_break",
            kind: AttributeKind::Word(&["low", "high"]),
            doc: "which of equal elements wins; `low` by default",
        },
    ],
    complete: |_, _, attrs| {
        default(attrs, Attr::ints("axis", []));
        default(attrs, Attr::text("tie_break", "low"));
    },
    infer: |_, inputs, attrs| {
        let shape = match ints(attrs, "axis") {
            [] => Vec::new(),
            axis => without(&inputs[0].1, axis),
        };
        Ok((DType::S32, shape))
    },
    check: |_, inputs, outputs, attrs| {
        let (x, out, axis) = (&inputs[0], &outputs[0], ints(attrs, "axis"));
        at_most_one_axis(axis, x)?;
        let reduced = |i| axis.is_empty() || axis.contains(&i);
        kept(x, out, reduced)?;
        let mut axes = x.shape.iter().zip(0..);
        let nothing = axes.any(|(&extent, i)| extent == 0 && reduced(i));
        if nothing && !out.shape.contains(&0) {
            Err("there are no elements to choose from".to_owned())
        } else {
            Ok(())
        }
    },
    problems: |_, layout, _, rng| {
        // One axis, or all of them.
        let usable = |(shape, axes): &Reduction| axes.len() == 1 || axes.len() == shape.len();
        let chosen = reductions(layout, EMPTY, usable, rng);
        let mut problem = |(shape, axes): Reduction| {
            let all = axes.len() == shape.len() && layout != Layout::Empty;
            let axis = if all { &[][..] } else { axes };
            Problem {
                inputs: vec![shape.to_vec()],
                output: Vec::new(),
                attrs: vec![
                    Attr::ints("axis", axis),
                    Attr::text("tie_break", rng.pick(&["low", "high"])),
                ],
            }
        };
        chosen.into_iter().map(&mut problem).collect()
    },
    mixed: |_| {
        let integers = types_of(DTypeSet::INTEGER);
        let types = |(x, y)| Types {
            inputs: vec![x],
            output: Some(y),
        };
        (
            pairs(&types_of(REAL), &integers)
                .into_iter()
                .map(types)
                .collect(),
            MIXED / 2,
        )
    },
    ..ELEMENTWISE
};

/// An arg reduction over no elements has no answer.
const EMPTY: &[Reduction] = &[(&[0, 3], &[1]), (&[3, 0, 2], &[2])];

const fn row(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &ARG,
        takes: &[REAL],
        gives: Gives::Real,
        bound: Bound::rounded((0, 0)),
        domains: &[Repeating],
        partial: None,
        lane: None,
        kernel,
    }
}

pub(super) const OPS: &[Op] = &[
    row(
        "argmax",
        Kernel::Index(reduce::largest),
        "index of the largest; the last NaN wins over every number; an error for nothing",
    ),
    row(
        "argmin",
        Kernel::Index(reduce::smallest),
        "index of the smallest; the last NaN wins over every number; an error for nothing",
    ),
];
