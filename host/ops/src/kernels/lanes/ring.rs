//! Sums, differences and products, and bits.

use super::{Lane, add as add_floats, multiply as multiply_floats, subtract as subtract_floats};
use super::{typed, widest};
use crate::kernels::element::Complex;
use crate::kernels::number::Ring;

/// The two f32 of a complex number.
type Pair = [u8; 8];

pub(crate) const ADD: Lane = Lane::zip(add_floats).and(typed::SUMS);
pub(crate) const SUBTRACT: Lane = Lane::zip(subtract_floats).and(typed::DIFFERENCES);
pub(crate) const MULTIPLY: Lane = Lane::zip(multiply_floats).and(typed::PRODUCTS);

macro_rules! pairs {
    ($($name:ident)*) => { widest! { $(
        pub(super) fn $name(a: &[Pair], b: &[Pair], to: &mut [Pair]) {
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                let z = Ring::$name(complex(*x), complex(*y));
                let [[a, b, c, d], [e, f, g, h]] = [z.re, z.im].map(f32::to_ne_bytes);
                *to = [a, b, c, d, e, f, g, h];
            }
        }
    )* } };
}
pairs!(add subtract multiply);

#[inline(always)]
fn complex([a, b, c, d, e, f, g, h]: Pair) -> Complex<f32> {
    Complex {
        re: f32::from_ne_bytes([a, b, c, d]),
        im: f32::from_ne_bytes([e, f, g, h]),
    }
}
