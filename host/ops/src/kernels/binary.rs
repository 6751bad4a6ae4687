//! Elementwise ops of two operands, by name, with `select` and `clip`, which only add one to choose by.

use nx_vulkan_abi::dtype::DType;

use super::Out;
use super::element::{Register, by_float, by_integer, by_register};
use super::elementwise::{Outcome, compare, for_each_block, zip, zip_wide};
use super::number::{Float, Integer, Number};
use super::operand::{BLOCK, Operand};

pub(super) fn run(op: &str, operands: &[Operand], out: &mut Out) -> Outcome {
    let [a, b] = operands else {
        return Err("expected two operands".to_owned());
    };
    let (ab, dtype) = ([a, b], out.dtype);
    let integer = dtype.is_integer();
    match op {
        "add" => by_register!(dtype, R => zip(ab, out, any, R::add)),
        "subtract" => by_register!(dtype, R => zip(ab, out, any, R::subtract)),
        "multiply" => by_register!(dtype, R => zip(ab, out, any, R::multiply)),
        "min" => by_register!(dtype, R => zip(ab, out, any, R::smaller)),
        "max" => by_register!(dtype, R => zip(ab, out, any, R::larger)),
        "remainder" if integer => by_integer!(dtype, R => zip(ab, out, not_zero, R::remainder)),
        "remainder" => by_float!(dtype, R => zip(ab, out, any, R::remainder)),
        "divide" => by_float!(dtype, R => zip(ab, out, any, R::divide)),
        "pow" if integer => by_integer!(dtype, R => zip(ab, out, not_negative, R::power)),
        "pow" => zip_wide(ab, out, f64::powf),
        "atan2" => zip_wide(ab, out, f64::atan2),
        "quotient" => by_integer!(dtype, R => zip(ab, out, not_zero, R::quotient)),
        "bitwise_and" => by_integer!(dtype, R => zip(ab, out, any, R::and)),
        "bitwise_or" => by_integer!(dtype, R => zip(ab, out, any, R::or)),
        "bitwise_xor" => by_integer!(dtype, R => zip(ab, out, any, R::xor)),
        "left_shift" => by_integer!(dtype, R => zip(ab, out, not_negative, R::left_shift)),
        "right_shift" => by_integer!(dtype, R => zip(ab, out, not_negative, R::right_shift)),
        "logical_and" => logical(ab, out, |x, y| x & y),
        "logical_or" => logical(ab, out, |x, y| x | y),
        "logical_xor" => logical(ab, out, |x, y| x ^ y),
        _ => by_register!(merge(a.dtype, b.dtype), R => comparison::<R>(op, ab, out)),
    }
}

/// `select`: operands are the predicate and what to take where it is true and where it is not.
pub(super) fn select(operands: &[Operand], out: &mut Out) -> Outcome {
    let [pred, a, b] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_register!(out.dtype, R => choose::<R>([a, b], pred, out))
}

/// `clip`: operands are the tensor, the lower and the upper bound.
pub(super) fn clip(operands: &[Operand], out: &mut Out) -> Outcome {
    let [x, low, high] = operands else {
        return Err("expected three operands".to_owned());
    };
    by_register!(out.dtype, R => clamp::<R>(x, [low, high], out))
}

fn comparison<R: Register>(op: &str, ab: [&Operand; 2], out: &mut Out) -> Outcome {
    match op {
        "equal" => compare(ab, out, R::eq),
        "not_equal" => compare(ab, out, R::ne),
        "greater" => compare(ab, out, R::gt),
        "less" => compare(ab, out, R::lt),
        "greater_equal" => compare(ab, out, R::ge),
        "less_equal" => compare(ab, out, R::le),
        _ => Err("no kernel".to_owned()),
    }
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

/// The type that operands of a comparison convert to.
fn merge(a: DType, b: DType) -> DType {
    match (a.is_float(), b.is_float()) {
        (true, true) if a.size() == b.size() && a != b => DType::F32,
        (true, false) => a,
        (false, true) => b,
        (true, true) => wider(a, b),
        (false, false) if a.is_signed() == b.is_signed() => wider(a, b),
        (false, false) => {
            let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
            match unsigned.size() {
                1 => wider(signed, DType::S16),
                2 => wider(signed, DType::S32),
                _ => DType::S64,
            }
        }
    }
}

fn wider(a: DType, b: DType) -> DType {
    if b.size() > a.size() { b } else { a }
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
