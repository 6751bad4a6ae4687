//! Operands as views: which tensor is uploaded, and the views that turn it into the operand.

use nx_vulkan_abi::DType;
use nx_vulkan_host::{Result, Tensor};
use nx_vulkan_ops::{layout::Layout, values::Rng};
use std::fmt;

/// An operand: a row-major tensor of shape `base`, seen through `view`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operand {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) base: Vec<u64>,
    layout: Layout,
    view: Vec<View>,
}

#[derive(Debug, Clone, PartialEq)]
enum View {
    Transpose(Vec<usize>),
    Slice([Vec<u64>; 3]),
    Reverse(Vec<usize>),
    Broadcast,
}

impl Operand {
    /// An operand of `shape` that lies in memory as `layout` says: in one of many ways by `rng`, without it in the
    /// way that shares its shader with other layouts.
    pub(super) fn new(
        dtype: DType,
        shape: &[u64],
        layout: Layout,
        rng: Option<&mut Rng>,
    ) -> Operand {
        let rank = shape.len();
        let all: Vec<usize> = (0..rank).collect();
        let whole = shape.to_vec();
        let (base, view) = match layout {
            Layout::Transposed => permuted(shape, all.into_iter().rev().collect()),
            Layout::Deep => {
                let mut order = all;
                match rng {
                    Some(rng) => {
                        (1..rank).for_each(|i| order.swap(i, rng.below(i as u64 + 1) as usize))
                    }
                    None => order.reverse(),
                }
                permuted(shape, order)
            }
            Layout::Broadcast => {
                let kept = |axis: usize| match &rng {
                    Some(rng) => rng.0 >> axis & 1 == 1,
                    None => axis + 1 == rank,
                };
                let extent = |axis: usize| if kept(axis) { shape[axis] } else { 1 };
                (all.into_iter().map(extent).collect(), vec![View::Broadcast])
            }
            Layout::Sliced => sliced(shape, rng.map_or(1, |rng| rng.below(3))),
            Layout::Reversed => {
                let reversed = |axis: &usize| match &rng {
                    Some(rng) => rng.0 >> axis & 1 == 1,
                    None => axis + 1 == rank,
                };
                let axes: Vec<usize> = all.iter().copied().filter(reversed).collect();
                (
                    whole,
                    vec![View::Reverse(if axes.is_empty() { all } else { axes })],
                )
            }
            Layout::Contiguous | Layout::Empty | Layout::Scalar | Layout::Large => {
                (whole, Vec::new())
            }
        };
        Operand {
            dtype,
            shape: shape.to_vec(),
            base,
            layout,
            view,
        }
    }

    /// One element in place of all.
    pub(super) fn of_one(dtype: DType, shape: &[u64]) -> Operand {
        Operand {
            dtype,
            shape: shape.to_vec(),
            base: vec![1; shape.len()],
            layout: Layout::Scalar,
            view: vec![View::Broadcast],
        }
    }

    /// Elements to upload.
    pub(super) fn stored(&self) -> usize {
        self.base.iter().product::<u64>() as usize
    }

    /// The operand as a view of its uploaded base.
    pub(super) fn of(&self, base: &Tensor) -> Result<Tensor> {
        self.view
            .iter()
            .try_fold(base.clone(), |tensor, view| match view {
                View::Transpose(axes) => tensor.transpose(axes),
                View::Slice([starts, lengths, steps]) => tensor.slice(starts, lengths, steps),
                View::Reverse(axes) => tensor.reverse(axes),
                View::Broadcast => {
                    let axes: Vec<usize> = (0..self.shape.len()).collect();
                    tensor.broadcast(&self.shape, &axes)
                }
            })
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)?;
        match &self.view[..] {
            [] => Ok(()),
            view => write!(f, " ({:?} of {:?}: {view:?})", self.layout, self.base),
        }
    }
}

fn permuted(shape: &[u64], order: Vec<usize>) -> (Vec<u64>, Vec<View>) {
    let mut base = vec![0; shape.len()];
    order
        .iter()
        .zip(shape)
        .for_each(|(&axis, &extent)| base[axis] = extent);
    (base, vec![View::Transpose(order)])
}

/// An offset of whole rows, an offset within rows, or steps along every axis.
fn sliced(shape: &[u64], kind: u64) -> (Vec<u64>, Vec<View>) {
    let last = shape.len().saturating_sub(1);
    let per_axis = |axis: usize| match kind {
        0 if axis == 0 => (2, 1, 1),
        0 => (0, 1, 0),
        1 if axis == last => (3, 1, 2),
        1 => (1, 1, 0),
        _ => (1, if axis == last { 2 } else { 3 }, 1),
    };
    let (mut starts, mut steps, mut base) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, &extent) in shape.iter().enumerate() {
        let (start, step, more) = per_axis(axis);
        starts.push(start);
        steps.push(step);
        base.push(start + extent * step + more);
    }
    (base, vec![View::Slice([starts, shape.to_vec(), steps])])
}
