//! The loops over blocks: of elements where they lie, as bytes.

use crate::{
    Attr,
    kernels::{
        cells::Selecting,
        crew::with_cores,
        kernel::Sums,
        lanes::{self, Cell, Each, Loop},
    },
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::DType;

/// Runs a loop on its operands' bytes, floats of 16 bits by way of `wide`.
pub(super) fn apply(
    found: Loop,
    [a, b, c]: [&[u8]; 3],
    dtype: DType,
    wide: &mut [Cell],
    to: &mut [u8],
) -> Outcome {
    let is_narrow = lanes::is_narrow(dtype);
    match found {
        Loop::Floats(f) if is_narrow => {
            each(f, [a, b, c], wide.as_flattened_mut())?;
            lanes::narrow(dtype, wide, to.as_chunks_mut().0);
            Ok(())
        }
        Loop::Cast(f) if is_narrow => {
            f(a, wide.as_flattened_mut());
            lanes::narrow(dtype, wide, to.as_chunks_mut().0);
            Ok(())
        }
        Loop::Cast(f) => {
            f(a, to);
            Ok(())
        }
        Loop::Floats(f) | Loop::Words(f) => each(f, [a, b, c], to),
        Loop::Bytes(f) => each(f, [a, b, c], to),
        Loop::Shorts(f) => each(f, [a, b, c], to),
        Loop::Longs(f) => each(f, [a, b, c], to),
        Loop::Select => {
            let pred = a.as_chunks().0;
            match dtype.size() {
                1 => select(lanes::select_bytes, pred, [b, c], to),
                2 => select(lanes::select_shorts, pred, [b, c], to),
                4 => select(lanes::select, pred, [b, c], to),
                8 => select(lanes::select_longs, pred, [b, c], to),
                size => return Err(format!("elements of {size} bytes")),
            }
            Ok(())
        }
    }
}

fn select<const N: usize>(f: Selecting<N>, pred: &[[u8; 1]], [a, b]: [&[u8]; 2], to: &mut [u8]) {
    f(pred, a.as_chunks().0, b.as_chunks().0, to.as_chunks_mut().0);
}

fn each<const N: usize>(f: Each<N>, [a, b, c]: [&[u8]; 3], to: &mut [u8]) -> Outcome {
    let [a, b, c] = [a, b, c].map(|bytes| bytes.as_chunks::<N>().0);
    match f {
        Each::Map(f) => f(a, to.as_chunks_mut().0),
        Each::Test(f) => f(a, to.as_chunks_mut().0),
        Each::Zip(f) => f(a, b, to.as_chunks_mut().0),
        Each::Relation(f) => f(a, b, to.as_chunks_mut().0),
        Each::Choice(f) => f(a, b, c, to.as_chunks_mut().0),
        Each::Partly(f, lacks) => {
            if !f(a, b, to.as_chunks_mut().0) {
                return Err(lacks.reason.to_owned());
            }
        }
    }
    Ok(())
}

/// Each element so many times.
pub(super) fn spread(size: usize, from: &[u8], times: usize, to: &mut [u8]) -> Outcome {
    fn each<const N: usize>(from: &[u8], times: usize, to: &mut [u8]) {
        let rows = to.as_chunks_mut::<N>().0.chunks_mut(times);
        rows.zip(from.as_chunks().0).for_each(|(to, x)| to.fill(*x));
    }
    match size {
        1 => each::<1>(from, times, to),
        2 => each::<2>(from, times, to),
        4 => each::<4>(from, times, to),
        8 => each::<8>(from, times, to),
        size => return Err(format!("elements of {size} bytes")),
    }
    Ok(())
}

/// Reduces rows of elements of a type to one of another each.
pub(super) fn reduce(
    op: &str,
    (dtype, bytes): (DType, &[u8]),
    length: usize,
    (gives, to): (DType, &mut [u8]),
    sums: Sums,
) -> Outcome {
    let known = crate::find(op).ok_or_else(|| format!("no op named {op}"))?;
    let rows = to.len() as u64 / gives.size();
    let x = View {
        dtype,
        shape: &[rows, length as u64],
        strides: &[length as i64, 1],
        offset: 0,
        bytes,
    };
    let mut out = [Out {
        dtype: gives,
        shape: &[rows, 1],
        bytes: to,
    }];
    let attrs = [Attr::ints("axes", [1])];
    // The other cores have rows of their own.
    with_cores(1, || {
        known
            .kernel
            .run(known.lane, op, &[x], &mut out, &attrs, sums)
    })
}
