//! Loops over numbers where they lie in memory, f32 most of them, compiled for the widest vectors of the machine they run on.
//! Those of floats serve what need not be as exact as what others are compared with.

mod cast;
mod double;
mod fold;
mod functions;
mod index;
mod lane;
mod lines;
mod logic;
mod narrow;
mod powers;
mod products;
mod ring;
pub(crate) mod typed;
mod wide;

pub(super) use cast::{Cast, cast};
pub(super) use fold::{Extremes, InPlace};
pub(super) use fold::{product_of_floats, sum_of_floats, sum_of_integers};
pub(super) use index::Best;
pub(super) use lane::Loop;
pub(crate) use lane::{Each, Lane};
pub(super) use lines::{AT_ONCE, Line, Rows};
use logic::Flag;
pub(crate) use logic::{
    EQUAL, GREATER, GREATER_EQUAL, IS_INFINITE, IS_NAN, LESS, LESS_EQUAL, NOT_EQUAL,
};
pub(super) use logic::{select, select_bytes, select_longs, select_shorts};
pub(super) use narrow::{Short, is_narrow, narrow, widen};
pub(super) use products::{AddProducts, TERMS};
pub(crate) use ring::{ADD, MULTIPLY, SUBTRACT};

use super::number::{Number, Ring};

/// An element of four bytes in memory, at any alignment; an f32 where nothing else is said.
pub(crate) type Cell = [u8; 4];

/// A function of each cell, to as many others.
pub(crate) type Map = fn(&[Cell], &mut [Cell]);

/// A function of pairs of cells.
pub(crate) type Zip = fn(&[Cell], &[Cell], &mut [Cell]);

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
pub(super) use widest;

/// Whether `a * b + c` is one instruction, without which the functions here would be slower than others.
pub(super) fn is_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

pub(crate) const CLIP: Lane = Lane::Elements(Some(Each::Choice(clip)), typed::CLIP);

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
        pub(crate) fn $name(from: &[Cell], to: &mut [Cell]) {
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
    cube_root: |x| wide::cube_root(x);
}

pub(crate) fn sin(from: &[Cell], to: &mut [Cell]) {
    near_sin(from, to);
    replace_far(from, to, f64::sin);
}

pub(crate) fn cos(from: &[Cell], to: &mut [Cell]) {
    near_cos(from, to);
    replace_far(from, to, f64::cos);
}

pub(crate) fn tan(from: &[Cell], to: &mut [Cell]) {
    near_tan(from, to);
    replace_far(from, to, f64::tan);
}

/// Frequent powers cost no logarithm.
pub(crate) fn pow(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
    let all = |exponent| are_all(b, exponent);
    match () {
        () if all(2.0) => multiply(a, a, to),
        () if all(3.0) => cube(a, to),
        () if all(0.5) => half_power(a, to),
        () if all(-1.0) => inverse(a, to),
        () => {
            any_pow(a, b, to);
            if any_frequent(b) {
                replace_frequent(a, b, to);
            }
        }
    }
}

/// Takes what frequent powers are by themselves, so that an element is the same whatever others are beside it.
fn replace_frequent(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
    for ((to, x), y) in to
        .as_chunks_mut::<1>()
        .0
        .iter_mut()
        .zip(a.as_chunks::<1>().0)
        .zip(b)
    {
        match f32::from_ne_bytes(*y) {
            2.0 => multiply(x, x, to),
            3.0 => cube(x, to),
            0.5 => half_power(x, to),
            -1.0 => inverse(x, to),
            _ => {}
        }
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
    fn any_frequent(from: &[Cell]) -> bool {
        from.iter().fold(false, |any, x| {
            let x = f32::from_ne_bytes(*x);
            any | (x == 2.0) | (x == 3.0) | (x == 0.5) | (x == -1.0)
        })
    }
}

widest! {
    fn are_all(from: &[Cell], number: f32) -> bool {
        from.iter().fold(true, |all, x| all & (f32::from_ne_bytes(*x) == number))
    }
}

macro_rules! zips {
    ($($name:ident: |$x:ident, $y:ident| $body:expr;)*) => { widest! { $(
        pub(crate) fn $name(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
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
    angle: |y, x| wide::angle(y.into(), x.into()) as f32;
}
