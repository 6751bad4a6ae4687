//! How a tensor lies, without the buffer that it lies in.

use super::{Axes, Part, Tensor};
use crate::{faults::Faults, memory::Buffer};
use nx_vulkan_abi::{DType, layout};
use smallvec::smallvec;
use std::sync::Arc;

/// Type, shape and strides of a tensor, and the part of a buffer that its elements take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    dtype: DType,
    shape: Axes<u64>,
    strides: Axes<i64>,
    part: Part,
}

/// What lies somehow, be it in no buffer yet.
pub(crate) trait Laid {
    fn dtype(&self) -> DType;
    fn shape(&self) -> &[u64];
    fn strides(&self) -> &[i64];
    fn part(&self) -> Part;
}

impl Laid for Layout {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn strides(&self) -> &[i64] {
        &self.strides
    }

    fn part(&self) -> Part {
        self.part
    }
}

impl Laid for Tensor {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn strides(&self) -> &[i64] {
        &self.strides
    }

    fn part(&self) -> Part {
        self.part
    }
}

impl Layout {
    /// That of elements in row-major order, from the start of a buffer on.
    pub(crate) fn contiguous(dtype: DType, shape: &[u64]) -> Layout {
        let mut strides = smallvec![0; shape.len()];
        layout::write_contiguous_strides(shape, &mut strides);
        Layout {
            part: Part::of(dtype.size(), shape, &strides, 0),
            dtype,
            shape: shape.into(),
            strides,
        }
    }

    /// The tensor that lies so in a buffer.
    pub(crate) fn tensor(&self, buffer: Arc<Buffer>, faults: Faults) -> Tensor {
        Tensor {
            buffer,
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            offset: self.part.first + self.part.start / self.dtype.size(),
            part: self.part,
            faults,
        }
    }
}

impl Tensor {
    pub(crate) fn layout(&self) -> Layout {
        Layout {
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            part: self.part,
        }
    }

    /// Whether plans for a tensor of that layout are plans for this one, wherever in its buffer the part begins.
    pub(crate) fn is_laid_out_as(&self, layout: &Layout) -> bool {
        self.dtype == layout.dtype
            && (self.part.first, self.part.len) == (layout.part.first, layout.part.len)
            && self.shape == layout.shape
            && self.strides == layout.strides
    }

    /// The tensor that the same bytes are in another buffer, with other words of faults.
    pub(crate) fn moved(&self, buffer: Arc<Buffer>, faults: Faults) -> Tensor {
        Tensor {
            buffer,
            faults,
            ..self.clone()
        }
    }

    /// The tensor that a copy of its part is at the start of another buffer.
    pub(crate) fn in_part(&self, buffer: Arc<Buffer>) -> Tensor {
        Tensor {
            offset: self.part.first,
            part: Part {
                start: 0,
                ..self.part
            },
            ..self.moved(buffer, Faults::default())
        }
    }
}
