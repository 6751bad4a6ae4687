//! `as_type`: every type that is computed with to every other, and copies of whatever type.

use super::element::{Odd, by_number};
use super::elementwise::{for_each_block, map};
use super::operand::{BLOCK, Operand};
use crate::view::{Out, Outcome};

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
    let size = out.dtype.size();
    for_each_block(out, &|start, bytes| {
        match size {
            1 => x.copy::<1>(start, bytes),
            2 => x.copy::<2>(start, bytes),
            4 => x.copy::<4>(start, bytes),
            8 => x.copy::<8>(start, bytes),
            16 => x.copy::<16>(start, bytes),
            _ => return Err(format!("elements of {size} bytes")),
        }
        Ok(())
    })
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
