//! Ops that order the elements of an axis: `sort`, `argsort`, and the block of the first ones.

use super::{
    reduce::{Reduction, reductions},
    shared::{ELEMENTWISE, MIXED, REAL, default, in_range, pairs, types_of},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, sort},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Domain::Repeating,
};
use nx_vulkan_abi::{DType, DTypeSet};

const SORT: Contract = Contract {
    title: "Sorting",
    attributes: &[
        Attribute {
            name: "axis",
            kind: AttributeKind::Ints,
            doc: "the axis to sort; 0 by default",
        },
        Attribute {
            name: "direction",
            kind: AttributeKind::Word(&["asc", "desc"]),
            doc: "the order; `asc` by default",
        },
    ],
    complete: |_, _, attrs| {
        default(attrs, Attr::ints("axis", [0]));
        default(attrs, Attr::text("direction", "asc"));
    },
    infer: |_, inputs, _| Ok(inputs[0].clone()),
    check: |_, inputs, outputs, attrs| {
        let (x, out, axis) = (&inputs[0], &outputs[0], ints(attrs, "axis"));
        if axis.len() != 1 {
            return Err(format!("attribute axis must be one axis, got {axis:?}"));
        }
        in_range("axis", axis, x)?;
        if x.shape != out.shape {
            return Err("the result's shape is not the operand's".to_owned());
        }
        Ok(())
    },
    problems: |_, layout, _, rng| {
        let one = |(_, axes): &Reduction| axes.len() == 1;
        let chosen = reductions(layout, EMPTY, one, rng);
        let problem = |(shape, axis): Reduction| Problem {
            inputs: vec![shape.to_vec()],
            output: Vec::new(),
            attrs: vec![
                Attr::ints("axis", axis),
                Attr::text("direction", rng.pick(&["asc", "desc"])),
            ],
        };
        chosen.into_iter().map(problem).collect()
    },
    ..ELEMENTWISE
};

const ARGSORT: Contract = Contract {
    infer: |_, inputs, _| Ok((DType::S32, inputs[0].1.clone())),
    mixed: |_| {
        let integers = types_of(DTypeSet::INTEGER);
        let types = |(x, y)| Types {
            inputs: vec![x],
            output: Some(y),
        };
        let all = pairs(&types_of(REAL), &integers).into_iter().map(types);
        (all.collect(), MIXED / 2)
    },
    ..SORT
};

const TOP: Contract = Contract {
    title: "Sorting",
    results: &["values", "indices"],
    attributes: &[Attribute {
        name: "k",
        kind: AttributeKind::Ints,
        doc: "how many, at most the extent of the last axis; 1 by default",
    }],
    complete: |_, _, attrs| default(attrs, Attr::ints("k", [1])),
    infer: |_, inputs, attrs| {
        let (dtype, mut shape) = inputs[0].clone();
        let last = shape.last_mut().ok_or("a scalar has no last axis")?;
        *last = u64::try_from(first(attrs)).map_err(|_| "attribute k is negative")?;
        Ok((dtype, shape))
    },
    all: |_, values, _| {
        let indices = (DType::S32, values.1.clone());
        vec![values, indices]
    },
    check: |_, inputs, outputs, attrs| {
        let (x, k) = (&inputs[0], ints(attrs, "k"));
        let Some((last, others)) = x.shape.split_last() else {
            return Err("a scalar has no last axis".to_owned());
        };
        let &[k] = k else {
            return Err(format!("attribute k must be one number, got {k:?}"));
        };
        if k < 0 || k as u64 > *last {
            return Err(format!("attribute k must be from 0 to {last}, got {k}"));
        }
        let shape = [others, &[k as u64]].concat();
        if outputs.iter().any(|out| out.shape != shape) {
            return Err(format!("the results must have the shape {shape:?}"));
        }
        if outputs[1].dtype != DType::S32 {
            return Err(format!("indices must be s32, not {}", outputs[1].dtype));
        }
        Ok(())
    },
    problems: |_, layout, _, rng| {
        let last = |(shape, axes): &Reduction| axes.last() == Some(&(shape.len() as i64 - 1));
        let chosen = reductions(layout, EMPTY, last, rng);
        let problem = |(shape, _): Reduction| {
            let most = shape.last().copied().unwrap_or(1);
            let k = rng.pick(&[1, 2, most / 3, 50, most]).min(most);
            Problem {
                inputs: vec![shape.to_vec()],
                output: Vec::new(),
                attrs: vec![Attr::ints("k", [k as i64])],
            }
        };
        chosen.into_iter().map(problem).collect()
    },
    ..ELEMENTWISE
};

const EMPTY: &[Reduction] = &[(&[0, 3], &[1]), (&[0, 3], &[0]), (&[3, 2, 0], &[2])];

fn first(attrs: &[Attr]) -> i64 {
    ints(attrs, "k").first().copied().unwrap_or(1)
}

const fn row(
    name: &'static str,
    contract: &'static Contract,
    gives: Gives,
    kernel: Kernel,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract,
        takes: &[REAL],
        gives,
        bound: Bound::MOVES,
        domains: &[Repeating],
        partial: None,
        lane: None,
        kernel,
    }
}

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    row("sort",          &SORT,    Gives::Operand, Kernel::Whole(sort::sort),    "the elements in order, equal ones in the order they had; zeros of either sign are equal, and so are NaNs, which are above every number"),
    row("argsort",       &ARGSORT, Gives::Real,    Kernel::Whole(sort::argsort), "where the elements of `sort` come from"),
    row("Nx.Block.TopK", &TOP,     Gives::Operand, Kernel::Whole(sort::top),     "the first `k` elements of the last axis in the order `desc`, and where they come from"),
];
