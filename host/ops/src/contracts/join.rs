//! Tensors next to each other: `concatenate` and `stack`.

use super::{
    gather::{chosen, expect},
    shared::{ELEMENTWISE, MIXED, default, pairs, result_type, types_of},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{join, kernel::Kernel},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Domain::Any,
};
use nx_vulkan_abi::DTypeSet;

const CONCATENATE: Contract = Contract {
    title: "Joining",
    variadic: true,
    attributes: &[Attribute {
        name: "axis",
        kind: AttributeKind::Ints,
        doc: "the axis along which they are joined; 0 by default",
    }],
    copies: |inputs, outputs| inputs.iter().all(|input| *input == outputs[0]),
    complete: |_, _, attrs| default(attrs, Attr::ints("axis", [0])),
    infer: |op, inputs, attrs| {
        let shapes: Vec<&[u64]> = inputs.iter().map(|input| &*input.1).collect();
        Ok((
            result_type(op, inputs)?,
            joined(op, &shapes, ints(attrs, "axis"))?,
        ))
    },
    check: |op, inputs, outputs, attrs| {
        let shapes: Vec<&[u64]> = inputs.iter().map(|input| input.shape).collect();
        expect(&outputs[0], &joined(op, &shapes, ints(attrs, "axis"))?)
    },
    problems: |op, layout, _, rng| {
        let all = if op.name == "stack" {
            STACKS
        } else {
            CONCATENATIONS
        };
        let problem = |(shapes, axis): Join| Problem {
            inputs: shapes.iter().map(|shape| shape.to_vec()).collect(),
            output: Vec::new(),
            attrs: vec![Attr::ints("axis", [axis])],
        };
        chosen(layout, all, rng).into_iter().map(problem).collect()
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

/// The shape of those next to each other: along an axis that they have, or along a new one.
fn joined(op: &Op, shapes: &[&[u64]], axis: &[i64]) -> Result<Vec<u64>, String> {
    let is_new = op.name == "stack";
    let mut shape = shapes[0].to_vec();
    let [axis] = axis else {
        return Err(format!("attribute axis must be one axis, got {axis:?}"));
    };
    let place = usize::try_from(*axis).ok();
    let place = place.filter(|axis| *axis < shape.len() + usize::from(is_new));
    let Some(place) = place else {
        return Err(format!("attribute axis names axis {axis} of {shape:?}"));
    };
    let but_one = |shape: &[u64]| {
        let mut shape = shape.to_vec();
        if !is_new && place < shape.len() {
            shape[place] = 0;
        }
        shape
    };
    if let Some(other) = shapes
        .iter()
        .find(|other| but_one(other) != but_one(&shape))
    {
        return Err(format!("{other:?} does not fit next to {shape:?}"));
    }
    if is_new {
        shape.insert(place, shapes.len() as u64);
    } else {
        let sum = shapes
            .iter()
            .try_fold(0u64, |sum, shape| sum.checked_add(shape[place]));
        shape[place] = sum.ok_or("the result has too many elements")?;
    }
    Ok(shape)
}

/// Shapes of the operands, and the axis.
type Join = (&'static [&'static [u64]], i64);

const CONCATENATIONS: [&[Join]; 3] = [
    &[
        (&[&[5, 8], &[3, 8]], 0),
        (&[&[5, 8], &[5, 4], &[5, 12]], 1),
        (&[&[2, 3, 4], &[2, 1, 4]], 1),
        (&[&[7], &[1], &[9], &[3]], 0),
        (&[&[3, 5], &[3, 1]], 1),
        (&[&[4, 6]], 0),
    ],
    &[(&[&[0, 3], &[2, 3]], 0), (&[&[0], &[0]], 0)],
    &[
        (&[&[300, 1000], &[300, 37]], 1),
        (&[&[1001, 257], &[9, 257]], 0),
    ],
];
const STACKS: [&[Join]; 3] = [
    &[
        (&[&[5, 8], &[5, 8]], 0),
        (&[&[5, 8], &[5, 8], &[5, 8]], 1),
        (&[&[5, 6], &[5, 6]], 2),
        (&[&[], &[], &[]], 0),
    ],
    &[(&[&[0, 3], &[0, 3]], 1)],
    &[(&[&[300, 1000], &[300, 1000]], 1)],
];

const fn row(name: &'static str, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &CONCATENATE,
        takes: &[DTypeSet::ALL],
        gives: Gives::Any,
        bound: Bound::MOVES,
        domains: &[Any],
        partial: None,
        lane: None,
        kernel: Kernel::Moves(join::run),
    }
}

pub(super) const OPS: &[Op] = &[
    row(
        "concatenate",
        "the operands one after the other along an axis, each converted to the result's type",
    ),
    row(
        "stack",
        "the operands one after the other along a new axis, each converted to the result's type",
    ),
];
