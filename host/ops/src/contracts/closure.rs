//! `reduce` and `window_reduce`: reductions by what a closure makes of an element and an accumulator, one after the other.

use super::{
    reduce,
    shared::{ELEMENTWISE, MIXED, REAL, default, in_range, pairs, types_of, without},
    window,
};
use crate::{
    attrs::{Attr, ints},
    expression::{self, EXPRESSION},
    kernels::{closure, kernel::Kernel},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    request::Spec,
    tolerance::Bound,
    values::Domain::Any,
    view::Desc,
};
use nx_vulkan_abi::DTypeSet;

/// Elements of all results together.
const MOST: u128 = 1 << 40;
/// Elements of one result that the sweep waits for.
const SOME: u64 = 1 << 17;

const SHAPE: Contract = Contract {
    operands: &["x", "acc"],
    operand_shapes: |_, shape| vec![shape.to_vec(), Vec::new()],
    fit: |dtype, problem| {
        let numbered = |attr: &Attr| attr.name == EXPRESSION.name;
        let Some(at) = problem.attrs.iter().position(numbered) else {
            return;
        };
        let number = crate::attrs::text(&problem.attrs, EXPRESSION.name);
        let number: usize = number.and_then(|text| text.parse().ok()).unwrap_or(0);
        let all = if dtype.is_integer() { INTEGERS } else { FLOATS };
        let text = all[number % all.len()].replace('T', dtype.name());
        problem.attrs[at] = Attr::text(EXPRESSION.name, &text);
    },
    mixed: |_| {
        let real = types_of(DTypeSet::REAL);
        let all = pairs(&real, &real)
            .into_iter()
            .filter(|(x, acc)| x.merge(*acc) == *acc);
        let types = |(x, acc)| Types {
            inputs: vec![x, acc],
            output: None,
        };
        (all.map(types).collect(), MIXED)
    },
    ..ELEMENTWISE
};

const REDUCE: Contract = Contract {
    title: "Reductions by an expression",
    attributes: &[
        Attribute {
            name: "axes",
            kind: AttributeKind::Ints,
            doc: "the axes to reduce, ascending; all by default",
        },
        EXPRESSION,
    ],
    complete: |inputs, _, attrs| {
        let all: Vec<i64> = (0..inputs[0].1.len() as i64).collect();
        default(attrs, Attr::ints("axes", all));
        sum(inputs, attrs);
    },
    infer: |_, inputs, attrs| Ok((inputs[1].0, without(&inputs[0].1, ints(attrs, "axes")))),
    check: |_, inputs, outputs, attrs| {
        let (x, axes) = (&inputs[0], ints(attrs, "axes"));
        if !axes.is_sorted_by(|a, b| a < b) {
            return Err(format!("attribute axes must ascend, got {axes:?}"));
        }
        in_range("axes", axes, x)?;
        reduce::kept(x, &outputs[0], |axis| axes.contains(&axis))?;
        check(inputs, &outputs[0], attrs)
    },
    problems: |_, layout, _, rng| {
        let usable = |(shape, axes): &reduce::Reduction| {
            let extents = axes.iter().map(|axis| shape[*axis as usize]);
            extents.product::<u64>() < SOME
        };
        let all = reduce::reductions(layout, reduce::EMPTY, usable, rng);
        let problem = |(shape, axes): reduce::Reduction| Problem {
            inputs: vec![shape.to_vec(), Vec::new()],
            output: Vec::new(),
            attrs: vec![
                Attr::ints("axes", axes),
                Attr::text(EXPRESSION.name, &rng.below(KINDS).to_string()),
            ],
        };
        all.into_iter().map(problem).collect()
    },
    ..SHAPE
};

const WINDOW: Contract = Contract {
    title: "Windows by an expression",
    attributes: &[
        EXPRESSION,
        window::PADDING,
        window::STRIDES,
        window::EXTENTS,
        window::DILATIONS,
    ],
    complete: |inputs, _, attrs| {
        window::complete(inputs[0].1.len(), attrs);
        let ones = vec![1; inputs[0].1.len()];
        default(attrs, Attr::ints(window::DILATIONS.name, ones));
        sum(inputs, attrs);
    },
    infer: |_, inputs, attrs| {
        window::listed(inputs[0].1.len(), attrs, window::LISTS)?;
        Ok((inputs[1].0, window::positions(&inputs[0].1, attrs)))
    },
    check: |_, inputs, outputs, attrs| {
        let x = &inputs[0];
        window::listed(x.shape.len(), attrs, window::LISTS)?;
        let windows = window::positions(x.shape, attrs);
        if windows != outputs[0].shape {
            return Err(format!("the windows give {windows:?}"));
        }
        let product = |all: u128, n: u128| all.saturating_mul(n);
        let visits = ints(attrs, "window").iter().map(|&n| n as u128);
        let visits = visits.fold(1, product);
        if windows.iter().map(|&n| n.into()).fold(visits, product) > MOST {
            return Err(format!(
                "{windows:?} windows of {visits} elements take too long"
            ));
        }
        check(inputs, &outputs[0], attrs)
    },
    problems: |_, layout, _, rng| {
        let mut problems = window::problems(layout, rng);
        for problem in &mut problems {
            problem.inputs.push(Vec::new());
            let kind = rng.below(KINDS).to_string();
            problem.attrs.insert(0, Attr::text(EXPRESSION.name, &kind));
        }
        problems
    },
    ..SHAPE
};

/// The expression of a request that has none.
fn sum(inputs: &[Spec], attrs: &mut Vec<Attr>) {
    let text = format!("add(i0, i1):{}", inputs[1].0);
    default(attrs, Attr::text(EXPRESSION.name, &text));
}

fn check(inputs: &[Desc<'_>], out: &Desc<'_>, attrs: &[Attr]) -> Result<(), String> {
    let [x, acc] = inputs else {
        return Err("expected two operands".to_owned());
    };
    if !acc.shape.is_empty() {
        return Err(format!("the accumulator must be a scalar, got {acc}"));
    }
    if acc.dtype != out.dtype {
        return Err("the result must have the accumulator's type".to_owned());
    }
    expression::read(attrs, &[x.dtype, acc.dtype], &[out.dtype]).map(drop)
}

/// Expressions to try, `T` being the accumulator's type.
const FLOATS: &[&str] = &[
    "multiply(i0, 2:s32):T; multiply(i1, 0.5:T):T; add(%0, %1):T",
    "as_type(i0):T; abs(%0):T; max(%1, i1):T",
    "greater(i0, i1):u8; select(%0, i0, i1):T",
    "as_type(i1):s32; bitwise_and(%0, 7:s32):s32; multiply(i0, 0.25:T):T; add(%2, %1):T",
    "is_nan(i0):u8; logical_or(%0, 0:u8):u8; subtract(i1, i0):T; select(%1, i1, %2):T; clip(%3, -3:s32, 3.5:T):T",
    "subtract(i0, i1):T",
    "multiply(i0, 0.0:T):T; add(%0, i1):T",
];
const INTEGERS: &[&str] = &[
    "multiply(i1, 31:s32):T; add(%0, i0):T; remainder(%1, 1009:s32):T",
    "max(i0, i1):T; quotient(%0, 3:s32):T; subtract(%1, i0):T",
    "greater(i0, i1):u8; select(%0, i0, i1):T",
    "as_type(i0):f32; multiply(%0, 0.5:f32):f32; as_type(%1):T; bitwise_xor(%2, i1):T",
    "count_leading_zeros(i1):T; left_shift(i1, 1:u8):T; add(%0, %1):T",
    "less(i0, 2.5:f32):u8; population_count(i1):T; select(%0, i0, %1):T",
    "multiply(i0, 0:s32):T; subtract(%0, i1):T",
];
const KINDS: u64 = 7;

const fn row(
    name: &'static str,
    contract: &'static Contract,
    kernel: Kernel,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract,
        takes: &[REAL, REAL],
        gives: Gives::Real,
        bound: Bound::ORDERS,
        domains: &[Any],
        partial: None,
        lane: None,
        kernel,
    }
}

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    row("reduce", &REDUCE, Kernel::Whole(closure::reduce),
        "the accumulator, which begins as acc and becomes what the expression makes of it and of one element after the other, in row-major order; acc of nothing"),
    row("window_reduce", &WINDOW, Kernel::Whole(closure::window_reduce),
        "the same of each window's elements; padding counts as acc, in the type of x"),
];
