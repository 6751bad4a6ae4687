//! `as_type`: every type that is computed with to every other, and copies of whatever type.

use super::element::{Odd, by_number};
use super::elementwise::{for_each_block, map};
use super::operand::{BLOCK, Operand};
use crate::view::{Out, Outcome, View, count};
use nx_vulkan_abi::{DType, layout::contiguous_strides};

pub(crate) fn as_type(operands: &[Operand], out: &mut Out) -> Outcome {
    let [x] = operands else {
        return Err("expected one operand".to_owned());
    };
    if x.dtype == out.dtype {
        return copy(x, out);
    }
    match out.dtype.is_float() && out.dtype.size() <= 2 {
        true => narrow(x, out),
        false => by_number!(out.dtype, R => map(x, out, |x: R| x)),
    }
}

fn copy(x: &Operand, out: &mut Out) -> Outcome {
    for_each_block(out, &|start, bytes| x.copy(start, bytes))
}

fn narrow(x: &Operand, out: &mut Out) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [Odd::default(); BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        x.gather(0, start, block);
        Odd::store(block, dtype, bytes);
        Ok(())
    })
}

/// An operand of sums of products. Where the result is a float narrower than f32, it has that type first, so that kernels
/// may multiply what is as narrow as the result.
#[derive(Debug)]
pub(super) struct Factor<'a> {
    own: View<'a>,
    dtype: DType,
    strides: Vec<i64>,
    bytes: Vec<u8>,
}

impl<'a> Factor<'a> {
    /// `x` as a factor for results of type `dtype`.
    pub(super) fn new(x: &View<'a>, dtype: DType) -> Result<Factor<'a>, String> {
        let mut factor = Factor {
            own: *x,
            dtype: x.dtype,
            strides: contiguous_strides(x.shape),
            bytes: Vec::new(),
        };
        if dtype.is_float() && dtype.size() < DType::F32.size() && x.dtype != dtype {
            let elements = count(x.shape).ok_or("an operand has too many elements")?;
            factor.dtype = dtype;
            factor.bytes = vec![0; (elements * dtype.size()) as usize];
            let mut out = Out {
                dtype,
                shape: x.shape,
                bytes: &mut factor.bytes,
            };
            as_type(&[Operand::new(x, x.shape, x.strides.to_vec())], &mut out)?;
        }
        Ok(factor)
    }

    pub(super) fn view(&self) -> View<'_> {
        if self.dtype == self.own.dtype {
            return self.own;
        }
        View {
            dtype: self.dtype,
            shape: self.own.shape,
            strides: &self.strides,
            offset: 0,
            bytes: &self.bytes,
        }
    }
}
