//! Elementwise ops of two operands, by name, with `select` and `clip`, which only add one to choose by.

use super::Out;
use nx_vulkan_abi::dtype::DType;

use super::element::{Register, by_float, by_integer, by_register};
use super::elementwise::{Outcome, compare, for_each_block, zip, zip_wide};
use super::number::{Float, Integer, Number};
use super::operand::{BLOCK, Operand};
use crate::infer::merge;

macro_rules! kernels {
    ($($name:ident: |$ab:ident, $out:ident| $body:expr;)*) => { $(
        pub(crate) fn $name(operands: &[Operand], $out: &mut Out) -> Outcome {
            let [a, b] = operands else {
                return Err("expected two operands".to_owned());
            };
            let $ab = [a, b];
            $body
        }
    )* };
}
kernels! {
    add: |ab, out| by_register!(out.dtype, R => zip(ab, out, any, R::add));
    subtract: |ab, out| by_register!(out.dtype, R => zip(ab, out, any, R::subtract));
    multiply: |ab, out| by_register!(out.dtype, R => zip(ab, out, any, R::multiply));
    min: |ab, out| by_register!(out.dtype, R => zip(ab, out, any, R::smaller));
    max: |ab, out| by_register!(out.dtype, R => zip(ab, out, any, R::larger));
    divide: |ab, out| by_float!(out.dtype, R => zip(ab, out, any, R::divide));
    remainder: |ab, out| match out.dtype.is_integer() {
        true => by_integer!(out.dtype, R => zip(ab, out, not_zero, R::remainder)),
        false => by_float!(out.dtype, R => zip(ab, out, any, R::remainder)),
    };
    pow: |ab, out| match out.dtype.is_integer() {
        true => by_integer!(out.dtype, R => zip(ab, out, not_negative, R::power)),
        false => zip_wide(ab, out, f64::powf),
    };
    quotient: |ab, out| by_integer!(out.dtype, R => zip(ab, out, not_zero, R::quotient));
    and: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::and));
    or: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::or));
    xor: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::xor));
    left_shift: |ab, out| by_integer!(out.dtype, R => zip(ab, out, not_negative, R::left_shift));
    right_shift: |ab, out| by_integer!(out.dtype, R => zip(ab, out, not_negative, R::right_shift));
    logical_and: |ab, out| logical(ab, out, |x, y| x & y);
    logical_or: |ab, out| logical(ab, out, |x, y| x | y);
    logical_xor: |ab, out| logical(ab, out, |x, y| x ^ y);
    equal: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::eq));
    not_equal: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::ne));
    greater: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::gt));
    less: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::lt));
    greater_equal: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::ge));
    less_equal: |ab, out| by_register!(merge(ab[0].dtype, ab[1].dtype), R => compare(ab, out, R::le));
}

/// `select`: operands are the predicate and what to take where it is true and where it is not.
pub(crate) fn select(operands: &[Operand], out: &mut Out) -> Outcome {
    let [pred, a, b] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_register!(out.dtype, R => choose::<R>([a, b], pred, out))
}

/// `clip`: operands are the tensor, the lower and the upper bound.
pub(crate) fn clip(operands: &[Operand], out: &mut Out) -> Outcome {
    let [x, low, high] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_register!(out.dtype, R => clamp::<R>(x, [low, high], out))
}

/// Conversion to f64 keeps what is 0 and what is not, for every type.
fn logical(ab: [&Operand; 2], out: &mut Out, f: impl Fn(bool, bool) -> bool + Sync) -> Outcome {
    compare(ab, out, |x: &f64, y: &f64| f(x.truth(), y.truth()))
}

fn choose<R: Register>([a, b]: [&Operand; 2], pred: &Operand, out: &mut Out) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y, mut p) = ([R::default(); BLOCK], [R::default(); BLOCK], [0f64; BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        pred.gather(0, start, &mut p[..n]);
        a.gather(0, start, &mut x[..n]);
        b.gather(0, start, &mut y[..n]);
        x.iter_mut()
            .zip(y.iter().zip(p))
            .take(n)
            .for_each(|(x, (y, p))| *x = if p.truth() { *x } else { *y });
        R::store(&x[..n], dtype, bytes);
        Ok(())
    })
}

fn clamp<R: Number>(x: &Operand, [low, high]: [&Operand; 2], out: &mut Out) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut v, mut l, mut h) = ([R::ZERO; BLOCK], [R::ZERO; BLOCK], [R::ZERO; BLOCK]);
        let n = bytes.len() / dtype.size() as usize;
        x.gather(0, start, &mut v[..n]);
        low.gather(0, start, &mut l[..n]);
        high.gather(0, start, &mut h[..n]);
        v.iter_mut()
            .zip(l.iter().zip(h))
            .take(n)
            .for_each(|(v, (l, h))| *v = v.larger(*l).smaller(h));
        R::store(&v[..n], dtype, bytes);
        Ok(())
    })
}

fn any<R>(_: &[R]) -> Outcome {
    Ok(())
}

fn not_zero<R: Number>(divisors: &[R]) -> Outcome {
    if divisors.contains(&R::ZERO) {
        Err("integer division by zero".to_owned())
    } else {
        Ok(())
    }
}

fn not_negative<R: Number>(values: &[R]) -> Outcome {
    if values.iter().any(|v| *v < R::ZERO) {
        Err("a negative exponent or shift amount".to_owned())
    } else {
        Ok(())
    }
}
