//! `gather`, `Nx.Block.Take`, `Nx.Block.TakeAlongAxis`: parts of a tensor by their indices.

use super::elementwise::TASK;
use super::movement::{Place, copy, elements, integers};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::{
    attrs::{Attr, ints},
    partial::INDEX,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

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
    let size = out.dtype.size() as usize;
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
    let own = length * size;
    let is_together = own > 0 && part.strides == contiguous_strides(&inner_shape);
    let has_indices = !components.is_empty() && indices.dtype != DType::U64;
    let numbers = Operand::broadcast(indices, indices.shape).filter(|_| has_indices);
    if let (true, Some(unit), Some(numbers)) = (is_together, in_order(outer), &numbers) {
        let parts = Parts {
            bytes: &bytes,
            first: start * size as i64,
            size: size as i64,
            components: &components,
            indices: numbers,
            unit,
        };
        return parallel::for_each_short_chunk(out.bytes, rows * own, &|task, to| {
            let first = task * rows;
            match own {
                1 => parts.cells(first, to.as_chunks_mut::<1>().0),
                2 => parts.cells(first, to.as_chunks_mut::<2>().0),
                4 => parts.cells(first, to.as_chunks_mut::<4>().0),
                8 => parts.cells(first, to.as_chunks_mut::<8>().0),
                16 => parts.cells(first, to.as_chunks_mut::<16>().0),
                _ => parts.copy(first, to.chunks_exact_mut(own)),
            }
        });
    }
    let is_along = length == 1 && steps[1] == contiguous_strides(&outer_shape);
    if let ([component], [lead @ .., last], Some(indices), true) =
        (&components[..], outer, &numbers, is_along)
    {
        let lines = Lines {
            bytes: &bytes,
            first: start,
            component,
            indices,
            lead: shape(lead),
            steps: [
                lead.iter().map(|axis| axis.tensor).collect(),
                vec![0; lead.len()],
            ],
            last,
        };
        match size {
            1 => return lines.fill::<1>(out.bytes),
            2 => return lines.fill::<2>(out.bytes),
            4 => return lines.fill::<4>(out.bytes),
            8 => return lines.fill::<8>(out.bytes),
            16 => return lines.fill::<16>(out.bytes),
            _ => {}
        }
    }
    let all = integers(indices)?;
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

/// Parts of a tensor whose bytes lie beside each other, by indices in their order.
struct Parts<'a> {
    bytes: &'a [u8],
    /// The byte that the first one begins at.
    first: i64,
    /// Bytes of an element.
    size: i64,
    components: &'a [Component],
    indices: &'a Operand<'a>,
    /// Indices of a part.
    unit: usize,
}

impl Parts<'_> {
    /// The same as [`Parts::copy`] of parts of `N` bytes: faster where each is at a number of them by one index.
    fn cells<const N: usize>(&self, first: usize, to: &mut [[u8; N]]) -> Outcome {
        let ([component], 1) = (self.components, self.unit) else {
            return self.copy(first, to.iter_mut());
        };
        let is_whole = self.first % N as i64 == 0 && component.tensor * self.size % N as i64 == 0;
        if !is_whole {
            return self.copy(first, to.iter_mut());
        }
        let (step, start) = (
            component.tensor * self.size / N as i64,
            self.first / N as i64,
        );
        let extent = component.extent as i64;
        let cells = self.bytes.as_chunks::<N>().0;
        let mut indices = [0i64; BLOCK];
        for (to, first) in to.chunks_mut(BLOCK).zip((first..).step_by(BLOCK)) {
            let indices = &mut indices[..to.len()];
            self.indices.gather(0, first as u64, indices);
            inside(indices, extent)?;
            for (to, index) in to.iter_mut().zip(indices) {
                *to = cells[(start + *index * step) as usize];
            }
        }
        Ok(())
    }

    /// Copies parts from the `first` one on.
    fn copy<T: AsMut<[u8]>>(
        &self,
        first: usize,
        to: impl IntoIterator<IntoIter: ExactSizeIterator<Item = T>>,
    ) -> Outcome {
        let to = to.into_iter();
        let mut indices = vec![0i64; to.len() * self.unit];
        self.indices
            .gather(0, (first * self.unit) as u64, &mut indices);
        for (mut to, indices) in to.zip(indices.chunks_exact(self.unit)) {
            let to = to.as_mut();
            let mut at = self.first;
            for component in self.components {
                let value = indices[component.at as usize];
                if !(0..component.extent as i64).contains(&value) {
                    return Err(INDEX.reason.to_owned());
                }
                at += value * component.tensor * self.size;
            }
            to.copy_from_slice(&self.bytes[at as usize..][..to.len()]);
        }
        Ok(())
    }
}

/// Elements by one index each, along lines of the result.
struct Lines<'a> {
    bytes: &'a [u8],
    /// The first element.
    first: i64,
    component: &'a Component,
    indices: &'a Operand<'a>,
    /// The axes but the last one, and how far apart the tensor's elements are along them.
    lead: Vec<u64>,
    steps: [Vec<i64>; 2],
    last: &'a Axis,
}

impl Lines<'_> {
    /// Copies elements of `N` bytes.
    fn fill<const N: usize>(&self, to: &mut [u8]) -> Outcome {
        let length = self.last.extent as usize;
        let lines = (TASK / length.max(1)).max(1);
        let extent = self.component.extent as i64;
        let cells = self.bytes.as_chunks::<N>().0;
        parallel::for_each_short_chunk(to, lines * length * N, &|task, to| {
            let mut numbers = [0i64; BLOCK];
            let mut at = task * lines * length;
            let places = walk_from(&self.lead, &self.steps, (task * lines) as u64);
            let to = to.as_chunks_mut::<N>().0.chunks_mut(length.max(1));
            for (line, [place, _]) in to.zip(places) {
                let mut from = self.first + place;
                for to in line.chunks_mut(BLOCK) {
                    let numbers = &mut numbers[..to.len()];
                    self.indices.gather(0, at as u64, numbers);
                    inside(numbers, extent)?;
                    for (to, index) in to.iter_mut().zip(&*numbers) {
                        *to = cells[(from + index * self.component.tensor) as usize];
                        from += self.last.tensor;
                    }
                    at += to.len();
                }
            }
            Ok(())
        })
    }
}

fn inside(indices: &[i64], extent: i64) -> Outcome {
    let all = indices.iter();
    match all.fold(true, |all, i| all & (0..extent).contains(i)) {
        true => Ok(()),
        false => Err(INDEX.reason.to_owned()),
    }
}

/// Indices of a part, where the parts along these axes are those of the indices in their order.
fn in_order(outer: &[Axis]) -> Option<usize> {
    let mut unit = outer.last()?.indices;
    let first = unit;
    for axis in outer.iter().rev() {
        if axis.tensor != 0 || axis.indices != unit {
            return None;
        }
        unit *= axis.extent as i64;
    }
    usize::try_from(first).ok().filter(|first| *first > 0)
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
