//! Integers of four and eight bytes where they lie: arithmetic that wraps, and bits.

use super::{Cell, Lane, Zip, typed, widest};
use crate::kernels::number::Integer;

/// An element of eight bytes in memory.
type Long = [u8; 8];

/// A function of pairs of integers of eight bytes.
pub(crate) type Longs = fn(&[Long], &[Long], &mut [Long]);

/// Bits of two integers, the same for all types of a width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits {
    pub(super) words: Zip,
    pub(super) longs: Longs,
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
pub(crate) const LEFT_SHIFT: Lane = Lane::Shift(&typed::LEFT_SHIFT);
pub(crate) const RIGHT_SHIFT: Lane = Lane::Shift(&typed::RIGHT_SHIFT);
