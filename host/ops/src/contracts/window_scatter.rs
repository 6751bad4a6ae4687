//! `window_scatter_max` and `window_scatter_min`: what each window's source adds to the element that the window chooses.

use super::{
    shared::{ELEMENTWISE, REAL, some},
    window::{EXTENTS, PADDING, STRIDES, complete, listed, positions},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, window_scatter},
    layout::Layout,
    op::{Contract, Gives, Op},
    problems::Problem,
    tolerance::Bound,
    values::Domain::{Repeating, Scalar, Term},
};

/// Elements of all windows together.
const MOST: u128 = 1 << 40;
const LISTS: [&str; 2] = ["strides", "window"];

const SCATTER: Contract = Contract {
    title: "Scatters of windows",
    operands: &["x", "source", "init"],
    attributes: &[PADDING, STRIDES, EXTENTS],
    complete: |inputs, _, attrs| complete(inputs[0].1.len(), attrs),
    infer: |_, inputs, _| Ok((inputs[1].0.merge(inputs[2].0), inputs[0].1.clone())),
    check: |_, inputs, outputs, attrs| {
        let [x, source, init] = inputs else {
            return Err("expected three operands".to_owned());
        };
        listed(x.shape.len(), attrs, &LISTS)?;
        let windows = positions(x.shape, attrs);
        if source.shape != windows {
            return Err(format!(
                "source must have the shape of the windows, {windows:?}"
            ));
        }
        if !init.shape.is_empty() {
            return Err("init must be a scalar".to_owned());
        }
        let visits = ints(attrs, "window").iter().chain([&1]);
        let visits = visits.fold(1u128, |all, &n| all.saturating_mul(n as u128));
        let windows = windows
            .iter()
            .fold(1u128, |all, &n| all.saturating_mul(n.into()));
        if visits.saturating_mul(windows) > MOST {
            return Err(format!(
                "{windows} windows of {visits} elements take too long"
            ));
        }
        match outputs[0].shape == x.shape {
            true => Ok(()),
            false => Err("the result must have the shape of x".to_owned()),
        }
    },
    operand_shapes: |_, shape| vec![shape.to_vec(), shape.to_vec(), Vec::new()],
    problems: |_, layout, _, rng| {
        let (all, count): (&[Scatter], usize) = match layout {
            Layout::Contiguous => (SCATTERS, SCATTERS.len()),
            Layout::Deep => (DEEP, DEEP.len()),
            Layout::Empty => (&[(&[0, 3], &[1, 2], &[0; 4], &[1, 1])], 1),
            Layout::Scalar => (&[(&[], &[], &[], &[])], 1),
            Layout::Large => (LARGE, LARGE.len()),
            Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => {
                (SCATTERS, 3)
            }
        };
        some(all, count, rng).into_iter().map(problem).collect()
    },
    terms: |_, _, attrs| ints(attrs, "window").iter().map(|&n| n as u64).product(),
    ..ELEMENTWISE
};

/// Shape, then window, padding and strides.
type Scatter = (
    &'static [u64],
    &'static [i64],
    &'static [i64],
    &'static [i64],
);

const SCATTERS: &[Scatter] = &[
    (&[9, 7], &[2, 3], &[0, 0, 1, 1], &[1, 2]),
    (&[37], &[5], &[2, 2], &[1]),
    (&[5, 6, 7], &[1, 2, 2], &[0; 6], &[1, 2, 2]),
    (
        &[2, 3, 12, 13],
        &[1, 1, 3, 3],
        &[0, 0, 0, 0, 1, 1, 1, 0],
        &[1, 1, 2, 2],
    ),
    (&[103], &[4], &[-3, 5], &[3]),
    (&[4, 4], &[2, 2], &[3, 3, 4, -1], &[1, 2]),
];
const DEEP: &[Scatter] = &[
    (
        &[2, 3, 2, 5, 3],
        &[2, 2, 1, 3, 2],
        &[1, 0, 0, 1, 0, 0, 1, 1, 0, 0],
        &[1, 1, 1, 2, 1],
    ),
    (&[3, 2, 4, 2, 4], &[2, 1, 2, 1, 3], &[0; 10], &[1; 5]),
];
const LARGE: &[Scatter] = &[(&[8, 16, 64, 64], &[1, 1, 2, 2], &[0; 8], &[1, 1, 2, 2])];

fn problem((shape, window, padding, strides): Scatter) -> Problem {
    let attrs = vec![
        Attr::ints("padding", padding),
        Attr::ints("strides", strides),
        Attr::ints("window", window),
    ];
    Problem {
        inputs: vec![shape.to_vec(), positions(shape, &attrs), Vec::new()],
        output: Vec::new(),
        attrs,
    }
}

const fn row(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &SCATTER,
        takes: &[REAL, REAL, REAL],
        gives: Gives::Real,
        // Selections and sums are the same everywhere, since both go in the windows' order.
        bound: Bound::ORDERS,
        domains: &[Repeating, Term, Scalar],
        partial: None,
        lane: None,
        kernel,
    }
}

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    row("window_scatter_max", Kernel::Whole(window_scatter::max), "init, and at the largest element of each window, the last of equal ones, in addition the window's source, one window after the other in the result's type, f16 and bf16 in f32. Where the first element is NaN it is chosen, other NaN never are. Padding is init in the type of x; what is chosen there is dropped"),
    row("window_scatter_min", Kernel::Whole(window_scatter::min), "the same at the smallest element of each window"),
];
