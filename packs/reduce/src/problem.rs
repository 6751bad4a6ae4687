//! A reduction without its op: the axes that stay, the axes that go, and where the elements are.

use crate::table::TableRow;
use nx_vulkan_abi::{Refusal, Request, TensorDesc, layout};

/// Elements and results are counted in 32 bits, with room for one more step of every loop.
const MAX_ELEMENTS: u64 = 1 << 31;

/// One axis of an iteration space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) extent: u64,
    /// Elements of the operand from one index to the next.
    pub(crate) operand: i64,
    /// Results from one index to the next.
    pub(crate) result: i64,
    /// What one step adds to the index that a pick gives.
    pub(crate) index: i64,
}

impl Axis {
    /// An axis of one index.
    pub(crate) const ONE: Axis = Axis {
        extent: 1,
        operand: 0,
        result: 0,
        index: 0,
    };
}

/// A reduction without its op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Position of the element at index 0 of every axis, in elements from the start of the buffer.
    pub(crate) offset: i64,
    /// Axes of the result, in its order.
    pub(crate) kept: Vec<Axis>,
    /// Axes to reduce. A pick meets the elements in the order of their indices when it walks them in this order.
    pub(crate) reduced: Vec<Axis>,
}

impl Problem {
    /// The reduction that `request` asks for, with as few axes as possible.
    pub(crate) fn new(row: &TableRow, request: &Request<'_>) -> Result<Problem, Refusal> {
        let (operand, result, op) = (&request.inputs[0], &request.outputs[0], &row.op);
        let goes = reduced_axes(row, request, operand)?;
        let axes = |wanted: bool| {
            let chosen = goes
                .iter()
                .zip(operand.shape.iter().zip(operand.strides.iter()));
            chosen
                .filter(move |(goes, _)| **goes == wanted)
                .map(|(_, (&extent, &operand))| Axis {
                    extent,
                    operand,
                    result: 0,
                    index: 0,
                })
                .collect::<Vec<Axis>>()
        };
        let (mut kept, mut reduced) = (axes(false), axes(true));
        if elements(&kept) != result.elements() {
            return Err(Refusal::BadRequest(format!(
                "{} of {:?} has {} results, asked for {:?}",
                op.op,
                operand.shape,
                elements(&kept),
                result.shape
            )));
        }
        if elements(&kept).max(elements(&reduced)) >= MAX_ELEMENTS {
            return Err(Refusal::decline(format!(
                "{} of {:?} has 2^31 or more results, or elements in one of them",
                op.op, operand.shape
            )));
        }
        number(&mut kept, |axis, step| axis.result = step);
        number(&mut reduced, |axis, step| axis.index = step);
        let mut problem = Problem {
            offset: operand.offset as i64,
            kept,
            reduced,
        };
        if !row.picks() {
            problem.reorder(op.repeats);
        }
        problem.kept = collapse(&problem.kept);
        problem.reduced = collapse(&problem.reduced);
        Ok(problem)
    }

    /// Number of results.
    pub(crate) fn results(&self) -> u64 {
        elements(&self.kept)
    }

    /// Elements that one result is made of.
    pub(crate) fn extent(&self) -> u64 {
        elements(&self.reduced)
    }

    /// Puts the reduced axes of a fold, for which order is nothing, in the order of memory. Where an element may count
    /// any number of times (`repeats`), a broadcast axis counts once.
    fn reorder(&mut self, repeats: bool) {
        for axis in &mut self.reduced {
            axis.index = 0;
            if axis.operand < 0 {
                self.offset += axis.operand * (axis.extent.max(1) - 1) as i64;
                axis.operand = -axis.operand;
            }
            if repeats && axis.operand == 0 {
                axis.extent = axis.extent.min(1);
            }
        }
        self.reduced
            .sort_by_key(|axis| std::cmp::Reverse(axis.operand));
    }
}

/// Number of indices.
pub(crate) fn elements(axes: &[Axis]) -> u64 {
    axes.iter()
        .fold(1, |count: u64, axis| count.saturating_mul(axis.extent))
}

/// The same indices with as few axes as possible.
pub(crate) fn collapse(axes: &[Axis]) -> Vec<Axis> {
    let shape: Vec<u64> = axes.iter().map(|axis| axis.extent).collect();
    let strides = [
        axes.iter().map(|axis| axis.operand).collect(),
        axes.iter().map(|axis| axis.result).collect(),
        axes.iter().map(|axis| axis.index).collect(),
    ];
    let space = layout::collapse(&shape, &strides);
    let axis = |k: usize| Axis {
        extent: space.shape[k],
        operand: space.strides[0][k],
        result: space.strides[1][k],
        index: space.strides[2][k],
    };
    (0..space.shape.len())
        .map(axis)
        .filter(|axis| axis.extent != 1)
        .collect()
}

/// Gives each axis its row-major step among `axes`.
fn number(axes: &mut [Axis], set: impl Fn(&mut Axis, i64)) {
    let shape: Vec<u64> = axes.iter().map(|axis| axis.extent).collect();
    for (axis, step) in axes.iter_mut().zip(layout::contiguous_strides(&shape)) {
        set(axis, step);
    }
}

/// For each axis of the operand, whether it goes.
fn reduced_axes(
    row: &TableRow,
    request: &Request<'_>,
    operand: &TensorDesc<'_>,
) -> Result<Vec<bool>, Refusal> {
    let (op, picks) = (&row.op.op, row.picks());
    let name = if picks { "axis" } else { "axes" };
    let listed = request.ints(name);
    let mut goes = vec![picks && listed.is_empty(); operand.rank()];
    for &axis in listed {
        let place = usize::try_from(axis)
            .ok()
            .and_then(|axis| goes.get_mut(axis));
        match place {
            Some(goes) if !*goes => *goes = true,
            _ => {
                return Err(Refusal::BadRequest(format!(
                    "{op}: {name} {listed:?} of a tensor with {} axes",
                    operand.rank()
                )));
            }
        }
    }
    if picks && listed.len() > 1 {
        return Err(Refusal::BadRequest(format!(
            "{op}: more than one axis in {listed:?}"
        )));
    }
    Ok(goes)
}
