//! Elementwise ops of two operands, by name, with `select` and `clip`, which only add one to choose by.

use std::cmp::Ordering;

use nx_vulkan_abi::DType;

use super::complex;
use super::element::{
    Cast, Complex, Register, Truth, by_complex, by_float, by_integer, by_number, by_register,
};
use super::elementwise::{compare, for_each_block, zip, zip_complex, zip_wide};
use super::number::{Float, Integer, Number, Ring};
use super::operand::{BLOCK, Operand};
use crate::partial::{AMOUNT, DIVISOR, EXPONENT, Partial};
use crate::view::{Out, Outcome};

/// As `by_register`, or another of its kind, in a register that holds the values of all integer operands.
macro_rules! by_value {
    ($operands:expr, $out:expr, $by:ident, $R:ident => $body:expr) => {
        if $out.dtype.is_integer() && outgrows(&$operands.map(|operand| operand.dtype)) {
            type $R = i128;
            $body
        } else {
            $by!($out.dtype, $R => $body)
        }
    };
}

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
    add: |ab, out| by_number!(out.dtype, R => zip(ab, out, any, R::add));
    subtract: |ab, out| by_number!(out.dtype, R => zip(ab, out, any, R::subtract));
    multiply: |ab, out| match out.dtype.is_complex() {
        true => complex_product(ab, out),
        false => by_register!(out.dtype, R => zip(ab, out, any, R::multiply)),
    };
    min: |ab, out| by_value!(ab, out, by_register, R => zip(ab, out, any, R::smaller));
    max: |ab, out| by_value!(ab, out, by_register, R => zip(ab, out, any, R::larger));
    divide: |ab, out| match (out.dtype.is_complex(), ab[1].dtype.is_complex()) {
        (true, true) => zip_complex(ab, out, complex::divide),
        (true, false) => zip_complex(ab, out, |x, y| Complex { re: x.re / y.re, im: x.im / y.re }),
        (false, _) => by_float!(out.dtype, R => zip(ab, out, any, R::divide)),
    };
    remainder: |ab, out| match out.dtype.is_integer() {
        true => by_value!(ab, out, by_integer, R => zip(ab, out, defined(&DIVISOR), R::remainder)),
        false => by_float!(out.dtype, R => zip(ab, out, any, R::remainder)),
    };
    pow: |ab, out| match out.dtype.is_integer() {
        true => by_value!(ab, out, by_integer, R => zip(ab, out, defined(&EXPONENT), R::power)),
        false if out.dtype.is_complex() => zip_complex(ab, out, complex::pow),
        false => zip_wide(ab, out, f64::powf),
    };
    quotient: |ab, out| by_value!(ab, out, by_integer, R => zip(ab, out, defined(&DIVISOR), R::quotient));
    and: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::and));
    or: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::or));
    xor: |ab, out| by_integer!(out.dtype, R => zip(ab, out, any, R::xor));
    left_shift: |ab, out| by_value!(ab, out, by_integer, R => zip(ab, out, defined(&AMOUNT), R::left_shift));
    right_shift: |ab, out| by_value!(ab, out, by_integer, R => zip(ab, out, defined(&AMOUNT), R::right_shift));
    logical_and: |ab, out| logical(ab, out, |x, y| x & y);
    logical_or: |ab, out| logical(ab, out, |x, y| x | y);
    logical_xor: |ab, out| logical(ab, out, |x, y| x ^ y);
    equal: |ab, out| equality(ab, out, true);
    not_equal: |ab, out| equality(ab, out, false);
    greater: |ab, out| comparison(ab, out, |order| order == Some(Ordering::Greater));
    less: |ab, out| comparison(ab, out, |order| order == Some(Ordering::Less));
    greater_equal: |ab, out| comparison(ab, out, |order| order.is_some_and(Ordering::is_ge));
    less_equal: |ab, out| comparison(ab, out, |order| order.is_some_and(Ordering::is_le));
}

/// Whether no integer type holds the values of all: u64 with a signed type. i128 does.
pub(super) fn outgrows(types: &[DType]) -> bool {
    types.contains(&DType::U64) && types.iter().any(|dtype| dtype.is_signed())
}

/// `select`: operands are the predicate and what to take where it is true and where it is not.
pub(crate) fn select(operands: &[Operand], out: &mut Out) -> Outcome {
    let [pred, a, b] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_number!(out.dtype, R => choose::<R>([a, b], pred, out))
}

/// `clip`: operands are the tensor, the lower and the upper bound.
pub(crate) fn clip(operands: &[Operand], out: &mut Out) -> Outcome {
    let [x, low, high] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_value!([x, low, high], out, by_register, R => clamp::<R>(x, [low, high], out))
}

/// Whether the values are equal, which complex numbers may be too; else whether they are not.
fn equality([a, b]: [&Operand; 2], out: &mut Out, wanted: bool) -> Outcome {
    match (a.dtype.is_complex(), b.dtype.is_complex()) {
        (false, false) => comparison([a, b], out, |order| {
            (order == Some(Ordering::Equal)) == wanted
        }),
        (true, true) => compare([a, b], out, |x: &Complex<f64>, y: &Complex<f64>| {
            (x == y) == wanted
        }),
        (true, false) => equality([b, a], out, wanted),
        (false, true) if is_long(a) => compare([a, b], out, |n: &i128, y: &Complex<f64>| {
            (y.im == 0.0 && order(*n, y.re) == Some(Ordering::Equal)) == wanted
        }),
        (false, true) => compare([a, b], out, |x: &f64, y: &Complex<f64>| {
            (y.im == 0.0 && *x == y.re) == wanted
        }),
    }
}

/// A real factor scales both parts: it has no imaginary one.
fn complex_product([a, b]: [&Operand; 2], out: &mut Out) -> Outcome {
    by_complex!(out.dtype, R => match (a.dtype.is_complex(), b.dtype.is_complex()) {
        (true, true) => zip([a, b], out, any, R::multiply),
        (true, false) => zip([a, b], out, any, |x: R, y: R| x.scaled(y.re)),
        (false, true) => zip([a, b], out, any, |x: R, y: R| y.scaled(x.re)),
        (false, false) => zip([a, b], out, any, |x: R, y: R| R::cast(x.re * y.re)),
    })
}

/// Whether f64 does not hold all values of its type.
fn is_long(x: &Operand) -> bool {
    x.dtype.is_integer() && x.dtype.size() == 8
}

/// Compares values, not what they round to in a common type; `holds` judges their order, nothing for NaN.
fn comparison(
    [a, b]: [&Operand; 2],
    out: &mut Out,
    holds: impl Fn(Option<Ordering>) -> bool + Sync,
) -> Outcome {
    if is_long(a) && b.dtype.is_float() {
        return compare([a, b], out, |n: &i128, x: &f64| holds(order(*n, *x)));
    }
    if a.dtype.is_float() && is_long(b) {
        return compare([a, b], out, |x: &f64, n: &i128| {
            holds(order(*n, *x).map(Ordering::reverse))
        });
    }
    if outgrows(&[a.dtype, b.dtype]) {
        return compare([a, b], out, |x: &i128, y: &i128| holds(Some(x.cmp(y))));
    }
    by_register!(shared(a.dtype, b.dtype), R => {
        compare([a, b], out, |x: &R, y: &R| holds(x.partial_cmp(y)))
    })
}

/// How an integer of at most 64 bits compares with a float; nothing for NaN.
fn order(n: i128, x: f64) -> Option<Ordering> {
    let whole = x.trunc();
    let part = 0.0.partial_cmp(&(x - whole));
    match n.cmp(&(whole as i128)) {
        _ if x.is_nan() => None,
        Ordering::Equal => part,
        unequal => Some(unequal),
    }
}

/// A type that holds the values of both, but for those that [`comparison`] sees to.
pub(super) fn shared(a: DType, b: DType) -> DType {
    let integer = if a.is_integer() { a } else { b };
    if a.is_integer() != b.is_integer() && integer.size() > 2 {
        return DType::F64;
    }
    a.merge(b)
}

fn logical(ab: [&Operand; 2], out: &mut Out, f: impl Fn(bool, bool) -> bool + Sync) -> Outcome {
    compare(ab, out, |x: &Truth, y: &Truth| f(x.0, y.0))
}

fn choose<R: Register>([a, b]: [&Operand; 2], pred: &Operand, out: &mut Out) -> Outcome {
    let dtype = out.dtype;
    for_each_block(out, &|start, bytes| {
        let (mut x, mut y, mut p) = (
            [R::default(); BLOCK],
            [R::default(); BLOCK],
            [Truth(false); BLOCK],
        );
        let n = bytes.len() / dtype.size() as usize;
        pred.gather(0, start, &mut p[..n]);
        a.gather(0, start, &mut x[..n]);
        b.gather(0, start, &mut y[..n]);
        x.iter_mut()
            .zip(y.iter().zip(p))
            .take(n)
            .for_each(|(x, (y, p))| *x = if p.0 { *x } else { *y });
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

/// Refuses second operands that the op has no result for.
fn defined<R: Integer>(partial: &'static Partial) -> impl Fn(&[R]) -> Outcome + Sync {
    let lacks = |v: &R| partial.lacks(*v < R::ZERO, *v == R::ZERO);
    move |values| match values.iter().any(lacks) {
        true => Err(partial.reason.to_owned()),
        false => Ok(()),
    }
}
