//! Integers of fewer than 8 bits: registers that hold no other values, so that arithmetic wraps at their own width.

use nx_vulkan_abi::DType;

use super::element::{Cast, Complex, FromElement, Register};
use super::number::{Integer, Number, Ring};

macro_rules! smalls {
    ($($name:ident: $byte:ty, $bits:literal; $from:tt)*) => { $(
        #[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
        pub(super) struct $name($byte);

        impl $name {
            const UNUSED: u32 = 8 - $bits;

            const fn wrap(byte: $byte) -> $name {
                $name(byte << Self::UNUSED >> Self::UNUSED)
            }

            pub(super) fn to_ne_bytes(self) -> [u8; 1] {
                self.0.to_ne_bytes()
            }
        }

        smalls!(@casts $name, $byte, $from);

        impl FromElement for $name {}

        impl Register for $name {
            fn store(values: &[$name], _dtype: DType, bytes: &mut [u8]) {
                bytes.iter_mut().zip(values).for_each(|(to, x)| *to = x.0 as u8);
            }
        }

        impl Ring for $name {
            const ZERO: $name = $name(0);
            fn add(self, other: $name) -> $name { $name::wrap(self.0.add(other.0)) }
            fn subtract(self, other: $name) -> $name { $name::wrap(self.0.subtract(other.0)) }
            fn multiply(self, other: $name) -> $name { $name::wrap(self.0.multiply(other.0)) }
        }

        impl Number for $name {
            const ONE: $name = $name(1);
            const LOWEST: $name = $name(<$byte>::MIN >> Self::UNUSED);
            const HIGHEST: $name = $name(<$byte>::MAX >> Self::UNUSED);
            fn remainder(self, other: $name) -> $name { $name::wrap(self.0.remainder(other.0)) }
            fn negate(self) -> $name { $name::wrap(self.0.negate()) }
            fn abs(self) -> $name { $name::wrap(Number::abs(self.0)) }
            fn round(self) -> $name { self }
            fn ceil(self) -> $name { self }
            fn floor(self) -> $name { self }
            fn is_nan(self) -> bool { false }
            fn is_infinite(self) -> bool { false }
        }

        // Shifts by at least the own width but less than a byte's leave nothing of it, or the sign, by themselves.
        impl Integer for $name {
            fn quotient(self, other: $name) -> $name { $name::wrap(self.0.quotient(other.0)) }
            fn power(self, exponent: $name) -> $name { $name::wrap(self.0.power(exponent.0)) }
            fn and(self, other: $name) -> $name { $name(self.0 & other.0) }
            fn or(self, other: $name) -> $name { $name(self.0 | other.0) }
            fn xor(self, other: $name) -> $name { $name(self.0 ^ other.0) }
            fn left_shift(self, amount: $name) -> $name { $name::wrap(self.0.left_shift(amount.0)) }
            fn right_shift(self, amount: $name) -> $name { $name(self.0.right_shift(amount.0)) }
            fn not(self) -> $name { $name::wrap(!self.0) }
            fn leading_zeros(self) -> $name {
                let used = (self.0 as u8) << Self::UNUSED;
                $name::wrap(used.leading_zeros().min($bits) as $byte)
            }
            fn population(self) -> $name {
                $name::wrap(((self.0 as u8) << Self::UNUSED).count_ones() as $byte)
            }
        }
    )* };
    (@casts $name:ident, $byte:ty, ($($from:ty),*)) => {
        $(impl Cast<$from> for $name {
            fn cast(value: $from) -> $name {
                $name::wrap(value as $byte)
            }
        })*
        smalls!(@floats $name, $byte, (f32, f64));
        /// The real part.
        impl<T> Cast<Complex<T>> for $name
        where
            $name: Cast<T>,
        {
            fn cast(value: Complex<T>) -> $name {
                $name::cast(value.re)
            }
        }
    };
    (@floats $name:ident, $byte:ty, ($($from:ty),*)) => { $(impl Cast<$from> for $name {
        fn cast(value: $from) -> $name {
            $name((value as $byte).clamp($name::LOWEST.0, $name::HIGHEST.0))
        }
    })* };
}
smalls! {
    U2: u8, 2; (u8, u16, u32, u64, i8, i16, i32, i64, i128)
    U4: u8, 4; (u8, u16, u32, u64, i8, i16, i32, i64, i128)
    S2: i8, 2; (u8, u16, u32, u64, i8, i16, i32, i64, i128)
    S4: i8, 4; (u8, u16, u32, u64, i8, i16, i32, i64, i128)
}
