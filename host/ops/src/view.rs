//! Operands and results as kernels on the CPU see them: bytes in host memory.

use nx_vulkan_abi::DType;
use std::fmt;

/// What goes wrong in a kernel, without the op's name.
pub(crate) type Outcome = Result<(), String>;

/// A read-only operand.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
    /// Elements from one index to the next, for each axis; 0 repeats, negative reverses.
    pub strides: &'a [i64],
    /// Index of the first element, in elements.
    pub offset: u64,
    /// The whole buffer that the view looks into, at any alignment.
    pub bytes: &'a [u8],
}

/// A contiguous result.
#[derive(Debug)]
pub struct Out<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
    /// The elements in row-major order, at any alignment.
    pub bytes: &'a mut [u8],
}

/// Type and shape of an operand or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Desc<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
}

impl fmt::Display for Desc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// The number of elements of `shape`, or `None` when it does not fit in an i64.
pub(crate) fn count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape
        .iter()
        .try_fold(1u64, |count, &extent| count.checked_mul(extent))?;
    i64::try_from(count).ok().map(|_| count)
}
