//! Arithmetic of bytes and of complex numbers where they lie, and quotients of integers.

use super::bits::{DIFFERENCES, PRODUCTS, SUMS};
use super::typed::{ADD_F64, MULTIPLY_F64, SUBTRACT_F64};
use super::{Cell, Lane, add, multiply, subtract, widest};
use crate::kernels::element::Complex;
use crate::kernels::number::Ring;

/// A u8 or s8.
type Byte = [u8; 1];
/// The two f32 of a complex number.
type Pair = [u8; 8];

/// A function of pairs of bytes.
pub(crate) type Bytes = fn(&[Byte], &[Byte], &mut [Byte]);
/// A function of pairs of complex numbers.
pub(crate) type Pairs = fn(&[Pair], &[Pair], &mut [Pair]);

pub(crate) const ADD: Lane = Lane::Ring {
    floats: add,
    bytes: add_bytes,
    complex: add_pairs,
    integers: SUMS,
    doubles: ADD_F64,
};
pub(crate) const SUBTRACT: Lane = Lane::Ring {
    floats: subtract,
    bytes: subtract_bytes,
    complex: subtract_pairs,
    integers: DIFFERENCES,
    doubles: SUBTRACT_F64,
};
pub(crate) const MULTIPLY: Lane = Lane::Ring {
    floats: multiply,
    bytes: multiply_bytes,
    complex: multiply_pairs,
    integers: PRODUCTS,
    doubles: MULTIPLY_F64,
};

macro_rules! rings {
    ($($bytes:ident, $pairs:ident: $f:ident;)*) => { widest! { $(
        fn $bytes(a: &[Byte], b: &[Byte], to: &mut [Byte]) {
            for (to, ([x], [y])) in to.iter_mut().zip(a.iter().zip(b)) {
                *to = [Ring::$f(*x, *y)];
            }
        }

        fn $pairs(a: &[Pair], b: &[Pair], to: &mut [Pair]) {
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                let z = Ring::$f(complex(*x), complex(*y));
                let [[a, b, c, d], [e, f, g, h]] = [z.re, z.im].map(f32::to_ne_bytes);
                *to = [a, b, c, d, e, f, g, h];
            }
        }
    )* } };
}
rings! {
    add_bytes, add_pairs: add;
    subtract_bytes, subtract_pairs: subtract;
    multiply_bytes, multiply_pairs: multiply;
}

#[inline(always)]
fn complex([a, b, c, d, e, f, g, h]: Pair) -> Complex<f32> {
    Complex {
        re: f32::from_ne_bytes([a, b, c, d]),
        im: f32::from_ne_bytes([e, f, g, h]),
    }
}

macro_rules! quotients {
    ($($name:ident: $t:ty as $wide:ty, $cell:ty;)*) => { widest! { $(
        /// Whether no divisor is 0. In a float with twice the digits a quotient is never rounded up to an integer.
        pub(in crate::kernels) fn $name(a: &[$cell], b: &[$cell], to: &mut [$cell]) -> bool {
            let mut defined = true;
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                let (x, y) = (<$t>::from_ne_bytes(*x), <$t>::from_ne_bytes(*y));
                defined &= y != 0;
                // What is divided by -1 may not have a quotient of its type.
                let is_turned = <$t>::MIN != 0 && y == (0 as $t).wrapping_sub(1);
                let divisor = if is_turned || y == 0 { 1 } else { y };
                let quotient = <$wide>::from(x) / <$wide>::from(divisor);
                // SAFETY: the divisor is neither 0 nor -1, so the quotient is as large as `x` at most.
                let quotient = unsafe { quotient.to_int_unchecked::<$t>() };
                let turned = (0 as $t).wrapping_sub(quotient);
                *to = (if is_turned { turned } else { quotient }).to_ne_bytes();
            }
            defined
        }
    )* } };
}
quotients! {
    quotient_s32: i32 as f64, Cell;
    quotient_u8: u8 as f32, Byte;
}
