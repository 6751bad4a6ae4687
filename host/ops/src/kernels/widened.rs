//! Products of floats of 16 bits: the operands become f32 as a whole, by the instructions that convert many, and are multiplied
//! where they lie then.

use super::lanes::{Cell, Short, is_narrow, narrow, widen};
use super::{direct, elementwise::TASK, parallel};
use crate::attrs::Attr;
use crate::view::{Out, View};
use nx_vulkan_abi::DType;

/// Multiplies, unless types or strides ask for more than this.
pub(super) fn run(a: &View, b: &View, out: &mut Out, attrs: &[Attr]) -> bool {
    let is_single = |dtype: DType| dtype == DType::F32 || is_narrow(dtype);
    let types = [a.dtype, b.dtype, out.dtype];
    if !types.into_iter().all(is_single) || !types.into_iter().any(is_narrow) {
        return false;
    }
    let [Some(x), Some(y)] = [a, b].map(Widened::new) else {
        return false;
    };
    if out.dtype == DType::F32 {
        return direct::run(&x.view(), &y.view(), out, attrs);
    }
    let mut made = vec![0f32; out.shape.iter().product::<u64>() as usize];
    let mut sums = Out {
        dtype: DType::F32,
        shape: out.shape,
        bytes: bytes_of(&mut made),
    };
    if !direct::run(&x.view(), &y.view(), &mut sums, attrs) {
        return false;
    }
    let (dtype, cells) = (out.dtype, sums.bytes.as_chunks().0);
    let to: &mut [Short] = out.bytes.as_chunks_mut().0;
    parallel::for_each_part(to, TASK, &|part, to| {
        narrow(dtype, &cells[part * TASK..][..to.len()], to);
    });
    true
}

/// An operand with its elements as f32.
struct Widened<'a> {
    own: View<'a>,
    cells: Vec<f32>,
}

impl<'a> Widened<'a> {
    /// Nothing where a stride is negative, or most of what lies between its first and its last element is not its own.
    fn new(x: &View<'a>) -> Option<Widened<'a>> {
        let (mut reach, mut count) = (1, 1);
        for (extent, stride) in x.shape.iter().zip(x.strides) {
            reach += (extent - 1) * u64::try_from(*stride).ok()?;
            count *= extent;
        }
        if !is_narrow(x.dtype) {
            return Some(Widened {
                own: *x,
                cells: Vec::new(),
            });
        }
        if reach > 2 * count {
            return None;
        }
        let mut cells = vec![0f32; reach as usize];
        let from: &[Short] = &x.bytes.as_chunks().0[x.offset as usize..][..reach as usize];
        let to: &mut [Cell] = bytes_of(&mut cells).as_chunks_mut().0;
        parallel::for_each_part(to, TASK, &|part, to| {
            widen(x.dtype, &from[part * TASK..][..to.len()], to);
        });
        Some(Widened { own: *x, cells })
    }

    fn view(&self) -> View<'_> {
        if self.cells.is_empty() {
            return self.own;
        }
        // SAFETY: every byte of an f32 is a u8.
        let (_, bytes, _) = unsafe { self.cells.align_to::<u8>() };
        View {
            dtype: DType::F32,
            offset: 0,
            bytes,
            ..self.own
        }
    }
}

fn bytes_of(cells: &mut [f32]) -> &mut [u8] {
    // SAFETY: every byte of an f32 is a u8, and any bits are an f32.
    let (_, bytes, _) = unsafe { cells.align_to_mut::<u8>() };
    bytes
}
