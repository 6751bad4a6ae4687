//! `gather`, `Nx.Block.Take`, `Nx.Block.TakeAlongAxis`: parts of a tensor by their indices.

use super::movement::{Place, copy, each_index, elements, integers};
use crate::{
    attrs::{Attr, ints},
    partial::INDEX,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::layout::contiguous_strides;

/// Where an axis of the result goes in the tensor and in the indices.
struct Axis {
    extent: u64,
    tensor: i64,
    indices: i64,
}

/// An index of the tensor.
struct Component {
    extent: u64,
    tensor: i64,
    /// How far it lies behind the first one among the indices.
    at: i64,
}

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([tensor, indices], [out]) = (inputs, outputs) else {
        return Err("wrong number of operands".to_owned());
    };
    let (bytes, first) = elements(tensor, out.dtype)?;
    let (axes, components) = walk(op, tensor, &first.strides, indices, attrs);
    let (size, all) = (out.dtype.size() as usize, integers(indices)?);
    // Behind the last axis that the indices depend on, a part is a box.
    let outer = axes
        .iter()
        .rposition(|axis| axis.indices != 0)
        .map_or(0, |last| last + 1);
    let (outer, inner) = axes.split_at(outer);
    let shape = |axes: &[Axis]| axes.iter().map(|axis| axis.extent).collect::<Vec<u64>>();
    let (inner_shape, outer_shape) = (shape(inner), shape(outer));
    let part = Place {
        at: first.at,
        strides: inner.iter().map(|axis| axis.tensor).collect(),
    };
    let mut target = Place::first(&inner_shape);
    let step = inner_shape.iter().product::<u64>() as i64;
    each_index(&outer_shape, |index| {
        let along = |stride: fn(&Axis) -> i64| {
            let steps = index.iter().zip(outer);
            steps.map(|(i, axis)| *i as i64 * stride(axis)).sum::<i64>()
        };
        let first = along(|axis| axis.indices);
        let mut at = along(|axis| axis.tensor);
        for component in &components {
            let value = all[(first + component.at) as usize];
            if !(0..i128::from(component.extent)).contains(&value) {
                return Err(INDEX.reason.to_owned());
            }
            at += value as i64 * component.tensor;
        }
        copy(
            &inner_shape,
            size,
            (&bytes, &part.shifted(at)),
            (&mut *out.bytes, &target),
        );
        target.at += step;
        Ok(())
    })
}

fn walk(
    op: &str,
    tensor: &View,
    strides: &[i64],
    indices: &View,
    attrs: &[Attr],
) -> (Vec<Axis>, Vec<Component>) {
    let steps = contiguous_strides(indices.shape);
    let named = if op == "gather" { "axes" } else { "axis" };
    let named: Vec<usize> = ints(attrs, named)
        .iter()
        .map(|axis| *axis as usize)
        .collect();
    let component = |(k, &axis): (usize, &usize)| Component {
        extent: tensor.shape[axis],
        tensor: strides[axis],
        at: k as i64,
    };
    let components = named.iter().enumerate().map(component).collect();
    let kept = |axis: usize| Axis {
        extent: tensor.shape[axis],
        tensor: strides[axis],
        indices: 0,
    };
    let indexed = |axis: usize| Axis {
        extent: indices.shape[axis],
        tensor: 0,
        indices: steps[axis],
    };
    let rank = indices.shape.len();
    let axes = match op {
        "gather" => {
            let rest = (0..tensor.shape.len()).filter(|axis| !named.contains(axis));
            (0..rank - 1).map(indexed).chain(rest.map(kept)).collect()
        }
        "Nx.Block.Take" => {
            let (lead, trail) = (0..named[0], named[0] + 1..tensor.shape.len());
            let lead = lead.map(kept).chain((0..rank).map(indexed));
            lead.chain(trail.map(kept)).collect()
        }
        _ => {
            let both = |axis: usize| Axis {
                tensor: if axis == named[0] { 0 } else { strides[axis] },
                ..indexed(axis)
            };
            (0..rank).map(both).collect()
        }
    };
    (axes, components)
}
