//! Elementwise ops of two operands, by name, with `select` and `clip`, which only add one to choose by.

use nx_vulkan_abi::dtype::DType;

use std::cmp::Ordering;

use super::element::{Register, by_float, by_integer, by_register};
use super::elementwise::{Outcome, compare, for_each_block, zip, zip_wide};
use super::number::{Float, Integer, Number};
use super::operand::{BLOCK, Operand};
use super::{Out, partial};

pub(super) fn run(op: &str, operands: &[Operand], out: &mut Out) -> Outcome {
    let [a, b] = operands else {
        return Err("expected two operands".to_owned());
    };
    let (ab, dtype) = ([a, b], out.dtype);
    match op {
        "add" => by_register!(dtype, R => zip(ab, out, any, R::add)),
        "subtract" => by_register!(dtype, R => zip(ab, out, any, R::subtract)),
        "multiply" => by_register!(dtype, R => zip(ab, out, any, R::multiply)),
        "divide" => by_float!(dtype, R => zip(ab, out, any, R::divide)),
        "atan2" => zip_wide(ab, out, f64::atan2),
        "logical_and" => logical(ab, out, |x, y| x & y),
        "logical_or" => logical(ab, out, |x, y| x | y),
        "logical_xor" => logical(ab, out, |x, y| x ^ y),
        _ if dtype == DType::U8 && Verdict::of(op).is_some() => comparison(op, ab, out),
        _ if dtype.is_integer() && outgrow(&[a.dtype, b.dtype]) => whole::<i128>(op, ab, out),
        "min" => by_register!(dtype, R => zip(ab, out, any, R::smaller)),
        "max" => by_register!(dtype, R => zip(ab, out, any, R::larger)),
        _ if dtype.is_integer() => by_integer!(dtype, R => whole::<R>(op, ab, out)),
        "remainder" => by_float!(dtype, R => zip(ab, out, any, R::remainder)),
        "pow" => zip_wide(ab, out, f64::powf),
        _ => Err("no kernel".to_owned()),
    }
}

/// Whether no integer type holds the values of all operands: u64 with a signed type. i128 does.
fn outgrow(types: &[DType]) -> bool {
    types.contains(&DType::U64) && types.iter().any(|dtype| dtype.is_signed())
}

/// What is computed in integers only, in a register that holds both operands' values.
fn whole<R: Integer>(op: &str, ab: [&Operand; 2], out: &mut Out) -> Outcome {
    match op {
        "min" => zip(ab, out, any, R::smaller),
        "max" => zip(ab, out, any, R::larger),
        "remainder" => zip(ab, out, defined(op), R::remainder),
        "quotient" => zip(ab, out, defined(op), R::quotient),
        "pow" => zip(ab, out, defined(op), R::power),
        "left_shift" => zip(ab, out, defined(op), R::left_shift),
        "right_shift" => zip(ab, out, defined(op), R::right_shift),
        "bitwise_and" => zip(ab, out, any, R::and),
        "bitwise_or" => zip(ab, out, any, R::or),
        "bitwise_xor" => zip(ab, out, any, R::xor),
        _ => Err("no kernel".to_owned()),
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
    if out.dtype.is_integer() && outgrow(&[x.dtype, low.dtype, high.dtype]) {
        return clamp::<i128>(x, [low, high], out);
    }
    by_register!(out.dtype, R => clamp::<R>(x, [low, high], out))
}

/// Compares values, not what they round to in a common type.
fn comparison(op: &str, [a, b]: [&Operand; 2], out: &mut Out) -> Outcome {
    let holds = Verdict::of(op).ok_or("no kernel")?;
    let is_long = |x: &Operand| x.dtype.is_integer() && x.dtype.size() == 8;
    if is_long(a) && b.dtype.is_float() {
        return compare([a, b], out, |n: &i128, x: &f64| holds.is(order(*n, *x)));
    }
    if a.dtype.is_float() && is_long(b) {
        return compare([a, b], out, |x: &f64, n: &i128| {
            holds.is(order(*n, *x).map(Ordering::reverse))
        });
    }
    if outgrow(&[a.dtype, b.dtype]) {
        return compare([a, b], out, |x: &i128, y: &i128| holds.is(Some(x.cmp(y))));
    }
    by_register!(merge(a.dtype, b.dtype), R => {
        compare([a, b], out, |x: &R, y: &R| holds.is(x.partial_cmp(y)))
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

/// A type that holds the values of both, but for those that [`comparison`] sees to.
fn merge(a: DType, b: DType) -> DType {
    match (a.is_float(), b.is_float()) {
        (true, true) if a.size() == b.size() && a != b => DType::F32,
        (true, false) => beside(b, a),
        (false, true) => beside(a, b),
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

fn beside(integer: DType, float: DType) -> DType {
    if integer.size() > 2 {
        DType::F64
    } else {
        float
    }
}

fn wider(a: DType, b: DType) -> DType {
    if b.size() > a.size() { b } else { a }
}

fn any<R>(_: &[R]) -> Outcome {
    Ok(())
}

/// Refuses second operands for which the op has no result.
fn defined<R: Integer>(op: &str) -> impl Fn(&[R]) -> Outcome + Sync {
    let partial = partial::of(op);
    move |values| match partial {
        Some(p) if values.iter().any(|v| p.lacks(*v < R::ZERO, *v == R::ZERO)) => {
            Err(p.reason.to_owned())
        }
        _ => Ok(()),
    }
}

/// Which orders of two values a comparison is true for.
struct Verdict([bool; 4]);

impl Verdict {
    fn of(op: &str) -> Option<Verdict> {
        // Less, equal, greater, none.
        Some(Verdict(match op {
            "equal" => [false, true, false, false],
            "not_equal" => [true, false, true, true],
            "greater" => [false, false, true, false],
            "less" => [true, false, false, false],
            "greater_equal" => [false, true, true, false],
            "less_equal" => [true, true, false, false],
            _ => return None,
        }))
    }

    fn is(&self, order: Option<Ordering>) -> bool {
        self.0[order.map_or(3, |order| (order as i8 + 1) as usize)]
    }
}
