//! Moving elements from one place to another, as bytes.

use super::{convert, operand::Operand};
use crate::view::{Out, View, count};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

/// The elements of a view in row-major order, as elements of `dtype`.
pub(super) fn contiguous(view: &View, dtype: DType) -> Result<Vec<u8>, String> {
    let elements = count(view.shape).unwrap_or(0);
    let mut bytes = vec![0; (elements * dtype.size()) as usize];
    if elements > 0 {
        let x = Operand::broadcast(view, view.shape).ok_or("it does not fit its own shape")?;
        let mut out = Out {
            dtype,
            shape: view.shape,
            bytes: &mut bytes,
        };
        convert::as_type(&[x], &mut out)?;
    }
    Ok(bytes)
}

/// The integers of a view in row-major order, whatever their type.
pub(super) fn integers(view: &View) -> Result<Vec<i128>, String> {
    use nx_vulkan_abi::dtype::Class;
    let bytes = contiguous(view, view.dtype)?;
    let size = view.dtype.size() as usize;
    let is_signed = view.dtype.class() == Some(Class::Signed);
    let integer = |element: &[u8]| {
        let fill = if is_signed && element[size - 1] >= 128 {
            0xff
        } else {
            0
        };
        let mut wide = [fill; 16];
        wide[..size].copy_from_slice(element);
        i128::from_le_bytes(wide)
    };
    Ok(bytes.chunks_exact(size).map(integer).collect())
}

/// A place in a tensor, and its steps along the axes of a box.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) at: i64,
    pub(super) strides: Vec<i64>,
}

impl Place {
    /// The first element of a row-major tensor of that shape.
    pub(super) fn first(shape: &[u64]) -> Place {
        Place {
            at: 0,
            strides: contiguous_strides(shape),
        }
    }

    /// The place that many elements further.
    pub(super) fn shifted(&self, by: i64) -> Place {
        Place {
            at: self.at + by,
            strides: self.strides.clone(),
        }
    }

    fn outer(&self, index: u64) -> Place {
        Place {
            at: self.at + index as i64 * self.strides[0],
            strides: self.strides[1..].to_vec(),
        }
    }
}

/// Copies a box of elements of `size` bytes.
pub(super) fn copy(
    shape: &[u64],
    size: usize,
    (from, source): (&[u8], &Place),
    (to, target): (&mut [u8], &Place),
) {
    let Some((&extent, inner)) = shape.split_first() else {
        let (a, b) = (source.at as usize * size, target.at as usize * size);
        to[b..b + size].copy_from_slice(&from[a..a + size]);
        return;
    };
    let dense = |place: &Place| place.strides == contiguous_strides(shape);
    if dense(source) && dense(target) {
        let bytes = shape.iter().product::<u64>() as usize * size;
        let (a, b) = (source.at as usize * size, target.at as usize * size);
        to[b..b + bytes].copy_from_slice(&from[a..a + bytes]);
        return;
    }
    for index in 0..extent {
        let (source, target) = (source.outer(index), target.outer(index));
        copy(inner, size, (from, &source), (&mut *to, &target));
    }
}

/// Calls `f` with every index of a shape, in row-major order.
pub(super) fn each_index(
    shape: &[u64],
    mut f: impl FnMut(&[u64]) -> Result<(), String>,
) -> Result<(), String> {
    if shape.contains(&0) {
        return Ok(());
    }
    let mut index = vec![0; shape.len()];
    loop {
        f(&index)?;
        let Some(axis) = (0..shape.len())
            .rev()
            .find(|axis| index[*axis] + 1 < shape[*axis])
        else {
            return Ok(());
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}
