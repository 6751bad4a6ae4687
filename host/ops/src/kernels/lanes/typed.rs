//! Functions of elements of other types than f32 where they lie, each for the types that it has.

use super::lane::{Each, Loop, Table, row};
use super::powers::{left_shift, power, right_shift};
use super::{Flag, double, ring, widest};
use crate::kernels::number::{Integer, Number, Ring};
use crate::partial::{AMOUNT, DIVISOR, EXPONENT};
use nx_vulkan_abi::DType;

/// An element of eight bytes in memory.
pub(super) type Long = [u8; 8];

/// Rust's types by the names that ours have.
#[allow(non_camel_case_types, reason = "they are names of types")]
pub(super) mod t {
    pub(in super::super) type u8 = std::primitive::u8;
    pub(in super::super) type s8 = std::primitive::i8;
    pub(in super::super) type u16 = std::primitive::u16;
    pub(in super::super) type s16 = std::primitive::i16;
    pub(in super::super) type u32 = std::primitive::u32;
    pub(in super::super) type s32 = std::primitive::i32;
    pub(in super::super) type u64 = std::primitive::u64;
    pub(in super::super) type s64 = std::primitive::i64;
    pub(in super::super) type f32 = std::primitive::f32;
    pub(in super::super) type f64 = std::primitive::f64;
}

/// The bytes of an element of that type.
macro_rules! bytes {
    ($t:ident) => {
        [u8; size_of::<t::$t>()]
    };
}
pub(super) use bytes;

/// Tables of functions of numbers, by what a type's name in our ops is.
macro_rules! tables {
    ($($table:ident: $each:ident of $module:ident [$($t:ident)*])*) => { $(
        pub(crate) const $table: Table = &[$( row!($t, Each::$each($module::$t)) ),*];
    )* };
}
tables! {
    ABS: Map of abs [f64 s8 s16 s32 s64]
    NEGATE: Map of negate [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    SIGN: Map of sign [f64 s8 s16 s32 s64]
    ROUND: Map of round [f64]
    CEIL: Map of ceil [f64]
    FLOOR: Map of floor [f64]
    LARGER: Zip of larger [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    SMALLER: Zip of smaller [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    DIVIDE: Zip of divide [f64]
    EQUAL: Relation of equal [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    NOT_EQUAL: Relation of not_equal [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    LESS: Relation of less [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    LESS_EQUAL: Relation of less_equal [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    GREATER: Relation of greater [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    GREATER_EQUAL: Relation of greater_equal [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    CLIP: Choice of clip [f64 u8 s8 u16 s16 u32 s32 u64 s64]
    IS_NAN: Test of is_nan [f64]
    IS_INFINITE: Test of is_infinite [f64]
}

/// Functions of which some pairs of integers have no result.
macro_rules! partial {
    ($($table:ident: $module:ident, $lacks:ident [$($t:ident)*])*) => { $(
        pub(crate) const $table: Table = &[$( row!($t, Each::Partly($module::$t, &$lacks)) ),*];
    )* };
}
partial! {
    POWER: power, EXPONENT [u8 s8 u16 s16 u32 s32 u64 s64]
    LEFT_SHIFT: left_shift, AMOUNT [u8 s8 u16 s16 u32 s32 u64 s64]
    RIGHT_SHIFT: right_shift, AMOUNT [u8 s8 u16 s16 u32 s32 u64 s64]
    QUOTIENT: quotient, DIVISOR [u8 s8 u16 s16 u32 s32]
    REMAINDER: remainder, DIVISOR [u8 s8 u16 s16 u32 s32]
}

/// Functions that are the same with a sign and without.
macro_rules! wrapping {
    ($($table:ident: $module:ident $($more:expr)*;)*) => { $(
        pub(crate) const $table: Table = &[
            $($more,)*
            row!(u8, Each::Zip($module::u8)),
            row!(s8, Each::Zip($module::u8)),
            row!(u16, Each::Zip($module::u16)),
            row!(s16, Each::Zip($module::u16)),
            row!(u32, Each::Zip($module::u32)),
            row!(s32, Each::Zip($module::u32)),
            row!(u64, Each::Zip($module::u64)),
            row!(s64, Each::Zip($module::u64)),
        ];
    )* };
}
wrapping! {
    SUMS: add row!(f64, Each::Zip(add::f64)) row!(c64, Each::Zip(ring::add));
    DIFFERENCES: subtract row!(f64, Each::Zip(subtract::f64)) row!(c64, Each::Zip(ring::subtract));
    PRODUCTS: multiply row!(f64, Each::Zip(multiply::f64)) row!(c64, Each::Zip(ring::multiply));
    BOTH: and;
    EITHER: or;
    ONE: xor;
}

/// Functions of f64 alone.
macro_rules! doubles {
    ($($table:ident: $f:ident;)*) => { $(
        pub(crate) const $table: Table = &[row!(f64, Each::Map(double::$f))];
    )* };
}
doubles! {
    EXP: exp;
    EXPM1: expm1;
    LOG: log;
    LOG1P: log1p;
    TANH: tanh;
    SIGMOID: sigmoid;
    SQRT: sqrt;
    RSQRT: rsqrt;
}

macro_rules! maps {
    ($($module:ident: $f:path, [$($t:ident)*];)*) => { $(
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(from: &[bytes!($t)], to: &mut [bytes!($t)]) {
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = $f(t::$t::from_ne_bytes(*x)).to_ne_bytes();
                    }
                }
            )* }
        }
    )* };
}
maps! {
    abs: Number::abs, [f64 s8 s16 s32 s64];
    negate: Number::negate, [f64 u8 s8 u16 s16 u32 s32 u64 s64];
    sign: Number::sign, [f64 s8 s16 s32 s64];
    round: Number::round, [f64];
    ceil: Number::ceil, [f64];
    floor: Number::floor, [f64];
}

macro_rules! tests {
    ($($module:ident: $f:path, [$($t:ident)*];)*) => { $(
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(from: &[bytes!($t)], to: &mut [Flag]) {
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = [u8::from($f(t::$t::from_ne_bytes(*x)))];
                    }
                }
            )* }
        }
    )* };
}
tests! {
    is_nan: Number::is_nan, [f64];
    is_infinite: Number::is_infinite, [f64];
}

macro_rules! pairs {
    ($($module:ident: $f:path, [$($t:ident)*];)*) => { $(
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [bytes!($t)]) {
                    for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                        *to = $f(t::$t::from_ne_bytes(*x), t::$t::from_ne_bytes(*y)).to_ne_bytes();
                    }
                }
            )* }
        }
    )* };
}
pairs! {
    larger: Number::larger, [f64 u8 s8 u16 s16 u32 s32 u64 s64];
    smaller: Number::smaller, [f64 u8 s8 u16 s16 u32 s32 u64 s64];
    add: Ring::add, [f64 u8 u16 u32 u64];
    subtract: Ring::subtract, [f64 u8 u16 u32 u64];
    multiply: Ring::multiply, [f64 u8 u16 u32 u64];
    and: Integer::and, [u8 u16 u32 u64];
    or: Integer::or, [u8 u16 u32 u64];
    xor: Integer::xor, [u8 u16 u32 u64];
    divide: std::ops::Div::div, [f64];
}

macro_rules! relations {
    ($($module:ident: $relation:tt;)*) => { $(
        relations!(@module $module, $relation, f64 u8 s8 u16 s16 u32 s32 u64 s64);
    )* };
    (@module $module:ident, $relation:tt, $($t:ident)*) => {
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [Flag]) {
                    for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                        *to = [u8::from(t::$t::from_ne_bytes(*x) $relation t::$t::from_ne_bytes(*y))];
                    }
                }
            )* }
        }
    };
}
relations! {
    equal: ==;
    not_equal: !=;
    less: <;
    less_equal: <=;
    greater: >;
    greater_equal: >=;
}

macro_rules! clips {
    ($($t:ident)*) => {
        mod clip {
            use super::*;
            widest! { $(
                pub(super) fn $t(
                    from: &[bytes!($t)],
                    low: &[bytes!($t)],
                    high: &[bytes!($t)],
                    to: &mut [bytes!($t)]
                ) {
                    for ((to, x), (low, high)) in to.iter_mut().zip(from).zip(low.iter().zip(high)) {
                        let [x, low, high] = [x, low, high].map(|x| t::$t::from_ne_bytes(*x));
                        *to = Number::smaller(Number::larger(x, low), high).to_ne_bytes();
                    }
                }
            )* }
        }
    };
}
clips!(f64 u8 s8 u16 s16 u32 s32 u64 s64);

macro_rules! divisions {
    ($($module:ident: |$x:ident, $quotient:ident, $divisor:ident| $result:expr;)*) => { $(
        divisions!(@module $module, |$x, $quotient, $divisor| $result,
            u8 f32 s8 f32 u16 f64 s16 f64 u32 f64 s32 f64);
    )* };
    (@module $module:ident, |$x:ident, $quotient:ident, $divisor:ident| $result:expr, $($t:ident $wide:ident)*) => {
        mod $module {
            use super::*;
            widest! { $(
                /// Whether no divisor is 0. In a float with twice the digits a quotient is never rounded up to an integer.
                pub(super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [bytes!($t)]) -> bool {
                    type Number = t::$t;
                    let mut defined = true;
                    for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                        let ($x, $divisor) = (Number::from_ne_bytes(*x), Number::from_ne_bytes(*y));
                        defined &= $divisor != 0;
                        // What is divided by -1 may not have a quotient of its type.
                        let is_turned = Number::MIN != 0 && $divisor == (0 as Number).wrapping_sub(1);
                        let divisor = if is_turned || $divisor == 0 { 1 } else { $divisor };
                        let quotient = $wide::from($x) / $wide::from(divisor);
                        // SAFETY: the divisor is neither 0 nor -1, so the quotient is as large as `x` at most.
                        let quotient = unsafe { quotient.to_int_unchecked::<Number>() };
                        let turned = (0 as Number).wrapping_sub(quotient);
                        let $quotient = if is_turned { turned } else { quotient };
                        *to = $result.to_ne_bytes();
                    }
                    defined
                }
            )* }
        }
    };
}
divisions! {
    quotient: |x, quotient, divisor| quotient;
    remainder: |x, quotient, divisor| x.wrapping_sub(quotient.wrapping_mul(divisor));
}
