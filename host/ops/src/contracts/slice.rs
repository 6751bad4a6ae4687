//! Parts of a tensor at starts that are operands: `dynamic_slice` reads one, `put_slice` replaces one.

use super::{
    gather::{chosen, expect, integers},
    shared::{ELEMENTWISE, MIXED, default, ordered_axes, pairs, types_of},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{kernel::Kernel, slice},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    tolerance::Bound,
    values::Domain::{Any, Index},
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet};

const ALL: DTypeSet = DTypeSet::ALL;

const fn attribute(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

const SLICE: Contract = Contract {
    title: "Slices",
    operands: &["tensor", "start"],
    variadic: true,
    attributes: &[
        attribute(
            "axes",
            "the axis of each start, ascending; the leading ones by default",
        ),
        attribute(
            "lengths",
            "elements of each of these axes that the slice spans; 1 by default",
        ),
        attribute("strides", "steps along each of them; 1 by default"),
    ],
    copies: |_, _| true,
    complete: |inputs, _, attrs| {
        let starts = inputs.len() as i64 - 1;
        default(attrs, Attr::ints("axes", Vec::from_iter(0..starts)));
        default(attrs, Attr::ints("lengths", vec![1; starts as usize]));
        default(attrs, Attr::ints("strides", vec![1; starts as usize]));
    },
    infer: |_, inputs, attrs| Ok((inputs[0].0, sliced(&inputs[0].1, attrs)?)),
    check: |_, inputs, outputs, attrs| {
        let [axes, lengths, strides] = ["axes", "lengths", "strides"].map(|name| ints(attrs, name));
        let tensor = &inputs[0];
        starts(&inputs[1..], axes, tensor)?;
        for (name, list) in [("lengths", lengths), ("strides", strides)] {
            if list.len() != axes.len() || list.iter().any(|n| *n < 1) {
                return Err(format!(
                    "attribute {name} must be positive, one for each start, got {list:?}"
                ));
            }
        }
        let mut spans = axes.iter().zip(lengths);
        if let Some((axis, length)) =
            spans.find(|(axis, length)| **length as u64 > tensor.shape[**axis as usize])
        {
            return Err(format!(
                "{tensor} has no {length} elements along axis {axis}"
            ));
        }
        expect(&outputs[0], &sliced(tensor.shape, attrs)?)
    },
    operand_shapes: |_, shape| vec![shape.to_vec(), Vec::new()],
    indices: |inputs, _| around(inputs[0]),
    problems: |_, layout, _, rng| {
        let problem = |(tensor, axes, lengths, strides): Slice| Problem {
            inputs: [vec![tensor.to_vec()], vec![Vec::new(); axes.len()]].concat(),
            output: Vec::new(),
            attrs: vec![
                Attr::ints("axes", axes),
                Attr::ints("lengths", lengths),
                Attr::ints("strides", strides),
            ],
        };
        chosen(layout, SLICES, rng)
            .into_iter()
            .map(problem)
            .collect()
    },
    alone: |_, dtype| Types {
        inputs: vec![dtype, DType::S32],
        output: None,
    },
    mixed: |_| {
        let all = pairs(&[DType::F32, DType::U8], &types_of(DTypeSet::INTEGER));
        let types = |(x, y)| Types {
            inputs: vec![x, y],
            output: None,
        };
        (all.into_iter().map(types).collect(), MIXED)
    },
    ..ELEMENTWISE
};

const PUT: Contract = Contract {
    operands: &["tensor", "slice"],
    attributes: &[
        attribute(
            "axes",
            "the axis of each start behind the slice, ascending; none by default",
        ),
        attribute(
            "starts",
            "the start of the slice along every axis of the tensor, 0 where it is an operand; 0 by default",
        ),
    ],
    copies: |inputs, outputs| inputs[..2].iter().all(|input| *input == outputs[0]),
    complete: |inputs, _, attrs| {
        default(attrs, Attr::ints("axes", []));
        default(attrs, Attr::ints("starts", vec![0; inputs[0].1.len()]));
    },
    infer: |_, inputs, _| Ok((inputs[0].0.merge(inputs[1].0), inputs[0].1.clone())),
    check: |_, inputs, outputs, attrs| {
        let (tensor, slice, axes) = (&inputs[0], &inputs[1], ints(attrs, "axes"));
        starts(&inputs[2..], axes, tensor)?;
        let at = ints(attrs, "starts");
        if slice.shape.len() != tensor.shape.len() || at.len() != tensor.shape.len() {
            return Err(format!(
                "{slice} at {at:?} must have as many axes as {tensor}"
            ));
        }
        let extents = tensor.shape.iter().zip(slice.shape).zip(at);
        let mut fits = extents.map(|((all, part), start)| {
            let start = u64::try_from(*start).ok();
            start.is_some_and(|start| start.checked_add(*part).is_some_and(|end| end <= *all))
        });
        if !fits.all(|fits| fits) {
            return Err(format!("{slice} at {at:?} is not inside of {tensor}"));
        }
        expect(&outputs[0], tensor.shape)
    },
    operand_shapes: |_, shape| vec![shape.to_vec(); 2],
    indices: |inputs, _| around(inputs[0]),
    problems: |_, layout, _, rng| {
        let problem = |(tensor, slice, axes, starts): Put| Problem {
            inputs: [
                vec![tensor.to_vec(), slice.to_vec()],
                vec![Vec::new(); axes.len()],
            ]
            .concat(),
            output: Vec::new(),
            attrs: vec![Attr::ints("axes", axes), Attr::ints("starts", starts)],
        };
        chosen(layout, PUTS, rng).into_iter().map(problem).collect()
    },
    alone: |_, dtype| Types {
        inputs: vec![dtype, dtype, DType::S32],
        output: None,
    },
    mixed: |_| {
        let all = pairs(&types_of(DTypeSet::REAL), &types_of(DTypeSet::REAL));
        let starts = types_of(DTypeSet::INTEGER).into_iter().cycle();
        let types = all.into_iter().zip(starts).map(|((x, y), start)| Types {
            inputs: vec![x, y, start],
            output: None,
        });
        (types.collect(), MIXED)
    },
    ..SLICE
};

/// Starts are integers without axes, one for each of the axes that are named.
fn starts(starts: &[Desc<'_>], axes: &[i64], tensor: &Desc<'_>) -> Result<(), String> {
    ordered_axes("axes", axes, tensor)?;
    if starts.len() != axes.len() {
        return Err(format!(
            "expected a start for each of the axes {axes:?}, got {}",
            starts.len()
        ));
    }
    starts.iter().try_for_each(|start| {
        integers(start)?;
        if start.shape.is_empty() {
            Ok(())
        } else {
            Err(format!("a start must be a scalar, got {start}"))
        }
    })
}

fn sliced(tensor: &[u64], attrs: &[Attr]) -> Result<Vec<u64>, String> {
    let [axes, lengths, strides] = ["axes", "lengths", "strides"].map(|name| ints(attrs, name));
    let mut shape = tensor.to_vec();
    for ((&axis, &length), &stride) in axes.iter().zip(lengths).zip(strides) {
        let extent = usize::try_from(axis)
            .ok()
            .and_then(|axis| shape.get_mut(axis));
        let extent =
            extent.ok_or_else(|| format!("attribute axes names axis {axis} of {tensor:?}"))?;
        *extent = (length.max(0) as u64).div_ceil(stride.max(1) as u64);
    }
    Ok(shape)
}

/// Starts inside of the tensor and outside of it.
fn around(tensor: &[u64]) -> (i64, i64) {
    let most = tensor.iter().max().map_or(1, |extent| *extent as i64);
    (-3, most + 2)
}

/// Shape of the tensor, axes with a start, lengths, strides.
type Slice = (
    &'static [u64],
    &'static [i64],
    &'static [i64],
    &'static [i64],
);

const SLICES: [&[Slice]; 3] = [
    &[
        (&[7, 16], &[0], &[3], &[1]),
        (&[7, 9], &[1], &[4], &[1]),
        (&[7, 9], &[0, 1], &[5, 7], &[2, 3]),
        (&[3, 5, 8], &[1], &[2], &[1]),
        (&[3, 5, 8], &[0, 1, 2], &[2, 2, 3], &[1, 1, 1]),
        (&[40], &[0], &[7], &[2]),
    ],
    &[(&[0, 5], &[1], &[2], &[1])],
    &[
        (&[1000, 300], &[0], &[900], &[1]),
        (&[300, 1001], &[1], &[700], &[1]),
    ],
];

/// Shapes of tensor and slice, axes with a start, the other starts.
type Put = (
    &'static [u64],
    &'static [u64],
    &'static [i64],
    &'static [i64],
);

const PUTS: [&[Put]; 3] = [
    &[
        (&[7, 16], &[3, 16], &[0], &[0, 0]),
        (&[7, 16], &[7, 4], &[], &[0, 8]),
        (&[7, 9], &[2, 3], &[0, 1], &[0, 0]),
        (&[3, 5, 8], &[3, 2, 8], &[1], &[0, 0, 0]),
        (&[3, 5, 8], &[1, 2, 3], &[0], &[0, 2, 5]),
        (&[40], &[7], &[0], &[0]),
    ],
    &[
        (&[0, 5], &[0, 2], &[1], &[0, 0]),
        (&[4, 5], &[0, 5], &[0], &[0, 0]),
    ],
    &[
        (&[1000, 300], &[900, 300], &[0], &[0, 0]),
        (&[300, 1001], &[300, 77], &[1], &[0, 0]),
    ],
];

const fn row(
    name: &'static str,
    contract: &'static Contract,
    gives: Gives,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract,
        takes: &[ALL, ALL, ALL],
        gives,
        bound: Bound::MOVES,
        domains: &[Any, Any, Index],
        partial: None,
        lane: None,
        kernel: Kernel::Moves(slice::run),
    }
}

pub(super) const OPS: &[Op] = &[
    Op {
        takes: &[ALL, ALL],
        domains: &[Any, Index],
        ..row(
            "dynamic_slice",
            &SLICE,
            Gives::Operand,
            "a part of the tensor that begins at the starts, which move to where it fits; all of the axes without a start",
        )
    },
    row(
        "put_slice",
        &PUT,
        Gives::Any,
        "the tensor with the slice in place of the part that begins at the starts; those that are operands move to where it fits. \
         Both convert to the result's type",
    ),
];
