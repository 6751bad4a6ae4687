//! Tensors made from nothing: `iota`, `eye`, `fill`.

use super::shared::{ELEMENTWISE, at_most_one_axis, default};
use crate::{
    attrs::{Attr, AttrValue, ints},
    kernels::{create, kernel::Kernel},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Rng,
};
use nx_vulkan_abi::DType;

const CREATE: Contract = Contract {
    title: "Creation",
    operands: &[],
    infers: false,
    check: |_, _, _, _| Ok(()),
    alone: |_, dtype| Types {
        inputs: Vec::new(),
        output: Some(dtype),
    },
    ..ELEMENTWISE
};

const IOTA: Contract = Contract {
    attributes: &[Attribute {
        name: "axis",
        kind: AttributeKind::Ints,
        doc: "one axis, or empty for the flat index",
    }],
    complete: |_, _, attrs| default(attrs, Attr::ints("axis", [])),
    check: |_, _, outputs, attrs| at_most_one_axis(ints(attrs, "axis"), &outputs[0]),
    problems: |_, layout, _, _| {
        let along = |shape: &[u64]| {
            let each = (0..shape.len() as i64).map(|axis| vec![axis]);
            let all = each
                .chain([Vec::new()])
                .map(|axis| vec![Attr::ints("axis", axis)]);
            all.collect::<Vec<_>>()
        };
        let shapes = shapes(layout).iter();
        shapes
            .flat_map(|shape| along(shape).into_iter().map(|attrs| made(shape, attrs)))
            .collect()
    },
    ..CREATE
};

const EYE: Contract = Contract {
    check: |_, _, outputs, _| match outputs[0].shape.len() {
        0 | 1 => Err("the result needs two axes".to_owned()),
        _ => Ok(()),
    },
    problems: |_, layout, _, _| {
        let shapes: &[&[u64]] = match layout {
            Layout::Scalar => &[],
            Layout::Empty => &[&[0, 3], &[2, 0, 4]],
            Layout::Large => &[&[1025, 1027]],
            Layout::Contiguous
            | Layout::Transposed
            | Layout::Broadcast
            | Layout::Sliced
            | Layout::Reversed
            | Layout::Deep => &[&[5, 7], &[7, 5], &[2, 4, 4], &[1, 1]],
        };
        shapes.iter().map(|shape| made(shape, Vec::new())).collect()
    },
    ..CREATE
};

const FILL: Contract = Contract {
    attributes: &[Attribute {
        name: "bits",
        kind: AttributeKind::Ints,
        doc: "one integer, two for 16-byte types: the element's little-endian bytes, zero-extended",
    }],
    copies: |_, _| true,
    complete: |_, output, attrs| {
        let words = output.map_or(1, |output| words(output.0));
        default(attrs, Attr::ints("bits", vec![0; words]));
    },
    check: |_, _, outputs, attrs| {
        let (expected, dtype) = (words(outputs[0].dtype), outputs[0].dtype);
        match ints(attrs, "bits").len() {
            n if n == expected => Ok(()),
            n => Err(format!(
                "attribute bits must have {expected} integers for {dtype}, not {n}"
            )),
        }
    },
    problems: |_, layout, _, rng| {
        let shapes = shapes(layout).iter();
        shapes.map(|shape| made(shape, vec![bits(rng)])).collect()
    },
    fit: |dtype, problem| {
        for attr in &mut problem.attrs {
            if let AttrValue::Ints(bits) = &mut attr.value {
                bits.truncate(words(dtype));
                let unused = 64 - 8 * dtype.size().min(8);
                bits.iter_mut()
                    .for_each(|word| *word = (*word as u64 >> unused) as i64);
            }
        }
    },
    ..CREATE
};

fn words(dtype: DType) -> usize {
    dtype.size().div_ceil(8) as usize
}

/// As many as any type has; `fit` leaves those of the result's type.
fn bits(rng: &mut Rng) -> Attr {
    Attr::ints("bits", [rng.bits() as i64, rng.bits() as i64])
}

fn shapes(layout: Layout) -> &'static [&'static [u64]] {
    match layout {
        Layout::Scalar => &[&[]],
        Layout::Empty => &[&[0], &[3, 0]],
        Layout::Large => &[&[(1 << 20) + 3]],
        Layout::Contiguous
        | Layout::Transposed
        | Layout::Broadcast
        | Layout::Sliced
        | Layout::Reversed
        | Layout::Deep => &[&[1021], &[3, 5, 7], &[2, 3, 2, 5, 3]],
    }
}

fn made(shape: &[u64], attrs: Vec<Attr>) -> Problem {
    Problem {
        inputs: Vec::new(),
        output: shape.to_vec(),
        attrs,
    }
}

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
        takes: &[],
        gives: Gives::Real,
        bound: Bound::MOVES,
        domains: &[],
        partial: None,
        lane: None,
        kernel,
    }
}

pub(super) const OPS: &[Op] = &[
    row(
        "iota",
        &IOTA,
        Kernel::Create(create::iota),
        "the index along the axis",
    ),
    row(
        "eye",
        &EYE,
        Kernel::Create(create::eye),
        "1 where the last two indices are equal, else 0; leading axes are a batch",
    ),
    Op {
        gives: Gives::Any,
        ..row(
            "fill",
            &FILL,
            Kernel::Create(create::fill),
            "every element the same",
        )
    },
];
