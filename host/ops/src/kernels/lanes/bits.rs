//! Integers of four and eight bytes where they lie: arithmetic that wraps, bits, and shifts.

use super::{Cell, Lane, Zip, widest};
use crate::kernels::number::Integer;

/// An element of eight bytes in memory.
type Long = [u8; 8];

/// A function of pairs of integers of eight bytes.
pub(crate) type Longs = fn(&[Long], &[Long], &mut [Long]);

/// A shift of integers by as many; whether no amount is negative.
pub(crate) type Shift<Element> = fn(&[Element], &[Element], &mut [Element]) -> bool;

/// Bits of two integers, the same for all types of a width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits {
    pub(super) words: Zip,
    pub(super) longs: Longs,
}

/// Shifts, which differ where the sign counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shifts {
    pub(super) u32: Shift<Cell>,
    pub(super) s32: Shift<Cell>,
    pub(super) u64: Shift<Long>,
    pub(super) s64: Shift<Long>,
}

macro_rules! bits {
    ($($name:ident: $words:ident, $longs:ident, $f:path;)*) => {
        $( pub(crate) const $name: Bits = Bits { words: $words, longs: $longs }; )*

        widest! { $(
            fn $words(a: &[Cell], b: &[Cell], to: &mut [Cell]) {
                for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                    *to = $f(u32::from_ne_bytes(*x), u32::from_ne_bytes(*y)).to_ne_bytes();
                }
            }

            fn $longs(a: &[Long], b: &[Long], to: &mut [Long]) {
                for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                    *to = $f(u64::from_ne_bytes(*x), u64::from_ne_bytes(*y)).to_ne_bytes();
                }
            }
        )* }
    };
}
bits! {
    SUMS: add_words, add_longs, super::Ring::add;
    DIFFERENCES: subtract_words, subtract_longs, super::Ring::subtract;
    PRODUCTS: multiply_words, multiply_longs, super::Ring::multiply;
    BOTH: and_words, and_longs, Integer::and;
    EITHER: or_words, or_longs, Integer::or;
    ONE: xor_words, xor_longs, Integer::xor;
}

pub(crate) const AND: Lane = Lane::Bits(BOTH);
pub(crate) const OR: Lane = Lane::Bits(EITHER);
pub(crate) const XOR: Lane = Lane::Bits(ONE);

macro_rules! shifts {
    ($($lane:ident: $f:path, [$($name:ident: $t:ident),*];)*) => {
        $( pub(crate) const $lane: Lane = Lane::Shift(Shifts { $( $t: $name ),* }); )*

        widest! { $( $(
            fn $name(
                a: &[[u8; size_of::<shifted::$t>()]],
                b: &[[u8; size_of::<shifted::$t>()]],
                to: &mut [[u8; size_of::<shifted::$t>()]]
            ) -> bool {
                let mut defined = true;
                for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                    let amount = shifted::$t::from_ne_bytes(*y);
                    #[allow(unused_comparisons, reason = "some types have no sign")]
                    let is_negative = amount < 0;
                    defined &= !is_negative;
                    *to = $f(shifted::$t::from_ne_bytes(*x), amount).to_ne_bytes();
                }
                defined
            }
        )* )* }
    };
}
shifts! {
    LEFT_SHIFT: Integer::left_shift, [left_u32: u32, left_s32: s32, left_u64: u64, left_s64: s64];
    RIGHT_SHIFT: Integer::right_shift, [right_u32: u32, right_s32: s32, right_u64: u64, right_s64: s64];
}

/// Rust's types by the names that ours have.
#[allow(non_camel_case_types, reason = "they are names of types")]
mod shifted {
    pub(super) type u32 = std::primitive::u32;
    pub(super) type s32 = std::primitive::i32;
    pub(super) type u64 = std::primitive::u64;
    pub(super) type s64 = std::primitive::i64;
}
