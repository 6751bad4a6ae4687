//! Powers and shifts of integers where they lie: mostly by one number for all.

use super::typed::{bytes, t};
use super::widest;
use crate::kernels::number::{Integer, Number, Ring};

/// Elements that are squared at a time.
const STEP: usize = 64;

macro_rules! powers {
    ($($t:ident)*) => {
        pub(super) mod power {
            use super::*;
            $(
                /// Whether no exponent is negative. Mostly there is one: then all elements are squared and multiplied together.
                pub(in super::super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [bytes!($t)]) -> bool {
                    let Some(first) = b.first() else { return true };
                    let exponent = t::$t::from_ne_bytes(*first);
                    if is_negative::$t(exponent) {
                        return false;
                    }
                    if !are_one::$t(b) {
                        let each = to.iter_mut().zip(a.iter().zip(b));
                        return each.fold(true, |defined, (to, (x, y))| {
                            let exponent = t::$t::from_ne_bytes(*y);
                            let has = !is_negative::$t(exponent);
                            if has {
                                *to = t::$t::from_ne_bytes(*x).power(exponent).to_ne_bytes();
                            }
                            defined & has
                        });
                    }
                    same::$t(a, exponent, to);
                    true
                }
            )*
        }

        mod is_negative {
            use super::*;
            $(
                #[inline(always)]
                #[allow(unused_comparisons, reason = "some types have no sign")]
                pub(super) fn $t(x: t::$t) -> bool {
                    x < 0
                }
            )*
        }

        /// Whether all are the same.
        mod are_one {
            use super::*;
            widest! { $(
                pub(super) fn $t(all: &[bytes!($t)]) -> bool {
                    let first = all.first().map_or(0, |x| t::$t::from_ne_bytes(*x));
                    all.iter().fold(true, |same, x| same & (t::$t::from_ne_bytes(*x) == first))
                }
            )* }
        }

        mod same {
            use super::*;
            widest! { $(
                pub(super) fn $t(a: &[bytes!($t)], exponent: t::$t, to: &mut [bytes!($t)]) {
                    type Number = t::$t;
                    let each = to.iter_mut().zip(a.iter().map(|x| Number::from_ne_bytes(*x)));
                    match exponent {
                        2 => return each.for_each(|(to, x)| *to = x.multiply(x).to_ne_bytes()),
                        3 => return each.for_each(|(to, x)| *to = x.multiply(x).multiply(x).to_ne_bytes()),
                        _ => {}
                    }
                    for (to, from) in to.chunks_mut(STEP).zip(a.chunks(STEP)) {
                        let (mut squares, mut powers) = ([0; STEP], [Number::ONE; STEP]);
                        for (x, from) in squares.iter_mut().zip(from) {
                            *x = Number::from_ne_bytes(*from);
                        }
                        let mut left = exponent;
                        while left != 0 {
                            if left & 1 == 1 {
                                powers.iter_mut().zip(&squares).for_each(|(to, x)| *to = to.multiply(*x));
                            }
                            left >>= 1;
                            squares.iter_mut().for_each(|x| *x = x.multiply(*x));
                        }
                        for (to, x) in to.iter_mut().zip(powers) {
                            *to = x.to_ne_bytes();
                        }
                    }
                }
            )* }
        }
    };
}
powers!(u8 s8 u16 s16 u32 s32 u64 s64);

macro_rules! shifts {
    ($($module:ident: $f:path;)*) => { $( shifts!(@module $module, $f, u8 s8 u16 s16 u32 s32 u64 s64); )* };
    (@module $module:ident, $f:path, $($t:ident)*) => {
        pub(super) mod $module {
            use super::*;
            $(
                /// Whether no amount is negative.
                pub(in super::super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [bytes!($t)]) -> bool {
                    match b.first() {
                        Some(first) if are_one::$t(b) => one::$t(a, t::$t::from_ne_bytes(*first), to),
                        _ => each::$t(a, b, to),
                    }
                }
            )*

            mod one {
                use super::*;
                widest! { $(
                    pub(super) fn $t(a: &[bytes!($t)], amount: t::$t, to: &mut [bytes!($t)]) -> bool {
                        for (to, x) in to.iter_mut().zip(a) {
                            *to = $f(t::$t::from_ne_bytes(*x), amount).to_ne_bytes();
                        }
                        !is_negative::$t(amount)
                    }
                )* }
            }

            mod each {
                use super::*;
                widest! { $(
                    pub(super) fn $t(a: &[bytes!($t)], b: &[bytes!($t)], to: &mut [bytes!($t)]) -> bool {
                        let mut defined = true;
                        for (to, (x, y)) in to.iter_mut().zip(a.iter().zip(b)) {
                            let amount = t::$t::from_ne_bytes(*y);
                            defined &= !is_negative::$t(amount);
                            *to = $f(t::$t::from_ne_bytes(*x), amount).to_ne_bytes();
                        }
                        defined
                    }
                )* }
            }
        }
    };
}
shifts! {
    left_shift: Integer::left_shift;
    right_shift: Integer::right_shift;
}
