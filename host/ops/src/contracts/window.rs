//! Reductions of windows that slide over a tensor.

use super::reduce::FACTORS;
use super::shared::{ELEMENTWISE, NUMBER, REAL, default, some};
use crate::{
    attrs::{Attr, ints},
    kernels::{
        kernel::Kernel,
        window::{self, Axis, axes},
    },
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    problems::Problem,
    tolerance::{Bound, Growth},
    values::{
        Domain::{self, Factor, Repeating, Term},
        Rng,
    },
};

/// Windows, strides and dilations reach this far at most, so that sums of places cannot overflow.
const MOST: i64 = i32::MAX as i64;

pub(super) const PADDING: Attribute = attribute(
    "padding",
    "for each axis what is added in front and behind, `[lo, hi, lo, hi, …]`; less than 0 cuts off; 0 by default",
);
pub(super) const STRIDES: Attribute = attribute(
    "strides",
    "steps between windows along each axis; 1 by default",
);

const WINDOW: Contract = Contract {
    title: "Windows",
    attributes: &[PADDING, STRIDES, EXTENTS, DILATIONS],
    complete: |inputs, _, attrs| {
        complete(inputs[0].1.len(), attrs);
        default(
            attrs,
            Attr::ints("window_dilations", vec![1; inputs[0].1.len()]),
        );
    },
    infer: |_, inputs, attrs| {
        let (dtype, shape) = &inputs[0];
        listed(shape.len(), attrs, LISTS)?;
        Ok((*dtype, positions(shape, attrs)))
    },
    check: |_, inputs, outputs, attrs| {
        let (x, out) = (&inputs[0], &outputs[0]);
        listed(x.shape.len(), attrs, LISTS)?;
        match positions(x.shape, attrs) {
            shape if shape == out.shape => Ok(()),
            shape => Err(format!("the windows give {shape:?}")),
        }
    },
    problems: |_, layout, _, rng| problems(layout, rng),
    terms: |_, _, attrs| ints(attrs, "window").iter().map(|&n| n as u64).product(),
    ..ELEMENTWISE
};

/// Attributes with a positive number for each axis.
pub(super) const LISTS: &[&str] = &["strides", "window", "window_dilations"];

pub(super) const DILATIONS: Attribute = attribute(
    "window_dilations",
    "steps between the elements of a window along each axis; 1 by default",
);

pub(super) const EXTENTS: Attribute = attribute(
    "window",
    "elements of a window along each axis; 1 by default",
);

pub(super) const fn attribute(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

/// Windows of one element, one after the other.
pub(super) fn complete(rank: usize, attrs: &mut Vec<Attr>) {
    default(attrs, Attr::ints("padding", vec![0; 2 * rank]));
    default(attrs, Attr::ints("strides", vec![1; rank]));
    default(attrs, Attr::ints("window", vec![1; rank]));
}

/// Refuses lists that have not a positive number for each of `rank` axes, and padding that has not two.
pub(super) fn listed(rank: usize, attrs: &[Attr], names: &[&str]) -> Result<(), String> {
    let padding = ints(attrs, "padding");
    if padding.len() != 2 * rank || padding.iter().any(|n| n.unsigned_abs() > MOST as u64) {
        return Err(format!(
            "attribute padding must be two numbers of at most {MOST} for each of {rank} axes, got {padding:?}"
        ));
    }
    for name in names {
        let list = ints(attrs, name);
        if list.len() != rank || list.iter().any(|n| !(1..=MOST).contains(n)) {
            return Err(format!(
                "attribute {name} must be a number from 1 to {MOST} for each of {rank} axes, got {list:?}"
            ));
        }
    }
    Ok(())
}

/// Positions of the windows along each axis.
pub(super) fn positions(shape: &[u64], attrs: &[Attr]) -> Vec<u64> {
    axes(shape, attrs).iter().map(Axis::positions).collect()
}

/// Shape, then window, padding, strides and dilations.
type Windows = (
    &'static [u64],
    &'static [i64],
    &'static [i64],
    &'static [i64],
    &'static [i64],
);

const WINDOWS: &[Windows] = &[
    (&[9, 7], &[2, 3], &[0, 0, 1, 1], &[1, 2], &[1, 1]),
    (&[37], &[5], &[2, 2], &[1], &[2]),
    (&[5, 6, 7], &[1, 2, 2], &[0; 6], &[1, 2, 2], &[1, 1, 1]),
    (&[1031], &[4], &[-3, 5], &[3], &[1]),
    (
        &[2, 3, 12, 13],
        &[1, 1, 3, 3],
        &[0, 0, 0, 0, 1, 1, 1, 0],
        &[1, 1, 2, 2],
        &[1; 4],
    ),
    (&[6, 5], &[6, 5], &[0; 4], &[1, 1], &[1, 1]),
    (&[4, 4], &[2, 2], &[3, 3, 4, -1], &[1, 2], &[1, 1]),
    (&[8, 30], &[3, 29], &[1, 1, 14, 14], &[1, 1], &[2, 1]),
    (&[3, 300], &[1, 100], &[0, 0, 50, 49], &[1, 1], &[1, 1]),
];
const DEEP: &[Windows] = &[
    (
        &[2, 3, 2, 5, 3],
        &[2, 2, 1, 3, 2],
        &[1, 0, 0, 1, 0, 0, 1, 1, 0, 0],
        &[1, 1, 1, 2, 1],
        &[1; 5],
    ),
    (
        &[3, 2, 4, 2, 4],
        &[2, 1, 2, 1, 3],
        &[0; 10],
        &[1; 5],
        &[1, 1, 2, 1, 1],
    ),
];
const EMPTY: &[Windows] = &[
    (&[0, 3], &[1, 2], &[0; 4], &[1, 1], &[1, 1]),
    (&[3, 0], &[1, 2], &[0, 0, 2, 1], &[1, 1], &[1, 1]),
];
const LARGE: &[Windows] = &[
    (
        &[8, 16, 64, 64],
        &[1, 1, 2, 2],
        &[0; 8],
        &[1, 1, 2, 2],
        &[1; 4],
    ),
    (&[513, 1027], &[3, 3], &[1, 1, 1, 1], &[1, 1], &[1, 1]),
    (&[500, 500], &[9, 9], &[4; 4], &[1, 1], &[1, 1]),
];

/// Windows to try in a layout.
pub(super) fn problems(layout: Layout, rng: &mut Rng) -> Vec<Problem> {
    let (all, count): (&[Windows], usize) = match layout {
        Layout::Contiguous => (WINDOWS, WINDOWS.len()),
        Layout::Deep => (DEEP, DEEP.len()),
        Layout::Empty => (EMPTY, EMPTY.len()),
        Layout::Scalar => (&[(&[], &[], &[], &[], &[])], 1),
        Layout::Large => (LARGE, LARGE.len()),
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => (WINDOWS, 3),
    };
    some(all, count, rng).into_iter().map(problem).collect()
}

fn problem((shape, window, padding, strides, dilations): Windows) -> Problem {
    Problem {
        inputs: vec![shape.to_vec()],
        output: Vec::new(),
        attrs: vec![
            Attr::ints("padding", padding),
            Attr::ints("strides", strides),
            Attr::ints("window", window),
            Attr::ints("window_dilations", dilations),
        ],
    }
}

const fn row(
    name: &'static str,
    (bound, domains): (Bound, &'static [Domain]),
    kernel: Kernel,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract: &WINDOW,
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
    Op { takes: &[NUMBER], ..row("window_sum", (Bound::reduces(Growth::Terms), &[Term]), Kernel::Whole(window::sum), "sum of each window, accumulated in its type, f16 and bf16 in f32; integers wrap; padding counts as 0") },
    Op { takes: &[NUMBER], ..row("window_product", (FACTORS, &[Factor]), Kernel::Whole(window::product), "product of each window, accumulated as `window_sum`; padding counts as 1") },
    row("window_max",     (Bound::ORDERS, &[Repeating]), Kernel::Whole(window::max), "the largest of each window; NaN if any element is NaN; padding counts as the type's lowest value, −Inf for floats"),
    row("window_min",     (Bound::ORDERS, &[Repeating]), Kernel::Whole(window::min), "the smallest of each window; NaN if any element is NaN; padding counts as the type's highest value, Inf for floats"),
];
