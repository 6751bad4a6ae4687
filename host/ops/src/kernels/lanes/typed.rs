//! Functions of elements of other types than f32 where they lie, each for the types that it has.

use super::{Bytes, Cell, Choice, Longs, Loop, Map, Relation, Zip, widest};
use crate::kernels::number::{Integer, Number, Ring};
use crate::partial::Partial;
use nx_vulkan_abi::DType;

type Byte = [u8; 1];
type Long = [u8; 8];

/// A function of each element of eight bytes.
pub(crate) type LongMap = fn(&[Long], &mut [Long]);
/// A relation between pairs of elements of eight bytes.
pub(crate) type LongRelation = fn(&[Long], &[Long], &mut [Byte]);
/// A function of three elements at a time.
pub(crate) type Three<Element> = fn(&[Element], &[Element], &[Element], &mut [Element]);
/// A function of pairs of elements; whether all of them have a result.
pub(crate) type Partly<Element> = fn(&[Element], &[Element], &mut [Element]) -> bool;

/// A function of one number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unary {
    pub(super) f64: LongMap,
    pub(super) s32: Map,
    pub(super) s64: LongMap,
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    pub(super) f64: Longs,
    pub(super) s32: Zip,
    pub(super) u32: Zip,
    pub(super) s64: Longs,
    pub(super) u64: Longs,
    pub(super) u8: Bytes,
    pub(super) s8: Bytes,
}

/// A relation between two numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relations {
    pub(super) f64: LongRelation,
    pub(super) u32: Relation,
    pub(super) s64: LongRelation,
    pub(super) u64: LongRelation,
    pub(super) u8: Bytes,
    pub(super) s8: Bytes,
}

/// A function of three numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Triples {
    pub(super) f64: Three<Long>,
    pub(super) s32: Choice,
    pub(super) u32: Choice,
    pub(super) s64: Three<Long>,
    pub(super) u64: Three<Long>,
    pub(super) u8: Three<Byte>,
    pub(super) s8: Three<Byte>,
}

/// A function of two integers that some have no result for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartialBinary {
    pub(super) s32: Partly<Cell>,
    pub(super) u32: Partly<Cell>,
    pub(super) s64: Partly<Long>,
    pub(super) u64: Partly<Long>,
    pub(super) u8: Partly<Byte>,
    pub(super) s8: Partly<Byte>,
}

impl Unary {
    pub(super) fn of(&self, dtype: DType) -> Option<Loop> {
        match dtype {
            DType::F64 => Some(Loop::LongMap(self.f64)),
            DType::S32 => Some(Loop::Map(self.s32)),
            DType::S64 => Some(Loop::LongMap(self.s64)),
            _ => None,
        }
    }
}

impl Binary {
    pub(super) fn of(&self, dtype: DType) -> Option<Loop> {
        match dtype {
            DType::F64 => Some(Loop::Longs(self.f64)),
            DType::S32 => Some(Loop::Zip(self.s32)),
            DType::U32 => Some(Loop::Zip(self.u32)),
            DType::S64 => Some(Loop::Longs(self.s64)),
            DType::U64 => Some(Loop::Longs(self.u64)),
            DType::U8 => Some(Loop::Bytes(self.u8)),
            DType::S8 => Some(Loop::Bytes(self.s8)),
            _ => None,
        }
    }
}

impl Relations {
    pub(super) fn of(&self, dtype: DType) -> Option<Loop> {
        match dtype {
            DType::F64 => Some(Loop::RelationOfLongs(self.f64)),
            DType::U32 => Some(Loop::Relation(self.u32)),
            DType::S64 => Some(Loop::RelationOfLongs(self.s64)),
            DType::U64 => Some(Loop::RelationOfLongs(self.u64)),
            DType::U8 => Some(Loop::Bytes(self.u8)),
            DType::S8 => Some(Loop::Bytes(self.s8)),
            _ => None,
        }
    }
}

impl Triples {
    pub(super) fn of(&self, dtype: DType) -> Option<Loop> {
        match dtype {
            DType::F64 => Some(Loop::ChoiceOfLongs(self.f64)),
            DType::S32 => Some(Loop::Choice(self.s32)),
            DType::U32 => Some(Loop::Choice(self.u32)),
            DType::S64 => Some(Loop::ChoiceOfLongs(self.s64)),
            DType::U64 => Some(Loop::ChoiceOfLongs(self.u64)),
            DType::U8 => Some(Loop::ChoiceOfBytes(self.u8)),
            DType::S8 => Some(Loop::ChoiceOfBytes(self.s8)),
            _ => None,
        }
    }
}

impl PartialBinary {
    pub(super) fn of(&self, dtype: DType, lacks: &'static Partial) -> Option<Loop> {
        match dtype {
            DType::S32 => Some(Loop::Partly(self.s32, lacks)),
            DType::U32 => Some(Loop::Partly(self.u32, lacks)),
            DType::S64 => Some(Loop::PartlyOfLongs(self.s64, lacks)),
            DType::U64 => Some(Loop::PartlyOfLongs(self.u64, lacks)),
            DType::U8 => Some(Loop::PartlyOfBytes(self.u8, lacks)),
            DType::S8 => Some(Loop::PartlyOfBytes(self.s8, lacks)),
            _ => None,
        }
    }
}

/// Rust's types by the names that ours have.
#[allow(non_camel_case_types, reason = "they are names of types")]
mod t {
    pub(super) type u8 = std::primitive::u8;
    pub(super) type s8 = std::primitive::i8;
    pub(super) type u32 = std::primitive::u32;
    pub(super) type s32 = std::primitive::i32;
    pub(super) type u64 = std::primitive::u64;
    pub(super) type s64 = std::primitive::i64;
    pub(super) type f64 = std::primitive::f64;
}

macro_rules! unary {
    ($($table:ident in $module:ident: $f:path;)*) => { $(
        pub(crate) const $table: Unary = Unary { f64: $module::f64, s32: $module::s32, s64: $module::s64 };
        unary!(@module $module, $f, f64, s32, s64);
    )* };
    (@module $module:ident, $f:path, $($t:ident),*) => {
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(from: &[[u8; size_of::<t::$t>()]], to: &mut [[u8; size_of::<t::$t>()]]) {
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = $f(t::$t::from_ne_bytes(*x)).to_ne_bytes();
                    }
                }
            )* }
        }
    };
}
unary! {
    ABS in abs: Number::abs;
    NEGATE in negate: Number::negate;
    SIGN in sign: Number::sign;
    ROUND in round: Number::round;
    CEIL in ceil: Number::ceil;
    FLOOR in floor: Number::floor;
}

widest! {
    pub(crate) fn sqrt_f64(from: &[Long], to: &mut [Long]) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = f64::from_ne_bytes(*x).sqrt().to_ne_bytes();
        }
    }
}

macro_rules! pairs {
    ($($module:ident: $f:path, [$($t:ident),*];)*) => { $(
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(
                    a: &[[u8; size_of::<t::$t>()]],
                    b: &[[u8; size_of::<t::$t>()]],
                    to: &mut [[u8; size_of::<t::$t>()]]
                ) {
                    for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                        *to = $f(t::$t::from_ne_bytes(*x), t::$t::from_ne_bytes(*y)).to_ne_bytes();
                    }
                }
            )* }
        }
    )* };
}
pairs! {
    larger: Number::larger, [f64, s32, u32, s64, u64, u8, s8];
    smaller: Number::smaller, [f64, s32, u32, s64, u64, u8, s8];
    add: Ring::add, [f64];
    subtract: Ring::subtract, [f64];
    multiply: Ring::multiply, [f64];
    divide: std::ops::Div::div, [f64];
}

pub(crate) const ADD_F64: Longs = add::f64;
pub(crate) const SUBTRACT_F64: Longs = subtract::f64;
pub(crate) const MULTIPLY_F64: Longs = multiply::f64;
pub(crate) const DIVIDE_F64: Longs = divide::f64;

macro_rules! tables {
    ($($table:ident: $kind:ident of $module:ident { $($t:ident),* })*) => { $(
        pub(crate) const $table: $kind = $kind { $($t: $module::$t),* };
    )* };
}
tables! {
    LARGER: Binary of larger { f64, s32, u32, s64, u64, u8, s8 }
    SMALLER: Binary of smaller { f64, s32, u32, s64, u64, u8, s8 }
    EQUAL: Relations of equal { f64, u32, s64, u64, u8, s8 }
    NOT_EQUAL: Relations of not_equal { f64, u32, s64, u64, u8, s8 }
    LESS: Relations of less { f64, u32, s64, u64, u8, s8 }
    LESS_EQUAL: Relations of less_equal { f64, u32, s64, u64, u8, s8 }
    GREATER: Relations of greater { f64, u32, s64, u64, u8, s8 }
    GREATER_EQUAL: Relations of greater_equal { f64, u32, s64, u64, u8, s8 }
    CLIP: Triples of clip { f64, s32, u32, s64, u64, u8, s8 }
    POWER: PartialBinary of power { s32, u32, s64, u64, u8, s8 }
    LEFT_SHIFT: PartialBinary of left_shift { s32, u32, s64, u64, u8, s8 }
    RIGHT_SHIFT: PartialBinary of right_shift { s32, u32, s64, u64, u8, s8 }
}

macro_rules! relations {
    ($($module:ident: $relation:tt;)*) => { $( relations!(@module $module, $relation, f64, u32, s64, u64, u8, s8); )* };
    (@module $module:ident, $relation:tt, $($t:ident),*) => {
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(
                    a: &[[u8; size_of::<t::$t>()]],
                    b: &[[u8; size_of::<t::$t>()]],
                    to: &mut [Byte]
                ) {
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
    ($($t:ident),*) => {
        mod clip {
            use super::*;
            widest! { $(
                pub(super) fn $t(
                    from: &[[u8; size_of::<t::$t>()]],
                    low: &[[u8; size_of::<t::$t>()]],
                    high: &[[u8; size_of::<t::$t>()]],
                    to: &mut [[u8; size_of::<t::$t>()]]
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
clips!(f64, s32, u32, s64, u64, u8, s8);

macro_rules! powers {
    ($($t:ident),*) => {
        mod power {
            use super::*;
            $(
                /// Mostly there is one exponent: then all elements are squared and multiplied together.
                pub(super) fn $t(
                    a: &[[u8; size_of::<t::$t>()]],
                    b: &[[u8; size_of::<t::$t>()]],
                    to: &mut [[u8; size_of::<t::$t>()]]
                ) -> bool {
                    let [first, rest @ ..] = b else { return true };
                    let exponent = t::$t::from_ne_bytes(*first);
                    #[allow(unused_comparisons, reason = "some types have no sign")]
                    let lacks = |exponent: t::$t| exponent < 0;
                    if lacks(exponent) {
                        return false;
                    }
                    if rest.iter().any(|other| other != first) {
                        let each = to.iter_mut().zip(a.iter().zip(b));
                        return each.fold(true, |defined, (to, (x, y))| {
                            let exponent = t::$t::from_ne_bytes(*y);
                            let has = !lacks(exponent);
                            if has {
                                *to = t::$t::from_ne_bytes(*x).power(exponent).to_ne_bytes();
                            }
                            defined & has
                        });
                    }
                    steps::$t(a, exponent, to);
                    true
                }
            )*

            mod steps {
                use super::*;
                widest! { $(
                    pub(super) fn $t(
                        a: &[[u8; size_of::<t::$t>()]],
                        exponent: t::$t,
                        to: &mut [[u8; size_of::<t::$t>()]]
                    ) {
                        let mut squares: Vec<t::$t> = a.iter().map(|x| t::$t::from_ne_bytes(*x)).collect();
                        to.fill(t::$t::ONE.to_ne_bytes());
                        let mut left = exponent;
                        loop {
                            if left & 1 == 1 {
                                for (to, x) in to.iter_mut().zip(&squares) {
                                    *to = t::$t::from_ne_bytes(*to).multiply(*x).to_ne_bytes();
                                }
                            }
                            left >>= 1;
                            if left == 0 {
                                return;
                            }
                            squares.iter_mut().for_each(|x| *x = x.multiply(*x));
                        }
                    }
                )* }
            }
        }
    };
}
powers!(s32, u32, s64, u64, u8, s8);

macro_rules! shifts {
    ($($module:ident: $f:path;)*) => { $( shifts!(@module $module, $f, s32, u32, s64, u64, u8, s8); )* };
    (@module $module:ident, $f:path, $($t:ident),*) => {
        mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $t(
                    a: &[[u8; size_of::<t::$t>()]],
                    b: &[[u8; size_of::<t::$t>()]],
                    to: &mut [[u8; size_of::<t::$t>()]]
                ) -> bool {
                    let mut defined = true;
                    for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                        let amount = t::$t::from_ne_bytes(*y);
                        #[allow(unused_comparisons, reason = "some types have no sign")]
                        let is_negative = amount < 0;
                        defined &= !is_negative;
                        *to = $f(t::$t::from_ne_bytes(*x), amount).to_ne_bytes();
                    }
                    defined
                }
            )* }
        }
    };
}
shifts! {
    left_shift: Integer::left_shift;
    right_shift: Integer::right_shift;
}
