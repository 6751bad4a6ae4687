//! What a request asks for: transforms of rows along one axis, or along two.

use crate::table::{Kernel, Of};
use nx_vulkan_abi::{DType, Refusal, Request};
use nx_vulkan_pack_kit::operand;

/// Transforms along one axis of a tensor in row-major order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// Elements before the axis and behind it, in number: the rows are `outer * inner`.
    pub(crate) outer: u64,
    pub(crate) inner: u64,
    /// Extent of the axis.
    pub(crate) extent: u64,
    /// Elements that are transformed.
    pub(crate) length: u64,
    /// Elements of the result.
    pub(crate) kept: u64,
    /// Whether the operand is the first half of a real row's spectrum.
    pub(crate) mirrored: bool,
    pub(crate) inverse: bool,
    pub(crate) eps: f64,
}

impl Line {
    /// The lines of a request, one after the other. Asks for an operand in row-major order.
    pub(crate) fn all(kernel: &Kernel, request: &Request<'_>) -> Result<Vec<Line>, Refusal> {
        let bad = |why: String| Refusal::BadRequest(format!("{}: {why}", kernel.op));
        let (axes, lengths) = match kernel.of {
            Of::Plane => (request.ints("axes"), request.ints("lengths")),
            Of::Line | Of::Half | Of::Mirror => (request.ints("axis"), request.ints("length")),
        };
        let count = if kernel.of == Of::Plane { 2 } else { 1 };
        if axes.len() != count || lengths.len() != count || count == 2 && axes[0] == axes[1] {
            return Err(bad(format!("axes {axes:?} and lengths {lengths:?}")));
        }
        let (input, output) = (&request.inputs[0], &request.outputs[0]);
        let mut shape = input.shape.to_vec();
        let mut lines = Vec::new();
        for (axis, length) in axes.iter().zip(lengths).rev() {
            let at = usize::try_from(*axis)
                .ok()
                .filter(|axis| *axis < shape.len());
            let at = at.ok_or_else(|| bad(format!("no axis {axis}")))?;
            let length = u64::try_from(*length)
                .ok()
                .filter(|length| (1..1 << 27).contains(length));
            let length = length.ok_or_else(|| Refusal::decline("it runs lengths of 1 to 2^27"))?;
            let kept = if kernel.of == Of::Half {
                length / 2 + 1
            } else {
                length
            };
            let product = |extents: &[u64]| extents.iter().try_fold(1u64, |n, e| n.checked_mul(*e));
            let (Some(outer), Some(inner)) = (product(&shape[..at]), product(&shape[at + 1..]))
            else {
                return Err(bad("a shape that overflows".to_owned()));
            };
            lines.push(Line {
                outer,
                inner,
                extent: shape[at],
                length,
                kept,
                mirrored: kernel.of == Of::Mirror,
                inverse: kernel.inverse,
                eps: eps(request),
            });
            shape[at] = kept;
        }
        if shape != output.shape.as_slice() {
            return Err(bad(format!("the result's shape is not {shape:?}")));
        }
        operand::within_reach(request)?;
        operand::in_order(request, input.dtype)?;
        Ok(lines)
    }
}

fn eps(request: &Request<'_>) -> f64 {
    let ints = request.ints("eps").first().map(|eps| *eps as f64);
    request
        .floats("eps")
        .first()
        .copied()
        .or(ints)
        .unwrap_or(0.0)
}

/// The type of the parts that a transform of `input` to `output` is computed in.
pub(crate) fn computed(input: DType, output: DType) -> DType {
    let is_double = input.part() == DType::F64 && output.part() == DType::F64;
    if is_double || output == DType::C128 {
        DType::F64
    } else {
        DType::F32
    }
}
