//! Parts of a tensor that are replaced or added to: `indexed_put` and `indexed_add`.

use super::{
    gather::{chosen, expect, integers, within},
    shared::{ELEMENTWISE, MIXED, default, ordered_axes, pairs, types_of, without},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, scatter},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    partial::INDEX,
    problems::Problem,
    tolerance::{Bound, Growth},
    values::Domain::{Any, Index, Term},
};
use nx_vulkan_abi::{DType, DTypeSet};

const ALL: DTypeSet = DTypeSet::ALL;
const NUMBER: DTypeSet = DTypeSet::NUMBER;

const PUT: Contract = Contract {
    title: "Updates by index",
    operands: &["tensor", "indices", "updates"],
    attributes: &[Attribute {
        name: "axes",
        kind: AttributeKind::Ints,
        doc: "the axes that the last axis of the indices counts along, ascending; the leading ones by default",
    }],
    copies: |inputs, outputs| inputs[0] == outputs[0] && inputs[2] == outputs[0],
    complete: |inputs, _, attrs| {
        let indices = inputs[1].1.last().copied().unwrap_or(0);
        let axes = 0..indices.min(inputs[0].1.len() as u64) as i64;
        default(attrs, Attr::ints("axes", Vec::from_iter(axes)));
    },
    infer: |_, inputs, _| Ok((inputs[0].0.merge(inputs[2].0), inputs[0].1.clone())),
    check: |_, inputs, outputs, attrs| {
        let (tensor, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        let axes = ints(attrs, "axes");
        integers(indices)?;
        ordered_axes("axes", axes, tensor)?;
        let [rows, count] = indices.shape else {
            return Err(format!("indices must have two axes, got {indices}"));
        };
        if *count != axes.len() as u64 {
            return Err(format!(
                "the indices must have one for each of the axes {axes:?}, got {indices}"
            ));
        }
        let part = [&[*rows], &*without(tensor.shape, axes)].concat();
        if updates.shape != part {
            return Err(format!(
                "the updates must have the shape {part:?}, got {updates}"
            ));
        }
        expect(&outputs[0], tensor.shape)
    },
    indices: |inputs, attrs| within(inputs[0], ints(attrs, "axes")),
    operand_shapes: |_, shape| {
        vec![
            shape.to_vec(),
            vec![1, 1],
            [&[1], &shape[1.min(shape.len())..]].concat(),
        ]
    },
    problems: |_, layout, _, rng| {
        let problem = |(tensor, rows, axes): Scatter| Problem {
            inputs: vec![
                tensor.to_vec(),
                vec![rows, axes.len() as u64],
                [&[rows], &*without(tensor, axes)].concat(),
            ],
            output: Vec::new(),
            attrs: vec![Attr::ints("axes", axes)],
        };
        chosen(layout, SCATTERS, rng)
            .into_iter()
            .map(problem)
            .collect()
    },
    alone: |_, dtype| Types {
        inputs: vec![dtype, DType::S32, dtype],
        output: None,
    },
    mixed: |_| {
        let all = pairs(&types_of(DTypeSet::REAL), &types_of(DTypeSet::REAL));
        let indices = types_of(DTypeSet::INTEGER).into_iter().cycle();
        let types = all.into_iter().zip(indices).map(|((x, y), index)| Types {
            inputs: vec![x, index, y],
            output: None,
        });
        (types.collect(), MIXED)
    },
    terms: |inputs, _, _| inputs[1][0] + 1,
    ..ELEMENTWISE
};

const ADD: Contract = Contract {
    copies: |_, _| false,
    ..PUT
};

/// Shape of the tensor, number of updates, axes.
type Scatter = (&'static [u64], u64, &'static [i64]);

const SCATTERS: [&[Scatter]; 3] = [
    &[
        (&[7, 9], 5, &[0, 1]),
        (&[7, 16], 20, &[0]),
        (&[7, 9], 6, &[1]),
        (&[4, 5, 6, 7], 30, &[1, 3]),
        (&[4, 3, 8], 9, &[0, 1]),
        (&[3], 700, &[0]),
        (&[500], 300, &[0]),
    ],
    &[(&[7, 9], 0, &[0]), (&[4, 0], 3, &[0])],
    &[(&[100, 257], 3001, &[0]), (&[100, 100], 30_003, &[0, 1])],
];

const fn row(name: &'static str, takes: &'static [DTypeSet], doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &PUT,
        takes,
        gives: Gives::Any,
        bound: Bound::MOVES,
        domains: &[Any, Index, Any],
        partial: Some(&INDEX),
        lane: None,
        kernel: Kernel::Whole(scatter::run),
    }
}

pub(super) const OPS: &[Op] = &[
    Op {
        contract: &ADD,
        gives: Gives::Real,
        bound: Bound::reduces(Growth::Terms),
        domains: &[Term, Index, Term],
        ..row(
            "indexed_add",
            &[NUMBER, ALL, NUMBER],
            "the tensor with each update added to the part at its index, in the order of the updates; all convert to the result's \
             type, in which integers wrap. The bits are the same each time. An index outside of the tensor is an error",
        )
    },
    row(
        "indexed_put",
        &[ALL, ALL, ALL],
        "the tensor with each update in place of the part at its index, the last of those at the same one; all convert to the \
         result's type. An index outside of the tensor is an error",
    ),
];
