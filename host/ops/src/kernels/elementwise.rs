//! The loop of the elementwise ops: a result in blocks, on all cores. What a block holds is the caller's.

use crate::view::{Out, Outcome};
use nx_vulkan_abi::dtype::DType;

use super::element::{Complex, FromElement, Register};
use super::operand::{BLOCK, Operand};
use super::parallel;

/// Elements below which handing work to another core costs more than it saves.
pub(super) const TASK: usize = 16 * BLOCK;

/// Calls `work(start, bytes)` for consecutive stretches of the result, each for one core.
pub(super) fn for_each_task(out: &mut Out, work: &(dyn Fn(u64, &mut [u8]) + Sync)) -> Outcome {
    let size = out.dtype.size() as usize;
    parallel::for_each_short_chunk(out.bytes, TASK * size, &|task, bytes| {
        work((task * TASK) as u64, bytes);
        Ok(())
    })
}

/// Calls `block(start, bytes)` for consecutive stretches of the result, at most [`BLOCK`] elements each.
pub(super) fn for_each_block(
    out: &mut Out,
    block: &(dyn Fn(u64, &mut [u8]) -> Outcome + Sync),
) -> Outcome {
    let size = out.dtype.size() as usize;
    parallel::for_each_short_chunk(out.bytes, TASK * size, &|task, bytes| {
        let starts = ((task * TASK) as u64..).step_by(BLOCK);
        bytes
            .chunks_mut(BLOCK * size)
            .zip(starts)
            .try_for_each(|(bytes, start)| block(start, bytes))
    })
}

/// One operand, computed in `R`.
pub(super) fn map<R: Register>(x: &Operand, out: &mut Out, f: impl Fn(R) -> R + Sync) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [R::default(); BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        x.gather(0, start, block);
        block.iter_mut().for_each(|x| *x = f(*x));
        R::store(block, dtype, bytes);
        Ok(())
    })
}

/// One operand, computed in `R`, to 0 or 1.
pub(super) fn test<R: Register>(
    x: &Operand,
    out: &mut Out,
    f: impl Fn(R) -> bool + Sync,
) -> Outcome {
    for_each_block(out, &|start, bytes| {
        let mut block = [R::default(); BLOCK];
        let block = &mut block[..bytes.len()];
        x.gather(0, start, block);
        bytes
            .iter_mut()
            .zip(block)
            .for_each(|(to, x)| *to = u8::from(f(*x)));
        Ok(())
    })
}

/// As [`map_wide`], a block at a time.
pub(super) fn map_blocks(x: &Operand, out: &mut Out, f: fn(&mut [f64])) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [0.0; BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        x.gather_wide(true, 0, start, block);
        f(block);
        f64::store(block, dtype, bytes);
        Ok(())
    })
}

/// One operand, computed in f64 from what its elements are in the result's type, rounded once.
pub(super) fn map_wide(x: &Operand, out: &mut Out, f: fn(f64) -> f64) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [0.0; BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        x.gather_wide(is_single(dtype), 0, start, block);
        block.iter_mut().for_each(|x| *x = f(*x));
        f64::store(block, dtype, bytes);
        Ok(())
    })
}

/// One operand, computed in f64, rounded once.
pub(super) fn map_complex(
    x: &Operand,
    out: &mut Out,
    f: impl Fn(Complex<f64>) -> Complex<f64> + Sync,
) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let mut block = [Complex::default(); BLOCK];
        let block = &mut block[..bytes.len() / dtype.size() as usize];
        x.gather(0, start, block);
        block.iter_mut().for_each(|x| *x = f(*x));
        Complex::<f64>::store(block, dtype, bytes);
        Ok(())
    })
}

/// Two operands, computed in f64, rounded once.
pub(super) fn zip_complex(
    [a, b]: [&Operand; 2],
    out: &mut Out,
    f: impl Fn(Complex<f64>, Complex<f64>) -> Complex<f64> + Sync,
) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y) = ([Complex::default(); BLOCK], [Complex::default(); BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        a.gather(0, start, &mut x[..n]);
        b.gather(0, start, &mut y[..n]);
        x.iter_mut().zip(y).take(n).for_each(|(x, y)| *x = f(*x, y));
        Complex::<f64>::store(&x[..n], dtype, bytes);
        Ok(())
    })
}

/// One complex operand to a real number, computed in f64, rounded once.
pub(super) fn measure(
    x: &Operand,
    out: &mut Out,
    f: impl Fn(Complex<f64>) -> f64 + Sync,
) -> Outcome {
    let dtype = out.dtype;
    if !dtype.is_float() {
        return Err(format!("a part of a complex number is no {dtype}"));
    }
    for_each_block(out, &|start, bytes| {
        let (mut block, mut parts) = ([Complex::default(); BLOCK], [0.0; BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        x.gather(0, start, &mut block[..n]);
        parts
            .iter_mut()
            .zip(block)
            .take(n)
            .for_each(|(to, z)| *to = f(z));
        f64::store(&parts[..n], dtype, bytes);
        Ok(())
    })
}

/// Two operands, computed in `R`; `refuse` says what is wrong with elements of the second.
pub(super) fn zip<R: Register>(
    [a, b]: [&Operand; 2],
    out: &mut Out,
    refuse: impl Fn(&[R]) -> Outcome + Sync,
    f: impl Fn(R, R) -> R + Sync,
) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y) = ([R::default(); BLOCK], [R::default(); BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        a.gather(0, start, &mut x[..n]);
        b.gather(0, start, &mut y[..n]);
        refuse(&y[..n])?;
        x.iter_mut().zip(y).take(n).for_each(|(x, y)| *x = f(*x, y));
        R::store(&x[..n], dtype, bytes);
        Ok(())
    })
}

/// Two operands, read as `A` and `B`, to 0 or 1.
pub(super) fn compare<A: FromElement, B: FromElement>(
    [a, b]: [&Operand; 2],
    out: &mut Out,
    f: impl Fn(&A, &B) -> bool + Sync,
) -> Outcome {
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y) = ([A::default(); BLOCK], [B::default(); BLOCK]);
        let n = bytes.len();
        a.gather(0, start, &mut x[..n]);
        b.gather(0, start, &mut y[..n]);
        bytes
            .iter_mut()
            .zip(x.iter().zip(&y))
            .for_each(|(to, (x, y))| *to = u8::from(f(x, y)));
        Ok(())
    })
}

/// Two operands, computed in f64 from what their elements are in the result's type, rounded once.
pub(super) fn zip_wide([a, b]: [&Operand; 2], out: &mut Out, f: fn(f64, f64) -> f64) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y) = ([0.0; BLOCK], [0.0; BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        a.gather_wide(is_single(dtype), 0, start, &mut x[..n]);
        b.gather_wide(is_single(dtype), 0, start, &mut y[..n]);
        x.iter_mut().zip(y).take(n).for_each(|(x, y)| *x = f(*x, y));
        f64::store(&x[..n], dtype, bytes);
        Ok(())
    })
}

/// Whether `dtype` is computed in f32 by the contract.
pub(super) fn is_single(dtype: DType) -> bool {
    dtype.is_float() && dtype.size() <= 4
}
