//! Lines: an operand and a result as the lines along one of their axes, which `lines.glsl` finds in a shader.

use crate::steps::bytes_of;
use nx_vulkan_abi::{RVec, Refusal, Request, Source, TensorDesc, layout};

/// The shader's half.
pub const GLSL: Source = Source::glsl("lines.glsl", include_str!("../glsl/lines.glsl"));

/// The lines of a request's first operand and of its results, which have the same shape but for the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// How many there are.
    pub count: u64,
    /// Elements of a line of the operand.
    pub extent: u64,
    /// The first element of the first line of the operand.
    pub first: i64,
    /// Steps along a line, of the operand and of the result.
    pub strides: [i64; 2],
    /// Extents of the other axes that are not 1, outermost first, and their steps, of the operand and of the result.
    pub axes: Vec<(u64, [i64; 2])>,
}

impl Lines {
    /// Lines along `axis`.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] where there is no such axis, and where operand and result differ in another.
    pub fn new(request: &Request<'_>, axis: i64) -> Result<Lines, Refusal> {
        let (x, out) = (&request.inputs[0], &request.outputs[0]);
        let axis = usize::try_from(axis).ok().filter(|axis| *axis < x.rank());
        let axis = axis.ok_or_else(|| {
            Refusal::BadRequest(format!("{}: no such axis of {:?}", request.op, x.shape))
        })?;
        let others = |tensor: &TensorDesc<'_>| -> Vec<u64> {
            let mut shape = tensor.shape.to_vec();
            (axis < shape.len()).then(|| shape.remove(axis));
            shape
        };
        let shape = others(x);
        if x.rank() != out.rank() || shape != others(out) {
            return Err(Refusal::BadRequest(format!(
                "{} of {:?} does not give {:?}",
                request.op, x.shape, out.shape
            )));
        }
        let strides = [x, out].map(|tensor| {
            let mut strides = tensor.strides.to_vec();
            (strides.remove(axis), strides)
        });
        let [(operand, operands), (result, results)] = strides;
        let space = layout::collapse(&shape, &[operands, results]);
        let axes = (0..space.shape.len())
            .map(|k| (space.shape[k], [space.strides[0][k], space.strides[1][k]]))
            .filter(|(extent, _)| *extent != 1);
        Ok(Lines {
            count: shape.iter().product(),
            extent: x.shape[axis],
            first: x.offset as i64,
            strides: [operand, result],
            axes: axes.collect(),
        })
    }

    /// So many lines of so many elements each, one behind the other.
    pub fn contiguous(count: u64, extent: u64) -> Lines {
        let axis = (count, [extent as i64; 2]);
        Lines {
            count,
            extent,
            first: 0,
            strides: [1; 2],
            axes: vec![axis],
        }
    }

    /// Lines beside each other in the result, and whether they are so in the operand.
    pub fn beside(&self) -> (u64, bool) {
        match self.axes.last() {
            Some((extent, [operand, 1])) => (*extent, operand.unsigned_abs() <= 1),
            _ => (1, false),
        }
    }

    /// The axes as `lines.glsl` reads them, at least one of them, and their number.
    pub fn params(&self) -> (RVec<u8>, u32) {
        let words = |(extent, strides): &(u64, [i64; 2])| {
            [*extent as u32, strides[0] as u32, strides[1] as u32, 0]
        };
        let mut all: Vec<u32> = self.axes.iter().flat_map(words).collect();
        all.resize(all.len().max(4), 1);
        (bytes_of(&all), self.axes.len() as u32)
    }
}
