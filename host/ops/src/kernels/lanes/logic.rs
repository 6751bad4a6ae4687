//! Comparisons and tests of numbers where they lie, to one byte of 0 or 1 each, and what to take by such bytes.

use super::{Cell, Lane, typed, widest};

/// A u8 that is 0 or 1, or a predicate.
type Flag = [u8; 1];

/// A property of each cell.
pub(crate) type Test = fn(&[Cell], &mut [Flag]);

/// A relation between pairs of cells.
pub(crate) type Relation = fn(&[Cell], &[Cell], &mut [Flag]);

macro_rules! both {
    ($($name:ident: $floats:ident, $integers:ident;)*) => { $(
        pub(crate) const $name: Lane = Lane::Relation {
            floats: $floats,
            integers: $integers,
            others: &typed::$name,
        };
    )* };
}
both! {
    EQUAL: equal, equal_integers;
    NOT_EQUAL: not_equal, not_equal_integers;
    LESS: less, less_integers;
    LESS_EQUAL: less_equal, less_equal_integers;
    GREATER: greater, greater_integers;
    GREATER_EQUAL: greater_equal, greater_equal_integers;
}

macro_rules! tests {
    ($($name:ident: |$x:ident| $body:expr;)*) => { widest! { $(
        pub(crate) fn $name(from: &[Cell], to: &mut [Flag]) {
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

macro_rules! relations {
    ($($name:ident: $t:ty, $relation:tt;)*) => { widest! { $(
        fn $name(a: &[Cell], b: &[Cell], to: &mut [Flag]) {
            for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                let (x, y) = (<$t>::from_ne_bytes(*x), <$t>::from_ne_bytes(*y));
                *to = [u8::from(x $relation y)];
            }
        }
    )* } };
}
relations! {
    equal: f32, ==;
    not_equal: f32, !=;
    less: f32, <;
    less_equal: f32, <=;
    greater: f32, >;
    greater_equal: f32, >=;
    equal_integers: i32, ==;
    not_equal_integers: i32, !=;
    less_integers: i32, <;
    less_equal_integers: i32, <=;
    greater_integers: i32, >;
    greater_equal_integers: i32, >=;
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
