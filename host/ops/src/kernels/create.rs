//! Tensors made from nothing: `iota`, `eye`, `fill`.

use nx_vulkan_abi::dtype::DType;

use super::element::{FromElement, Odd, Register, by_number};
use super::elementwise::for_each_block;
use super::operand::BLOCK;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome};

pub(crate) fn iota(attrs: &[Attr], out: &mut Out) -> Outcome {
    let [axis] = ints(attrs, "axis") else {
        return from_index(out, |index| index);
    };
    let [extent, ref inner @ ..] = out.shape[*axis as usize..] else {
        return Err("no such axis".to_owned());
    };
    let repeats: u64 = inner.iter().product();
    from_index(out, |index| index / repeats % extent)
}

pub(crate) fn eye(_attrs: &[Attr], out: &mut Out) -> Outcome {
    let [.., rows, columns] = *out.shape else {
        return Err("the result needs two axes".to_owned());
    };
    from_index(out, |index| {
        u64::from(index / columns % rows == index % columns)
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

fn from_index(out: &mut Out, value: impl Fn(u64) -> u64 + Sync) -> Outcome {
    match out.dtype.is_float() && out.dtype.size() <= 2 {
        true => indices(out, value, Odd::store),
        false => by_number!(out.dtype, R => indices(out, value, R::store)),
    }
}

fn indices<R: FromElement>(
    out: &mut Out,
    value: impl Fn(u64) -> u64 + Sync,
    store: fn(&[R], DType, &mut [u8]),
) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [R::default(); BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        block
            .iter_mut()
            .zip(start..)
            .for_each(|(to, index)| *to = R::cast(value(index)));
        store(block, dtype, bytes);
        Ok(())
    })
}
