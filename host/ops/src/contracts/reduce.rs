//! Reductions over axes.

use super::shared::{ELEMENTWISE, NUMBER, REAL, default, in_range, result_type, some, without};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, reduce},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    problems::Problem,
    tolerance::{Bound, Growth},
    values::{
        Domain::{self, Factor, Flag, Repeating, Term},
        Rng,
    },
    view::Desc,
};
use nx_vulkan_abi::{DType, dtype::Class};

const SHAPE: Contract = Contract {
    title: "Reductions",
    attributes: &[Attribute {
        name: "axes",
        kind: AttributeKind::Ints,
        doc: "the axes to reduce, ascending, never none; all by default",
    }],
    complete: |inputs, _, attrs| {
        let all: Vec<i64> = (0..inputs[0].1.len() as i64).collect();
        default(attrs, Attr::ints("axes", all));
    },
    infer: |op, inputs, attrs| {
        Ok((
            result_type(op, inputs)?,
            without(&inputs[0].1, ints(attrs, "axes")),
        ))
    },
    check: |_, inputs, outputs, attrs| {
        let (x, axes) = (&inputs[0], ints(attrs, "axes"));
        if axes.is_empty() || !axes.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "attribute axes must name at least one axis and ascend, got {axes:?}"
            ));
        }
        in_range("axes", axes, x)?;
        kept(x, &outputs[0], |axis| axes.contains(&axis))
    },
    problems: |_, layout, _, rng| {
        let problem = |(shape, axes): Reduction| Problem {
            inputs: vec![shape.to_vec()],
            output: Vec::new(),
            attrs: vec![Attr::ints("axes", axes)],
        };
        reductions(layout, EMPTY, |_| true, rng)
            .into_iter()
            .map(problem)
            .collect()
    },
    terms: |inputs, output, _| {
        let results: u64 = output.iter().product();
        inputs[0].iter().product::<u64>() / results.max(1)
    },
    ..ELEMENTWISE
};

const REDUCE: Contract = SHAPE;

/// Nx sums small integers in 32 bits, and u64 in s64.
const FOLD: Contract = Contract {
    infer: |op, inputs, attrs| {
        let (dtype, shape) = (SHAPE.infer)(op, inputs, attrs)?;
        let is_long = dtype.size() == 8;
        let wide = match dtype.class() {
            Some(Class::Unsigned) if !is_long => DType::U32,
            Some(Class::Signed) if !is_long => DType::S32,
            Some(Class::Unsigned | Class::Signed) => DType::S64,
            Some(Class::Float | Class::Complex) | None => dtype,
        };
        Ok((wide, shape))
    },
    ..SHAPE
};

/// Shape, and the axes to reduce.
pub(super) type Reduction = (&'static [u64], &'static [i64]);

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
pub(super) const EMPTY: &[Reduction] = &[
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

/// Reductions to try in a layout, `empty` those without elements, of all that are `usable`.
pub(super) fn reductions(
    layout: Layout,
    empty: &[Reduction],
    usable: fn(&Reduction) -> bool,
    rng: &mut Rng,
) -> Vec<Reduction> {
    let (all, count) = match layout {
        Layout::Contiguous => (REDUCTIONS, REDUCTIONS.len()),
        Layout::Deep => (DEEP, 2),
        Layout::Empty => (empty, empty.len()),
        Layout::Scalar => (SCALAR, SCALAR.len()),
        Layout::Large => (LARGE, LARGE.len()),
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => {
            (&REDUCTIONS[..REDUCTIONS.len() - 1], 3)
        }
    };
    let all: Vec<Reduction> = all.iter().copied().filter(usable).collect();
    some(&all, count, rng)
}

/// The result of a reduction has the kept axes in order; axes of extent 1 do not matter.
pub(super) fn kept(
    x: &Desc<'_>,
    out: &Desc<'_>,
    reduced: impl Fn(i64) -> bool,
) -> Result<(), String> {
    let axes = x.shape.iter().zip(0..);
    let kept = axes.filter(|(extent, axis)| **extent != 1 && !reduced(*axis));
    let other = out.shape.iter().filter(|extent| **extent != 1);
    if kept.map(|(extent, _)| extent).eq(other) {
        Ok(())
    } else {
        Err("the result's shape is not that of the axes that are not reduced".to_owned())
    }
}

const fn row(
    name: &'static str,
    contract: &'static Contract,
    gives: Gives,
    (bound, domains): (Bound, &'static [Domain]),
    kernel: Kernel,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract,
        takes: &[REAL],
        gives,
        bound,
        domains,
        partial: None,
        lane: None,
        kernel,
    }
}

/// What products of many factors allow.
pub(super) const FACTORS: Bound = Bound::reduces(Growth::Factors).and_parts((4, 4));

/// What complex numbers have too.
const fn numbers(op: Op) -> Op {
    Op {
        takes: &[NUMBER],
        ..op
    }
}

/// The sum of f32 carries its rounding errors along.
const SUM: Bound = Bound {
    compensated: true,
    ..Bound::reduces(Growth::Terms)
};

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    numbers(row("sum", &FOLD, Gives::Real, (SUM, &[Term]), Kernel::Fold(reduce::sum), "sum, accumulated in the result's type, f16 and bf16 in f32; integers wrap; 0 of nothing")),
    numbers(row("product",    &FOLD,   Gives::Real,    (FACTORS, &[Factor]), Kernel::Fold(reduce::product), "product, accumulated as `sum`; 1 of nothing")),
    numbers(row("all",        &REDUCE, Gives::Bool,    (Bound::MOVES, &[Flag]), Kernel::Fold(reduce::all), "1 where no element is 0, also of nothing")),
    numbers(row("any",        &REDUCE, Gives::Bool,    (Bound::MOVES, &[Flag]), Kernel::Fold(reduce::any), "1 where some element is not 0")),
    row("reduce_max", &REDUCE, Gives::Operand, (Bound::ORDERS, &[Repeating]), Kernel::Fold(reduce::max), "the largest; NaN if any element is NaN; the type's lowest value, −Inf for floats, of nothing"),
    row("reduce_min", &REDUCE, Gives::Operand, (Bound::ORDERS, &[Repeating]), Kernel::Fold(reduce::min), "the smallest; NaN if any element is NaN; the type's highest value, Inf for floats, of nothing"),
];
