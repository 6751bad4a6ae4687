//! Elements by their indices: `gather`, and the blocks `Take` and `TakeAlongAxis`.

use super::shared::{ELEMENTWISE, MIXED, default, ordered_axes, some, types_of, without};
use crate::{
    attrs::{Attr, ints},
    kernels::{gather, kernel::Kernel},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    partial::INDEX,
    problems::Problem,
    tolerance::Bound,
    values::{
        Domain::{Any, Index},
        Rng,
    },
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet};

const ALL: DTypeSet = DTypeSet::ALL;

const GATHER: Contract = Contract {
    title: "Elements by index",
    operands: &["tensor", "indices"],
    attributes: &[Attribute {
        name: "axes",
        kind: AttributeKind::Ints,
        doc: "the axes that the last axis of the indices counts along, ascending; the leading ones by default",
    }],
    copies: |_, _| true,
    complete: |inputs, _, attrs| {
        let indices = inputs[1].1.last().copied().unwrap_or(0);
        let axes = 0..indices.min(inputs[0].1.len() as u64) as i64;
        default(attrs, Attr::ints("axes", Vec::from_iter(axes)));
    },
    infer: |_, inputs, attrs| {
        let (tensor, indices) = (&inputs[0].1, &inputs[1].1);
        let lead = &indices[..indices.len().saturating_sub(1)];
        let shape = [lead, &without(tensor, ints(attrs, "axes"))].concat();
        Ok((inputs[0].0, shape))
    },
    check: |_, inputs, outputs, attrs| {
        let (tensor, indices, axes) = (&inputs[0], &inputs[1], ints(attrs, "axes"));
        integers(indices)?;
        ordered_axes("axes", axes, tensor)?;
        if indices.shape.last() != Some(&(axes.len() as u64)) {
            return Err(format!(
                "the last axis of the indices must have an index for each of the axes {axes:?}, got {indices}"
            ));
        }
        let lead = &indices.shape[..indices.shape.len() - 1];
        expect(&outputs[0], &[lead, &without(tensor.shape, axes)].concat())
    },
    operand_shapes: |_, shape| {
        let first = shape.first().copied().unwrap_or(1);
        vec![shape.to_vec(), vec![first, 1]]
    },
    indices: |inputs, attrs| within(inputs[0], ints(attrs, "axes")),
    problems: |_, layout, _, rng| {
        let problem = |(tensor, indices, axes): Gather| Problem {
            inputs: vec![tensor.to_vec(), indices.to_vec()],
            output: Vec::new(),
            attrs: vec![Attr::ints("axes", axes)],
        };
        chosen(layout, GATHERS, rng)
            .into_iter()
            .map(problem)
            .collect()
    },
    alone: |_, dtype| Types {
        inputs: vec![dtype, DType::S32],
        output: None,
    },
    mixed: |_| {
        let pairs = types_of(DTypeSet::INTEGER).into_iter().zip(MOVED);
        let types = pairs.map(|(index, dtype)| Types {
            inputs: vec![dtype, index],
            output: None,
        });
        (types.collect(), MIXED)
    },
    ..ELEMENTWISE
};

const AXIS: Attribute = Attribute {
    name: "axis",
    kind: AttributeKind::Ints,
    doc: "the axis that the indices count along; 0 by default",
};

const TAKE: Contract = Contract {
    attributes: &[AXIS],
    complete: |_, _, attrs| default(attrs, Attr::ints("axis", [0])),
    infer: |_, inputs, attrs| {
        let (tensor, indices) = (&inputs[0].1, &inputs[1].1);
        Ok((inputs[0].0, taken(tensor, indices, ints(attrs, "axis"))))
    },
    check: |_, inputs, outputs, attrs| {
        let (tensor, indices, axis) = (&inputs[0], &inputs[1], ints(attrs, "axis"));
        integers(indices)?;
        one_axis(axis, tensor)?;
        expect(&outputs[0], &taken(tensor.shape, indices.shape, axis))
    },
    operand_shapes: |_, shape| vec![shape.to_vec(), shape[..shape.len().min(1)].to_vec()],
    indices: |inputs, attrs| within(inputs[0], ints(attrs, "axis")),
    problems: |_, layout, _, rng| along_one(layout, TAKES, rng),
    ..GATHER
};

const ALONG: Contract = Contract {
    infer: |_, inputs, _| Ok((inputs[0].0, inputs[1].1.clone())),
    check: |_, inputs, outputs, attrs| {
        let (tensor, indices, axis) = (&inputs[0], &inputs[1], ints(attrs, "axis"));
        integers(indices)?;
        one_axis(axis, tensor)?;
        if without(tensor.shape, axis) != without(indices.shape, axis)
            || tensor.shape.len() != indices.shape.len()
        {
            return Err(format!(
                "{indices} must have the shape of {tensor} but for axis {axis:?}"
            ));
        }
        expect(&outputs[0], indices.shape)
    },
    operand_shapes: |_, shape| vec![shape.to_vec(); 2],
    problems: |_, layout, _, rng| along_one(layout, ALONGS, rng),
    ..TAKE
};

/// Types that are moved beside each type of an index: one of each size, and the ones that nobody computes with.
const MOVED: [DType; 8] = [
    DType::F32,
    DType::U8,
    DType::BF16,
    DType::F64,
    DType::C128,
    DType::U4,
    DType::F8,
    DType::C64,
];

/// Indices are integers, of types that nobody computes with too.
pub(super) fn integers(indices: &Desc<'_>) -> Result<(), String> {
    if is_index(indices.dtype) {
        return Ok(());
    }
    Err(format!("indices must be integers, got {indices}"))
}

fn is_index(dtype: DType) -> bool {
    use nx_vulkan_abi::dtype::Class;
    matches!(dtype.class(), Some(Class::Unsigned | Class::Signed))
}

fn one_axis(axis: &[i64], tensor: &Desc<'_>) -> Result<(), String> {
    if axis.len() != 1 {
        return Err(format!("attribute axis must be one axis, got {axis:?}"));
    }
    super::shared::in_range("axis", axis, tensor)
}

/// Fails unless the result has that shape.
pub(super) fn expect(out: &Desc<'_>, shape: &[u64]) -> Result<(), String> {
    if out.shape == shape {
        return Ok(());
    }
    Err(format!("the result must have the shape {shape:?}"))
}

/// Indices that every one of those axes has, and every integer type holds.
pub(super) fn within(tensor: &[u64], axes: &[i64]) -> (i64, i64) {
    let extents = axes.iter().filter_map(|axis| tensor.get(*axis as usize));
    let least = extents.min().copied().unwrap_or(1) as i64;
    (0, (least - 1).max(0))
}

fn taken(tensor: &[u64], indices: &[u64], axis: &[i64]) -> Vec<u64> {
    let axis = axis.first().map_or(0, |axis| *axis as usize);
    let (lead, trail) = tensor.split_at(axis.min(tensor.len()));
    [lead, indices, trail.get(1..).unwrap_or_default()].concat()
}

/// Shapes of tensor and indices, and the axes.
pub(super) type Gather = (&'static [u64], &'static [u64], &'static [i64]);

const GATHERS: [&[Gather]; 3] = [
    &[
        (&[7, 9], &[5, 2], &[0, 1]),
        (&[7, 16], &[5, 1], &[0]),
        (&[7, 9], &[2, 3, 1], &[1]),
        (&[4, 5, 6, 7], &[3, 2], &[1, 3]),
        (&[4, 3, 8], &[6, 2], &[0, 1]),
        (&[5, 3], &[2], &[0, 1]),
        (&[11], &[700, 1], &[0]),
    ],
    &[
        (&[7, 9], &[0, 2], &[0, 1]),
        (&[4, 0], &[3, 1], &[0]),
        (&[0, 3], &[0, 1], &[0]),
    ],
    &[
        (&[300, 257], &[3001, 1], &[0]),
        (&[100, 100], &[100_003, 2], &[0, 1]),
    ],
];
const TAKES: [&[Gather]; 3] = [
    &[
        (&[7, 16], &[5], &[0]),
        (&[7, 9], &[2, 3], &[1]),
        (&[3, 5, 8], &[4, 2], &[1]),
        (&[11], &[], &[0]),
        (&[6, 3, 4], &[9], &[0]),
    ],
    &[
        (&[7, 9], &[0], &[0]),
        (&[7, 0], &[3], &[0]),
        (&[0, 2], &[0], &[0]),
    ],
    &[(&[300, 256], &[3001], &[0]), (&[300, 200], &[1001], &[1])],
];
const ALONGS: [&[Gather]; 3] = [
    &[
        (&[7, 9], &[7, 4], &[1]),
        (&[7, 9], &[11, 9], &[0]),
        (&[3, 5, 8], &[3, 6, 8], &[1]),
        (&[11], &[5], &[0]),
    ],
    &[(&[7, 9], &[7, 0], &[1]), (&[0, 3], &[0, 2], &[1])],
    &[(&[300, 257], &[300, 1001], &[1])],
];

/// Those of `all`, of the empty and of the large ones that a layout is tried with.
pub(super) fn chosen<T: Copy>(
    layout: Layout,
    [all, empty, large]: [&[T]; 3],
    rng: &mut Rng,
) -> Vec<T> {
    let (all, count) = match layout {
        Layout::Contiguous => (all, all.len()),
        Layout::Empty => (empty, empty.len()),
        Layout::Large => (large, large.len()),
        Layout::Scalar => (all, 1),
        Layout::Transposed
        | Layout::Broadcast
        | Layout::Sliced
        | Layout::Reversed
        | Layout::Deep => (all, 3),
    };
    some(all, count, rng)
}

fn along_one(layout: Layout, all: [&[Gather]; 3], rng: &mut Rng) -> Vec<Problem> {
    let problem = |(tensor, indices, axis): Gather| Problem {
        inputs: vec![tensor.to_vec(), indices.to_vec()],
        output: Vec::new(),
        attrs: vec![Attr::ints("axis", axis)],
    };
    chosen(layout, all, rng).into_iter().map(problem).collect()
}

const fn row(name: &'static str, contract: &'static Contract, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract,
        takes: &[ALL, ALL],
        gives: Gives::Operand,
        bound: Bound::MOVES,
        domains: &[Any, Index],
        partial: Some(&INDEX),
        lane: None,
        kernel: Kernel::Moves(gather::run),
    }
}

pub(super) const OPS: &[Op] = &[
    row(
        "gather",
        &GATHER,
        "parts of the tensor, one for each index: the axes of the indices but for the last one, then those of the tensor that \
         are not indexed. An index outside of the tensor is an error",
    ),
    row(
        "Nx.Block.Take",
        &TAKE,
        "parts of the tensor along an axis, which the axes of the indices replace. An index outside of the axis is an error",
    ),
    row(
        "Nx.Block.TakeAlongAxis",
        &ALONG,
        "elements of the tensor, each at an index of its own along an axis. An index outside of the axis is an error",
    ),
];
