//! `pad`: elements around a tensor's and between them.

use super::{
    gather::{chosen, expect},
    shared::{ELEMENTWISE, MIXED, default, pairs, result_type, types_of},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, pad},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Domain::Any,
};
use nx_vulkan_abi::DTypeSet;

const NAMES: [&str; 3] = ["high", "interior", "low"];

const fn attribute(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

const PAD: Contract = Contract {
    title: "Padding",
    operands: &["x", "value"],
    attributes: &[
        attribute(
            "high",
            "elements behind those of each axis; negative removes some; 0 by default",
        ),
        attribute(
            "interior",
            "elements between two of each axis; 0 by default",
        ),
        attribute(
            "low",
            "elements before those of each axis; negative removes some; 0 by default",
        ),
    ],
    copies: |inputs, outputs| inputs.iter().all(|input| *input == outputs[0]),
    complete: |inputs, _, attrs| {
        for name in NAMES {
            default(attrs, Attr::ints(name, vec![0; inputs[0].1.len()]));
        }
    },
    infer: |op, inputs, attrs| Ok((result_type(op, inputs)?, padded(&inputs[0].1, attrs)?)),
    check: |_, inputs, outputs, attrs| {
        let value = &inputs[1];
        if !value.shape.is_empty() {
            return Err(format!("the value must be a scalar, got {value}"));
        }
        expect(&outputs[0], &padded(inputs[0].shape, attrs)?)
    },
    operand_shapes: |_, shape| vec![shape.to_vec(), Vec::new()],
    problems: |_, layout, _, rng| {
        let problem = |(shape, low, high, interior): Pad| Problem {
            inputs: vec![shape.to_vec(), Vec::new()],
            output: Vec::new(),
            attrs: vec![
                Attr::ints("high", high),
                Attr::ints("interior", interior),
                Attr::ints("low", low),
            ],
        };
        chosen(layout, PADS, rng).into_iter().map(problem).collect()
    },
    mixed: |_| {
        let all = pairs(&types_of(DTypeSet::REAL), &types_of(DTypeSet::REAL));
        let types = |(x, y)| Types {
            inputs: vec![x, y],
            output: None,
        };
        (all.into_iter().map(types).collect(), MIXED)
    },
    ..ELEMENTWISE
};

fn padded(shape: &[u64], attrs: &[Attr]) -> Result<Vec<u64>, String> {
    let [high, interior, low] = NAMES.map(|name| ints(attrs, name));
    if [high, interior, low]
        .iter()
        .any(|list| list.len() != shape.len())
    {
        return Err(
            "attributes high, interior and low must have a number for each axis".to_owned(),
        );
    }
    let extent = |axis: usize| {
        let (n, wide) = (i128::from(shape[axis]), |list: &[i64]| {
            i128::from(list[axis])
        });
        if interior[axis] < 0 {
            return Err(format!(
                "attribute interior must not be negative, got {interior:?}"
            ));
        }
        let inner = n + wide(interior) * (n - 1).max(0);
        let extent = u64::try_from(wide(low) + inner + wide(high));
        extent.map_err(|_| {
            format!("axis {axis} of {shape:?} has too few elements to remove that many")
        })
    };
    (0..shape.len()).map(extent).collect()
}

/// Shape, low, high, interior.
type Pad = (
    &'static [u64],
    &'static [i64],
    &'static [i64],
    &'static [i64],
);

const PADS: [&[Pad]; 3] = [
    &[
        (&[5, 8], &[1, 0], &[2, 0], &[0, 0]),
        (&[5, 8], &[0, 4], &[0, 4], &[0, 0]),
        (&[5, 7], &[1, -2], &[-1, 3], &[2, 1]),
        (&[4, 41], &[1, 1], &[1, -3], &[0, 0]),
        (&[3, 64], &[0, -2], &[0, -19], &[0, 0]),
        (&[2, 3, 4], &[0, 1, 0], &[1, 0, 0], &[0, 0, 0]),
        (&[2, 3, 4], &[-1, -1, -1], &[0, 1, 2], &[1, 0, 3]),
        (&[13], &[-3], &[-4], &[0]),
        (&[1], &[5], &[0], &[3]),
    ],
    &[
        (&[4, 3], &[-2, 0], &[-2, 0], &[0, 0]),
        (&[0, 3], &[0, 1], &[0, 0], &[0, 0]),
        (&[0], &[2], &[1], &[0]),
    ],
    &[
        (&[300, 1000], &[1, 4], &[1, 4], &[0, 0]),
        (&[301, 999], &[0, 1], &[3, 1], &[1, 0]),
    ],
];

pub(super) const OPS: &[Op] = &[Op {
    name: "pad",
    doc: "the tensor with the value around its elements and between them, along each axis; both convert to the result's type",
    contract: &PAD,
    takes: &[DTypeSet::ALL],
    gives: Gives::Any,
    bound: Bound::MOVES,
    domains: &[Any],
    partial: None,
    lane: None,
    kernel: Kernel::Moves(pad::run),
}];
