//! Tensors made from nothing: `iota`, `eye`, `fill`.

use nx_vulkan_abi::dtype::DType;

use super::element::{Cast, FromElement, Odd, Register, by_number};
use super::elementwise::for_each_block;
use super::operand::BLOCK;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome};

pub(crate) fn iota(attrs: &[Attr], out: &mut Out) -> Outcome {
    let [axis] = ints(attrs, "axis") else {
        let count = out.shape.iter().product();
        return count_along(out, count, 1);
    };
    let [extent, ref inner @ ..] = out.shape[*axis as usize..] else {
        return Err("no such axis".to_owned());
    };
    let repeats = inner.iter().product();
    count_along(out, extent, repeats)
}

pub(crate) fn eye(_attrs: &[Attr], out: &mut Out) -> Outcome {
    let [.., rows, columns] = *out.shape else {
        return Err("the result needs two axes".to_owned());
    };
    let mut one = [0; 16];
    let one = &mut one[..out.dtype.size() as usize];
    match is_rounded(out.dtype) {
        true => Odd::store(&[Odd::cast(1u8)], out.dtype, one),
        false => by_number!(out.dtype, R => { R::store(&[R::cast(1u8)], out.dtype, one); Ok(()) })?,
    }
    for_each_block(out, &|start, bytes| {
        bytes.fill(0);
        let end = start + (bytes.len() / one.len()) as u64;
        for row in start / columns..end.div_ceil(columns) {
            let at = row * columns + row % rows;
            if row % rows < columns && (start..end).contains(&at) {
                let first = (at - start) as usize * one.len();
                bytes[first..first + one.len()].copy_from_slice(one);
            }
        }
        Ok(())
    })
}

pub(crate) fn fill(attrs: &[Attr], out: &mut Out) -> Outcome {
    let mut element = [0; 16];
    for (to, bits) in element
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .zip(ints(attrs, "bits"))
    {
        *to = bits.to_le_bytes();
    }
    let block = element[..out.dtype.size() as usize].repeat(BLOCK);
    for_each_block(out, &|_, bytes| {
        bytes.copy_from_slice(&block[..bytes.len()]);
        Ok(())
    })
}

/// Whether it is stored by way of [`Odd`].
fn is_rounded(dtype: DType) -> bool {
    dtype.is_float() && dtype.size() <= 2
}

/// Counts up to `extent` again and again, with every number so many times.
fn count_along(out: &mut Out, extent: u64, repeats: u64) -> Outcome {
    match is_rounded(out.dtype) {
        true => numbers(out, extent, repeats, Odd::store),
        false => by_number!(out.dtype, R => numbers(out, extent, repeats, R::store)),
    }
}

fn numbers<R: FromElement>(
    out: &mut Out,
    extent: u64,
    repeats: u64,
    store: fn(&[R], DType, &mut [u8]),
) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [R::default(); BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        let (mut number, mut used) = (start / repeats % extent, start % repeats);
        let mut rest = &mut *block;
        while !rest.is_empty() {
            let left = if repeats == 1 {
                extent - number
            } else {
                repeats - used
            };
            let (now, others) = rest.split_at_mut(left.min(rest.len() as u64) as usize);
            match (repeats, i32::try_from(extent)) {
                (1, Ok(_)) => count(now, number as i32),
                (1, Err(_)) => count_far(now, number),
                _ => now.fill(R::cast(number)),
            }
            number = if repeats == 1 {
                0
            } else {
                (number + 1) % extent
            };
            (rest, used) = (others, 0);
        }
        store(block, dtype, bytes);
        Ok(())
    })
}

/// Consecutive numbers, which vectors convert.
fn count<R: FromElement>(to: &mut [R], first: i32) {
    to.iter_mut()
        .zip(first..)
        .for_each(|(to, x)| *to = R::cast(x));
}

fn count_far<R: FromElement>(to: &mut [R], first: u64) {
    to.iter_mut()
        .zip(first..)
        .for_each(|(to, x)| *to = R::cast(x));
}
