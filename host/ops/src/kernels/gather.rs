//! `gather`, `Nx.Block.Take`, `Nx.Block.TakeAlongAxis`: parts of a tensor by their indices.

use super::elementwise::TASK;
use super::movement::{Place, copy, elements, integers};
use super::parallel;
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
    let start = first.at;
    let part = Place {
        at: start,
        strides: inner.iter().map(|axis| axis.tensor).collect(),
    };
    let along = |stride: fn(&Axis) -> i64| outer.iter().map(stride).collect::<Vec<_>>();
    let steps = [along(|axis| axis.tensor), along(|axis| axis.indices)];
    let length = inner_shape.iter().product::<u64>() as usize;
    let rows = (TASK / length.max(1)).max(1);
    parallel::for_each_chunk(out.bytes, rows * length * size, &|task, to| {
        let (mut part, target) = (part.clone(), Place::first(&inner_shape));
        let places = walk_from(&outer_shape, &steps, (task * rows) as u64);
        for (to, [tensor, first]) in to.chunks_mut(length * size).zip(places) {
            part.at = start + tensor;
            for component in &components {
                let value = all[(first + component.at) as usize];
                if !(0..component.extent as i64).contains(&value) {
                    return Err(INDEX.reason.to_owned());
                }
                part.at += value * component.tensor;
            }
            copy(&inner_shape, size, (&bytes, &part), (to, &target));
        }
        Ok(())
    })
}

/// How far the elements of a box lie from the first one, by two sets of steps along its axes, in row-major order from one on.
fn walk_from<'a>(
    shape: &'a [u64],
    steps: &'a [Vec<i64>; 2],
    start: u64,
) -> impl Iterator<Item = [i64; 2]> + 'a {
    let (mut index, mut rest) = (vec![0; shape.len()], start);
    for (index, extent) in index.iter_mut().zip(shape).rev() {
        (*index, rest) = (rest % extent, rest / extent);
    }
    let distance = |steps: &Vec<i64>| {
        index
            .iter()
            .zip(steps)
            .map(|(i, step)| *i as i64 * step)
            .sum()
    };
    let mut place: [i64; 2] = steps.each_ref().map(distance);
    std::iter::repeat_with(move || {
        let now = place;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            let back = if index[axis] < shape[axis] {
                0
            } else {
                shape[axis] as i64
            };
            for (place, steps) in place.iter_mut().zip(steps) {
                *place += steps[axis] - back * steps[axis];
            }
            if back == 0 {
                break;
            }
            index[axis] = 0;
        }
        now
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
