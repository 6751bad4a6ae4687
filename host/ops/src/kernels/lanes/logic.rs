//! Comparisons and tests of numbers where they lie, to one byte of 0 or 1 each, and what to take by such bytes.

use super::lane::{Each, Lane};
use super::{Cell, typed, widest};

/// A u8 that is 0 or 1, or a predicate.
pub(super) type Flag = [u8; 1];

macro_rules! relations {
    ($($name:ident: $floats:ident;)*) => { $(
        pub(crate) const $name: Lane = Lane::Elements(Some(Each::Relation($floats)), typed::$name);
    )* };
}
relations! {
    EQUAL: equal;
    NOT_EQUAL: not_equal;
    LESS: less;
    LESS_EQUAL: less_equal;
    GREATER: greater;
    GREATER_EQUAL: greater_equal;
}

pub(crate) const IS_NAN: Lane = Lane::Elements(Some(Each::Test(is_nan)), typed::IS_NAN);
pub(crate) const IS_INFINITE: Lane =
    Lane::Elements(Some(Each::Test(is_infinite)), typed::IS_INFINITE);

macro_rules! tests {
    ($($name:ident: |$x:ident| $body:expr;)*) => { widest! { $(
        fn $name(from: &[Cell], to: &mut [Flag]) {
            for (to, x) in to.iter_mut().zip(from) {
                let $x = f32::from_ne_bytes(*x);
                *to = [u8::from($body)];
            }
        }
    )* } };
}
tests! {
    is_nan: |x| x.is_nan();
    is_infinite: |x| x.is_infinite();
}

macro_rules! comparisons {
    ($($name:ident: $relation:tt;)*) => { widest! { $(
        fn $name(a: &[Cell], b: &[Cell], to: &mut [Flag]) {
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                *to = [u8::from(f32::from_ne_bytes(*x) $relation f32::from_ne_bytes(*y))];
            }
        }
    )* } };
}
comparisons! {
    equal: ==;
    not_equal: !=;
    less: <;
    less_equal: <=;
    greater: >;
    greater_equal: >=;
}

macro_rules! selects {
    ($($name:ident: $t:ty;)*) => { widest! { $(
        /// Elements of `a` where there is no 0, else those of `b`.
        pub(in crate::kernels) fn $name(
            pred: &[Flag],
            a: &[[u8; size_of::<$t>()]],
            b: &[[u8; size_of::<$t>()]],
            to: &mut [[u8; size_of::<$t>()]]
        ) {
            for ((to, [pred]), (x, y)) in to.iter_mut().zip(pred).zip(a.iter().zip(b)) {
                // All bits or none.
                let mask = (0 as $t).wrapping_sub(<$t>::from(*pred != 0));
                let (x, y) = (<$t>::from_ne_bytes(*x), <$t>::from_ne_bytes(*y));
                *to = (x & mask | y & !mask).to_ne_bytes();
            }
        }
    )* } };
}
selects! {
    select_bytes: u8;
    select_shorts: u16;
    select: u32;
    select_longs: u64;
}
