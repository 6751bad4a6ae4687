//! Arithmetic of the registers, as `docs/ops.md` defines it: integers wrap, NaN spreads.

use super::element::{Complex, Register};

/// What every register computes.
pub(super) trait Ring: Register {
    const ZERO: Self;

    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
}

/// What only numbers with an order compute.
pub(super) trait Number: Ring + PartialOrd {
    const ONE: Self;
    /// The lowest value; -Inf for floats.
    const LOWEST: Self;
    /// The highest value; Inf for floats.
    const HIGHEST: Self;

    /// The sign is that of `self`. An integer `other` must not be 0.
    fn remainder(self, other: Self) -> Self;
    fn negate(self) -> Self;
    fn abs(self) -> Self;
    fn round(self) -> Self;
    fn ceil(self) -> Self;
    fn floor(self) -> Self;
    fn is_nan(self) -> bool;
    fn is_infinite(self) -> bool;

    fn larger(self, other: Self) -> Self {
        if (self >= other) | self.is_nan() {
            self
        } else {
            other
        }
    }

    fn smaller(self, other: Self) -> Self {
        if (self <= other) | self.is_nan() {
            self
        } else {
            other
        }
    }

    fn sign(self) -> Self {
        if self > Self::ZERO {
            Self::ONE
        } else if self < Self::ZERO {
            Self::ONE.negate()
        } else {
            self
        }
    }
}

/// What only integers compute.
pub(super) trait Integer: Number {
    /// Truncates; `other` must not be 0.
    fn quotient(self, other: Self) -> Self;
    /// By squaring; `exponent` must not be negative.
    fn power(self, exponent: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// 0 from the type's width on; `amount` must not be negative.
    fn left_shift(self, amount: Self) -> Self;
    /// The sign from the type's width on; `amount` must not be negative.
    fn right_shift(self, amount: Self) -> Self;
    fn not(self) -> Self;
    fn leading_zeros(self) -> Self;
    fn population(self) -> Self;
}

/// What only floats compute.
pub(super) trait Float: Number {
    fn divide(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty, $abs:expr;)*) => { $(
        impl Ring for $t {
            const ZERO: $t = 0;
            fn add(self, other: $t) -> $t { self.wrapping_add(other) }
            fn subtract(self, other: $t) -> $t { self.wrapping_sub(other) }
            fn multiply(self, other: $t) -> $t { self.wrapping_mul(other) }
        }

        impl Number for $t {
            const ONE: $t = 1;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;
            fn remainder(self, other: $t) -> $t { self.wrapping_rem(other) }
            fn negate(self) -> $t { self.wrapping_neg() }
            fn abs(self) -> $t { $abs(self) }
            fn round(self) -> $t { self }
            fn ceil(self) -> $t { self }
            fn floor(self) -> $t { self }
            fn is_nan(self) -> bool { false }
            fn is_infinite(self) -> bool { false }
        }

        impl Integer for $t {
            fn quotient(self, other: $t) -> $t { self.wrapping_div(other) }
            fn power(self, exponent: $t) -> $t {
                let (mut result, mut base, mut exponent) = (1 as $t, self, exponent as u64);
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                result
            }
            fn and(self, other: $t) -> $t { self & other }
            fn or(self, other: $t) -> $t { self | other }
            fn xor(self, other: $t) -> $t { self ^ other }
            fn left_shift(self, amount: $t) -> $t {
                if amount as u64 >= u64::from(<$t>::BITS) { 0 } else { self << amount }
            }
            fn right_shift(self, amount: $t) -> $t {
                let last = <$t>::BITS - 1;
                if amount as u64 > u64::from(last) { (self >> last) >> 1 } else { self >> amount }
            }
            fn not(self) -> $t { !self }
            fn leading_zeros(self) -> $t { <$t>::leading_zeros(self) as $t }
            fn population(self) -> $t { self.count_ones() as $t }
        }
    )* };
}
integers! {
    u8, std::convert::identity;
    u16, std::convert::identity;
    u32, std::convert::identity;
    u64, std::convert::identity;
    i8, i8::wrapping_abs;
    i16, i16::wrapping_abs;
    i32, i32::wrapping_abs;
    i64, i64::wrapping_abs;
    i128, i128::wrapping_abs;
}

macro_rules! floats {
    ($($t:ty),*) => { $(
        impl Ring for $t {
            const ZERO: $t = 0.0;
            fn add(self, other: $t) -> $t { self + other }
            fn subtract(self, other: $t) -> $t { self - other }
            fn multiply(self, other: $t) -> $t { self * other }
        }

        impl Number for $t {
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const HIGHEST: $t = <$t>::INFINITY;
            fn remainder(self, other: $t) -> $t { self % other }
            fn negate(self) -> $t { -self }
            fn abs(self) -> $t { <$t>::abs(self) }
            fn round(self) -> $t { <$t>::round(self) }
            fn ceil(self) -> $t { <$t>::ceil(self) }
            fn floor(self) -> $t { <$t>::floor(self) }
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
            fn is_infinite(self) -> bool { <$t>::is_infinite(self) }
        }

        impl Float for $t {
            fn divide(self, other: $t) -> $t { self / other }
        }
    )* };
}
floats!(f32, f64);

macro_rules! complex {
    ($($part:ty),*) => { $(
        impl Ring for Complex<$part> {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };

            fn add(self, other: Self) -> Self {
                Complex { re: self.re + other.re, im: self.im + other.im }
            }

            fn subtract(self, other: Self) -> Self {
                Complex { re: self.re - other.re, im: self.im - other.im }
            }

            /// Each product is rounded, and then their sum.
            fn multiply(self, other: Self) -> Self {
                Complex {
                    re: self.re * other.re - self.im * other.im,
                    im: self.re * other.im + self.im * other.re,
                }
            }
        }
    )* };
}
complex!(f32, f64);
