//! Loops over f32 numbers where they lie in memory, compiled for the widest vectors of the machine they run on. They serve
//! what need not be as exact as what others are compared with.

mod fold;
mod functions;
mod logic;
#[cfg(test)]
mod tests;
mod wide;

pub(super) use fold::{InPlace, MAX, MIN, PRODUCT, SUM};
pub(super) use logic::{Relation, Test, select};

use super::number::{Number, Ring};
use nx_vulkan_abi::DType;

/// An element of four bytes in memory, at any alignment; an f32 where nothing else is said.
pub(super) type Cell = [u8; 4];

/// A function of each cell, to as many others.
pub(super) type Map = fn(&[Cell], &mut [Cell]);

/// A function of pairs of cells.
pub(super) type Zip = fn(&[Cell], &[Cell], &mut [Cell]);

/// A function of three cells at a time.
pub(super) type Choice = fn(&[Cell], &[Cell], &[Cell], &mut [Cell]);

/// Functions that are compiled three times, and called in the best form that the machine has. None of them rounds
/// differently for it: products and sums become one only where the code says so.
macro_rules! widest {
    ($($(#[$doc:meta])* $public:vis fn $name:ident($($arg:ident: $t:ty),*) $(-> $result:ty)? $body:block)*) => { $(
        $(#[$doc])*
        $public fn $name($($arg: $t),*) $(-> $result)? {
            #[inline(always)]
            fn any($($arg: $t),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn widest($($arg: $t),*) $(-> $result)? { any($($arg),*) }

                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $t),*) $(-> $result)? { any($($arg),*) }

                if is_x86_feature_detected!("fma") {
                    if is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512vl")
                    {
                        // SAFETY: the machine has these instructions.
                        return unsafe { widest($($arg),*) };
                    }
                    if is_x86_feature_detected!("avx2") {
                        // SAFETY: the machine has these instructions.
                        return unsafe { wide($($arg),*) };
                    }
                }
            }
            any($($arg),*)
        }
    )* };
}
use widest;

/// Whether `a * b + c` is one instruction, without which the functions here would be slower than others.
fn is_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// How elements of four bytes, and predicates, become others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lane {
    /// Of one operand.
    Map(Map),
    /// Of one operand, to 0 or 1.
    Test(Test),
    /// Of two.
    Zip(Zip),
    /// Of two, to 0 or 1.
    Relation(Relation),
    /// Of three.
    Choice(Choice),
    /// Elements of the second or the third operand, as a u8 says.
    Select,
}

/// How `op` makes `to` of these types, where that is known here.
pub(super) fn find(op: &str, from: &[DType], to: DType) -> Option<Lane> {
    const F32: DType = DType::F32;
    const U8: DType = DType::U8;
    match (from, to) {
        ([U8, a, b], to) if op == "select" => {
            (to.size() == 4 && [*a, *b] == [to; 2]).then_some(Lane::Select)
        }
        ([F32, F32, F32], F32) if op == "clip" => Some(Lane::Choice(clip)),
        ([x], to) if op == "as_type" => cast(*x, to).map(Lane::Map),
        ([F32], F32) => map(op).map(Lane::Map),
        ([F32], U8) => logic::test(op).map(Lane::Test),
        ([F32, F32], F32) => zip(op).map(Lane::Zip),
        ([a, b], U8) if a == b => logic::relation(op, *a).map(Lane::Relation),
        _ => None,
    }
}

/// The function of one operand of that op, where there is one.
fn map(op: &str) -> Option<Map> {
    if !is_fused() {
        return None;
    }
    Some(match op {
        "abs" => abs,
        "negate" => negate,
        "sign" => sign,
        "round" => round,
        "floor" => floor,
        "ceil" => ceil,
        "sqrt" => sqrt,
        "rsqrt" => rsqrt,
        "exp" => exp,
        "expm1" => expm1,
        "log" => log,
        "log1p" => log1p,
        "tanh" => tanh,
        "sigmoid" => sigmoid,
        "erf" => erf,
        "erfc" => erfc,
        "erf_inv" => erf_inv,
        "sin" => sin,
        "cos" => cos,
        "tan" => tan,
        "sinh" => sinh,
        "cosh" => cosh,
        "asin" => asin,
        "acos" => acos,
        "atan" => atan,
        "asinh" => asinh,
        "acosh" => acosh,
        "atanh" => atanh,
        "cbrt" => cbrt,
        _ => return None,
    })
}

/// The function of two operands of that op, where there is one.
fn zip(op: &str) -> Option<Zip> {
    if !is_fused() {
        return None;
    }
    Some(match op {
        "add" => add,
        "subtract" => subtract,
        "multiply" => multiply,
        "divide" => divide,
        "min" => min,
        "max" => max,
        "pow" => pow,
        "atan2" => atan2,
        _ => return None,
    })
}

/// The cast between those types, where there is one here.
fn cast(from: DType, to: DType) -> Option<Map> {
    Some(match (from, to) {
        (DType::F32, DType::S32) => f32_to_s32,
        (DType::F32, DType::U32) => f32_to_u32,
        (DType::S32, DType::F32) => s32_to_f32,
        (DType::U32, DType::F32) => u32_to_f32,
        _ => return None,
    })
}

macro_rules! casts {
    ($($name:ident: |$x:ident: $from:ident| $value:expr;)*) => { widest! { $(
        fn $name(from: &[Cell], to: &mut [Cell]) {
            for (to, x) in to.iter_mut().zip(from) {
                let $x = $from::from_ne_bytes(*x);
                *to = $value.to_ne_bytes();
            }
        }
    )* } };
}
casts! {
    f32_to_s32: |x: f32| s32_of(x);
    f32_to_u32: |x: f32| u32_of(x);
    s32_to_f32: |x: i32| x as f32;
    u32_to_f32: |x: u32| x as f32;
}

/// `x as i32`, in steps that vectors have.
#[inline(always)]
fn s32_of(x: f32) -> i32 {
    const END: f32 = 2_147_483_648.0;
    let within = x.max(-END).min(END.next_down());
    // SAFETY: -2^31 to the largest f32 below 2^31; `max` is no NaN.
    let whole = unsafe { within.to_int_unchecked::<i32>() };
    let whole = if x >= END { i32::MAX } else { whole };
    if x.is_nan() { 0 } else { whole }
}

/// `x as u32`.
#[inline(always)]
fn u32_of(x: f32) -> u32 {
    const END: f32 = 4_294_967_296.0;
    let within = x.max(0.0).min(END.next_down());
    // SAFETY: 0 to the largest f32 below 2^32; `max` is no NaN.
    let whole = unsafe { within.to_int_unchecked::<u32>() };
    if x >= END { u32::MAX } else { whole }
}

widest! {
    fn clip(from: &[Cell], low: &[Cell], high: &[Cell], to: &mut [Cell]) {
        for ((to, x), (low, high)) in to.iter_mut().zip(from).zip(low.iter().zip(high)) {
            let [x, low, high] = [x, low, high].map(|x| f32::from_ne_bytes(*x));
            *to = Number::smaller(Number::larger(x, low), high).to_ne_bytes();
        }
    }
}

macro_rules! maps {
    ($($name:ident: |$x:ident| $body:expr;)*) => { widest! { $(
        fn $name(from: &[Cell], to: &mut [Cell]) {
            for (to, x) in to.iter_mut().zip(from) {
                let $x = f32::from_ne_bytes(*x);
                *to = f32::to_ne_bytes($body);
            }
        }
    )* } };
}
maps! {
    abs: |x| x.abs();
    negate: |x| -x;
    sign: |x| Number::sign(x);
    round: |x| Number::round(x);
    floor: |x| x.floor();
    ceil: |x| x.ceil();
    sqrt: |x| x.sqrt();
    cube: |x| (f64::from(x) * f64::from(x) * f64::from(x)) as f32;
    half_power: |x| if x == f32::NEG_INFINITY { f32::INFINITY } else { (x + 0.0).sqrt() };
    inverse: |x| 1.0 / x;
    rsqrt: |x| wide::rsqrt(x);
    exp: |x| functions::exp(x);
    expm1: |x| wide::expm1(x);
    log: |x| functions::log(x);
    log1p: |x| functions::log1p(x);
    tanh: |x| functions::tanh(x);
    sigmoid: |x| functions::sigmoid(x);
    erf: |x| functions::erf(x);
    near_sin: |x| wide::sin(x);
    near_cos: |x| wide::cos(x);
    near_tan: |x| wide::tan(x);
    erfc: |x| wide::erfc(x);
    erf_inv: |x| wide::erf_inv(x);
    sinh: |x| wide::sinh(x);
    cosh: |x| wide::cosh(x);
    asin: |x| wide::asin(x);
    acos: |x| wide::acos(x);
    atan: |x| wide::atan(x);
    asinh: |x| wide::asinh(x);
    acosh: |x| wide::acosh(x);
    atanh: |x| wide::atanh(x);
    cbrt: |x| wide::cbrt(x);
}

fn sin(from: &[Cell], to: &mut [Cell]) {
    near_sin(from, to);
    replace_far(from, to, f64::sin);
}

fn cos(from: &[Cell], to: &mut [Cell]) {
    near_cos(from, to);
    replace_far(from, to, f64::cos);
}

fn tan(from: &[Cell], to: &mut [Cell]) {
    near_tan(from, to);
    replace_far(from, to, f64::tan);
}

/// Frequent powers cost no logarithm.
fn pow(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
    let all = |exponent| are_all(b, exponent);
    match () {
        () if all(2.0) => multiply(a, a, to),
        () if all(3.0) => cube(a, to),
        () if all(0.5) => half_power(a, to),
        () if all(-1.0) => inverse(a, to),
        () => any_pow(a, b, to),
    }
}

/// Takes `exact` where an angle is too large for the function that was taken.
fn replace_far(from: &[Cell], to: &mut [Cell], exact: fn(f64) -> f64) {
    if !any_far(from) {
        return;
    }
    for (to, x) in to.iter_mut().zip(from) {
        let x = f32::from_ne_bytes(*x);
        if x.abs() >= wide::FAR {
            *to = (exact(x.into()) as f32).to_ne_bytes();
        }
    }
}

widest! {
    fn any_far(from: &[Cell]) -> bool {
        let far = |x: &Cell| f32::from_ne_bytes(*x).abs() >= wide::FAR;
        from.iter().fold(false, |any, x| any | far(x))
    }
}

widest! {
    fn are_all(from: &[Cell], number: f32) -> bool {
        from.iter().fold(true, |all, x| all & (f32::from_ne_bytes(*x) == number))
    }
}

macro_rules! zips {
    ($($name:ident: |$x:ident, $y:ident| $body:expr;)*) => { widest! { $(
        fn $name(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                let ($x, $y) = (f32::from_ne_bytes(*x), f32::from_ne_bytes(*y));
                *to = f32::to_ne_bytes($body);
            }
        }
    )* } };
}
zips! {
    add: |x, y| Ring::add(x, y);
    subtract: |x, y| Ring::subtract(x, y);
    multiply: |x, y| Ring::multiply(x, y);
    divide: |x, y| x / y;
    min: |x, y| Number::smaller(x, y);
    max: |x, y| Number::larger(x, y);
    any_pow: |x, y| wide::pow(x, y);
    atan2: |x, y| wide::atan2(x, y);
}
