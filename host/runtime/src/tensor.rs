//! Tensors: a typed, strided view of a device buffer. Views share the buffer; nothing is copied.

mod moved;
mod part;
mod strides;

use crate::{Error, Result, faults::Faults, memory::Buffer};
pub(crate) use moved::{Laid, Layout};
use nx_vulkan_abi::{DType, layout};
use nx_vulkan_ops::{Request, Typed, show_shape};
use nx_vulkan_registry::request::Operand;
pub(crate) use part::Part;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Most axes a tensor may have, so that no view takes long.
pub const MAX_RANK: usize = 4_096;

/// A handle to a tensor on the device. Cloning it clones the handle; the memory is freed with the last one.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub(crate) buffer: Arc<Buffer>,
    dtype: DType,
    shape: Axes<u64>,
    strides: Axes<i64>,
    offset: u64,
    part: Part,
    pub(crate) faults: Faults,
}

/// One number per axis; those of most tensors need no allocation.
type Axes<T> = SmallVec<[T; 4]>;

impl Typed for &Tensor {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }
}

/// The layouts of a request's operands.
pub(crate) fn operands(request: &Request<'_, &Tensor>) -> Vec<Operand> {
    request.inputs.iter().map(|t| t.operand()).collect()
}

/// Bytes of the elements of a tensor.
///
/// # Errors
/// Bad input when the type is none, or there are more elements than a tensor may have.
pub fn byte_len(dtype: DType, shape: &[u64]) -> Result<u64> {
    if !dtype.is_known() {
        return Err(Error::bad_input(format!("{dtype} is not an element type")));
    }
    Ok(checked_elements(shape)? * dtype.size())
}

impl Tensor {
    /// Its layout, as kernels are told of it: in the part of its buffer that it takes.
    pub fn operand(&self) -> Operand {
        Operand {
            dtype: self.dtype(),
            shape: self.shape().to_vec(),
            strides: self.strides().to_vec(),
            offset: self.part.first,
            storage_len: self.part.len,
        }
    }

    pub(crate) fn contiguous(buffer: Arc<Buffer>, dtype: DType, shape: &[u64]) -> Tensor {
        Layout::contiguous(dtype, shape).tensor(buffer, Faults::default())
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Step of each axis in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// First element, in elements from the start of the buffer.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Size of the elements in bytes, as they would be downloaded.
    pub fn byte_len(&self) -> u64 {
        self.elements() * self.dtype.size()
    }

    /// Bytes of the buffer it lies in.
    pub fn storage_len(&self) -> u64 {
        self.buffer.len()
    }

    /// The bytes of its buffer that its elements lie in.
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        layout::is_contiguous(&self.shape, &self.strides)
    }

    /// Whether a buffer's bytes from the first on are the elements in row-major order.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_contiguous() && self.offset == 0
    }

    /// A view of the same buffer. One without elements has no layout to keep, and starts where the buffer does.
    fn view(&self, shape: Axes<u64>, strides: Axes<i64>, offset: u64) -> Tensor {
        if shape.contains(&0) {
            return Tensor::contiguous(self.buffer.clone(), self.dtype, &shape);
        }
        Tensor {
            part: Part::of(self.dtype.size(), &shape, &strides, offset),
            buffer: self.buffer.clone(),
            dtype: self.dtype,
            shape,
            strides,
            offset,
            faults: self.faults.clone(),
        }
    }

    /// The same elements with another shape, or `None` where that needs a copy.
    ///
    /// # Errors
    /// Bad input when the number of elements differs.
    pub fn reshape(&self, shape: &[u64]) -> Result<Option<Tensor>> {
        if checked_elements(shape)? != self.elements() {
            return Err(self.misfit("reshape", format!("to {}", show_shape(shape))));
        }
        let strides = if self.is_contiguous() {
            Some(layout::contiguous_strides(shape))
        } else {
            strides::split(&self.shape, &self.strides, shape)
        };
        Ok(strides.map(|strides| self.view(shape.into(), strides.into(), self.offset)))
    }

    /// The axes in another order: axis `i` of the result is axis `axes[i]` of this tensor.
    ///
    /// # Errors
    /// Bad input when `axes` is not a permutation.
    pub fn transpose(&self, axes: &[usize]) -> Result<Tensor> {
        if axes.len() != self.shape.len() || marked(axes, axes.len()).is_none() {
            return Err(self.misfit("transpose", format!("by axes {axes:?}")));
        }
        Ok(self.view(
            axes.iter().map(|&a| self.shape[a]).collect(),
            axes.iter().map(|&a| self.strides[a]).collect(),
            self.offset,
        ))
    }

    /// Without the given axes, whose extent must be 1.
    ///
    /// # Errors
    /// Bad input when an axis does not exist, is named twice, or has another extent.
    pub fn squeeze(&self, axes: &[usize]) -> Result<Tensor> {
        let gone = marked(axes, self.shape.len());
        let Some(gone) = gone.filter(|_| axes.iter().all(|&a| self.shape[a] == 1)) else {
            return Err(self.misfit("squeeze", format!("axes {axes:?}")));
        };
        let kept = || (0..self.shape.len()).filter(|&a| !gone[a]);
        Ok(self.view(
            kept().map(|a| self.shape[a]).collect(),
            kept().map(|a| self.strides[a]).collect(),
            self.offset,
        ))
    }

    /// Repeated to `shape`: axis `i` of this tensor becomes axis `axes[i]` of the result.
    ///
    /// # Errors
    /// Bad input when an axis does not exist or is named twice, and when an extent is neither 1 nor that of the result's
    /// axis.
    pub fn broadcast(&self, shape: &[u64], axes: &[usize]) -> Result<Tensor> {
        checked_elements(shape)?;
        let mut strides: Axes<i64> = smallvec![0; shape.len()];
        let fits = axes.len() == self.shape.len()
            && marked(axes, shape.len()).is_some()
            && axes.iter().enumerate().all(|(i, &axis)| {
                if self.shape[i] != 1 {
                    strides[axis] = self.strides[i];
                }
                self.shape[i] == 1 || self.shape[i] == shape[axis]
            });
        if !fits {
            return Err(self.misfit(
                "broadcast",
                format!("to {} along axes {axes:?}", show_shape(shape)),
            ));
        }
        Ok(self.view(shape.into(), strides, self.offset))
    }

    /// The part that begins with the first `count` elements, in row-major order, and has few others.
    ///
    /// # Errors
    /// None that [`Tensor::slice`] does not have, and it has none here.
    pub(crate) fn leading(&self, count: u64) -> Result<Tensor> {
        let mut lengths = self.shape.to_vec();
        let mut inner = self.elements();
        for length in &mut lengths {
            inner /= (*length).max(1);
            *length = count
                .div_ceil(inner.max(1))
                .clamp(1, (*length).max(1))
                .min(*length);
            if *length > 1 {
                break;
            }
        }
        let rank = lengths.len();
        self.slice(&vec![0; rank], &lengths, &vec![1; rank])
    }

    /// `lengths[i]` elements of axis `i`, from `starts[i]` in steps of `steps[i]`.
    ///
    /// # Errors
    /// Bad input when the slice leaves the tensor or a step is 0.
    pub fn slice(&self, starts: &[u64], lengths: &[u64], steps: &[u64]) -> Result<Tensor> {
        let rank = self.shape.len();
        let fits = starts.len() == rank
            && lengths.len() == rank
            && steps.len() == rank
            && (0..rank).all(|i| {
                let last = lengths[i].saturating_sub(1).checked_mul(steps[i]);
                let end = last.and_then(|l| l.checked_add(starts[i]));
                steps[i] > 0
                    && end.is_some_and(|end| {
                        if lengths[i] == 0 {
                            starts[i] <= self.shape[i]
                        } else {
                            end < self.shape[i]
                        }
                    })
            });
        if !fits {
            return Err(self.misfit(
                "slice",
                format!("from {starts:?}, lengths {lengths:?}, strides {steps:?}"),
            ));
        }
        if lengths.contains(&0) {
            return Ok(self.view(lengths.into(), smallvec![0; rank], 0));
        }
        let skipped: i64 = (0..rank).map(|i| starts[i] as i64 * self.strides[i]).sum();
        // The step of an axis that has one element left is never taken, and may be of any size.
        let stride = |i: usize| match lengths[i] {
            1 => self.strides[i],
            _ => self.strides[i] * steps[i] as i64,
        };
        Ok(self.view(
            lengths.into(),
            (0..rank).map(stride).collect(),
            self.offset.wrapping_add_signed(skipped),
        ))
    }

    /// With the order of the elements along `axes` reversed.
    ///
    /// # Errors
    /// Bad input when an axis does not exist or is named twice.
    pub fn reverse(&self, axes: &[usize]) -> Result<Tensor> {
        if marked(axes, self.shape.len()).is_none() {
            return Err(self.misfit("reverse", format!("axes {axes:?}")));
        }
        if self.shape.contains(&0) {
            return Ok(self.clone());
        }
        let (mut strides, mut offset) = (self.strides.clone(), self.offset);
        for &axis in axes {
            let step = strides[axis] * (self.shape[axis] - 1) as i64;
            offset = offset.wrapping_add_signed(step);
            strides[axis] = -strides[axis];
        }
        Ok(self.view(self.shape.clone(), strides, offset))
    }

    /// The same bits as another type of the same width.
    ///
    /// # Errors
    /// Bad input when the widths differ.
    pub fn bitcast(&self, dtype: DType) -> Result<Tensor> {
        if !dtype.is_known() || bits(dtype) != bits(self.dtype) {
            return Err(self.misfit("bitcast", format!("to {dtype}")));
        }
        Ok(Tensor {
            dtype,
            ..self.clone()
        })
    }

    fn misfit(&self, op: &str, how: String) -> Error {
        Error::bad_input(format!(
            "{op} of {}{} {how} does not fit",
            self.dtype,
            show_shape(&self.shape)
        ))
    }
}

/// Which of `rank` axes are named; `None` where one is named twice or does not exist.
fn marked(axes: &[usize], rank: usize) -> Option<SmallVec<[bool; 16]>> {
    let mut marks = smallvec![false; rank];
    axes.iter()
        .all(|&axis| {
            let mark: Option<&mut bool> = marks.get_mut(axis);
            mark.is_some_and(|mark| !std::mem::replace(mark, true))
        })
        .then_some(marks)
}

/// Bits of an element. In a buffer the narrow types take a byte.
fn bits(dtype: DType) -> u64 {
    dtype.row().map_or(0, |row| row.bits.into())
}

/// Product of the extents.
///
/// # Errors
/// Bad input when it overflows or there are more than [`MAX_RANK`] axes.
pub(crate) fn checked_elements(shape: &[u64]) -> Result<u64> {
    if shape.len() > MAX_RANK {
        return Err(Error::bad_input(format!(
            "a shape of {} axes is beyond the limit of {MAX_RANK}",
            shape.len()
        )));
    }
    let count = if shape.contains(&0) {
        Some(0)
    } else {
        shape
            .iter()
            .try_fold(1u64, |n, &e| n.checked_mul(e))
            .filter(|&n| n <= i64::MAX as u64 / 16)
    };
    count.ok_or_else(|| {
        Error::bad_input(format!(
            "the shape {} has too many elements",
            show_shape(shape)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_beyond_any_memory_are_refused() {
        assert!(checked_elements(&[u64::MAX, 2]).is_err());
        assert!(checked_elements(&[1; MAX_RANK]).is_ok());
        assert!(checked_elements(&[1; MAX_RANK + 1]).is_err());
        assert_eq!(checked_elements(&[0, u64::MAX]).unwrap(), 0);
        assert_eq!(checked_elements(&[]).unwrap(), 1);
    }
}
