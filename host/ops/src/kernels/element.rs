//! Elements in memory and the registers they are computed in: loads, stores, conversions. No arithmetic.

pub(super) use super::small::{S2, S4, U2, U4};
use crate::element::{Element, no_float};
use crate::f8::{E4M3FN, E5M2};
use half::{bf16, f16};
use nx_vulkan_abi::DType;

/// Conversion as `as_type` defines it: integers wrap, floats round to nearest even or saturate.
pub(super) trait Cast<T> {
    fn cast(value: T) -> Self;
}

/// What elements of every type convert to. 16-bit floats arrive as f32.
pub(super) trait FromElement:
    Copy
    + Default
    + Cast<u8>
    + Cast<u16>
    + Cast<u32>
    + Cast<u64>
    + Cast<i8>
    + Cast<i16>
    + Cast<i32>
    + Cast<i64>
    + Cast<f32>
    + Cast<f64>
    + Cast<Complex<f32>>
    + Cast<Complex<f64>>
{
}

/// A type that results are computed in.
pub(super) trait Register: FromElement + PartialEq + Send + Sync + 'static {
    /// Writes `values` as elements of `dtype`: a type of the register's family that is not wider, its own where there is no choice.
    fn store(values: &[Self], dtype: DType, bytes: &mut [u8]);
}

macro_rules! casts {
    ($($to:ty),*; $from:tt) => { $(casts!(@one $to, $from);)* };
    (@one $to:ty, ($($from:ty),*)) => {
        $(impl Cast<$from> for $to {
            #[inline(always)]
            fn cast(value: $from) -> $to {
                value as $to
            }
        })*
        casts!(@parts $to, (f32, f64));
        impl FromElement for $to {}
    };
    (@parts $to:ty, ($($part:ty),*)) => { $(
        /// The real part.
        impl Cast<Complex<$part>> for $to {
            #[inline(always)]
            fn cast(value: Complex<$part>) -> $to {
                value.re as $to
            }
        }
    )* };
}
casts!(u8, u16, u32, u64, i8, i16, i32, i64, i128, f32, f64; (u8, u16, u32, u64, i8, i16, i32, i64, f32, f64));

macro_rules! integer_registers {
    ($($t:ty),*) => { $(impl Register for $t {
        fn store(values: &[$t], _dtype: DType, bytes: &mut [u8]) {
            put(values, bytes, <$t>::to_ne_bytes);
        }
    })* };
}
integer_registers!(u8, u16, u32, u64, i8, i16);

macro_rules! wide_integer_registers {
    ($($t:ty),*) => { $(impl Register for $t {
        /// Wraps to narrower types: sums, products and `dot` of all integer types are computed here.
        fn store(values: &[$t], dtype: DType, bytes: &mut [u8]) {
            match Element::of(dtype) {
                Ok(Element::U2) => put(values, bytes, |x| U2::cast(x).to_ne_bytes()),
                Ok(Element::U4) => put(values, bytes, |x| U4::cast(x).to_ne_bytes()),
                Ok(Element::S2) => put(values, bytes, |x| S2::cast(x).to_ne_bytes()),
                Ok(Element::S4) => put(values, bytes, |x| S4::cast(x).to_ne_bytes()),
                Ok(Element::U8 | Element::S8) => put(values, bytes, |x| (x as u8).to_ne_bytes()),
                Ok(Element::U16 | Element::S16) => put(values, bytes, |x| (x as u16).to_ne_bytes()),
                Ok(Element::U32 | Element::S32) => put(values, bytes, |x| (x as u32).to_ne_bytes()),
                Ok(Element::U64 | Element::S64) => put(values, bytes, |x| (x as u64).to_ne_bytes()),
                Ok(Element::F8 | Element::F8E4M3FN | Element::F16 | Element::BF16 | Element::F32 | Element::F64 | Element::C64 | Element::C128) | Err(_) => misfit(dtype),
            }
        }
    })* };
}
wide_integer_registers!(i32, i64, i128);

/// A result of a type that its register does not store: the kernels were chosen by that type, so there is none.
fn misfit(dtype: DType) {
    debug_assert!(false, "no register of {dtype}");
}

impl Register for f32 {
    fn store(values: &[f32], dtype: DType, bytes: &mut [u8]) {
        match Element::of(dtype) {
            Ok(Element::F8) => put(values, bytes, |x| E5M2.store(x.into())),
            Ok(Element::F8E4M3FN) => put(values, bytes, |x| E4M3FN.store(x.into())),
            Ok(Element::F16) => put(values, bytes, |x| f16::from_f32(x).to_ne_bytes()),
            Ok(Element::BF16) => put(values, bytes, |x| bf16::from_f32(x).to_ne_bytes()),
            Ok(Element::F32) => put(values, bytes, f32::to_ne_bytes),
            Ok(no_float!() | Element::F64) | Err(_) => misfit(dtype),
        }
    }
}

impl Register for f64 {
    fn store(values: &[f64], dtype: DType, bytes: &mut [u8]) {
        match Element::of(dtype) {
            Ok(Element::F8) => put(values, bytes, |x| E5M2.store(x)),
            Ok(Element::F8E4M3FN) => put(values, bytes, |x| E4M3FN.store(x)),
            Ok(Element::F16) => put(values, bytes, |x| {
                f16::from_f32(round_to_odd(x)).to_ne_bytes()
            }),
            Ok(Element::BF16) => put(values, bytes, |x| {
                bf16::from_f32(round_to_odd(x)).to_ne_bytes()
            }),
            Ok(Element::F32) => put(values, bytes, |x| (x as f32).to_ne_bytes()),
            Ok(Element::F64) => put(values, bytes, f64::to_ne_bytes),
            Ok(no_float!()) | Err(_) => misfit(dtype),
        }
    }
}

/// An f32 that rounds to a float of at most 16 bits as its source would have: inexact conversions to it round to odd
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Odd(f32);

macro_rules! odd_from_exact {
    ($($from:ty),*) => { $(impl Cast<$from> for Odd {
        fn cast(value: $from) -> Odd {
            Odd(round_to_odd(f64::from(value)))
        }
    })* };
}
odd_from_exact!(u8, u16, u32, i8, i16, i32, f32, f64);

impl Cast<u64> for Odd {
    fn cast(value: u64) -> Odd {
        Odd(round_to_odd(integer_to_odd(value)))
    }
}

impl Cast<i64> for Odd {
    fn cast(value: i64) -> Odd {
        let magnitude = integer_to_odd(value.unsigned_abs());
        Odd(round_to_odd(if value < 0 { -magnitude } else { magnitude }))
    }
}

impl<T> Cast<Complex<T>> for Odd
where
    Odd: Cast<T>,
{
    fn cast(value: Complex<T>) -> Odd {
        Odd::cast(value.re)
    }
}

impl FromElement for Odd {}

impl Odd {
    /// Writes `values` as elements of `dtype`, a float of at most 16 bits.
    pub(super) fn store(values: &[Odd], dtype: DType, bytes: &mut [u8]) {
        match Element::of(dtype) {
            Ok(Element::F8) => put(values, bytes, |x| E5M2.store(x.0.into())),
            Ok(Element::F8E4M3FN) => put(values, bytes, |x| E4M3FN.store(x.0.into())),
            Ok(Element::F16) => put(values, bytes, |x| f16::from_f32(x.0).to_ne_bytes()),
            Ok(Element::BF16) => put(values, bytes, |x| bf16::from_f32(x.0).to_ne_bytes()),
            Ok(no_float!() | Element::F32 | Element::F64) | Err(_) => misfit(dtype),
        }
    }
}

fn round_to_odd(exact: f64) -> f32 {
    let near = exact as f32;
    if f64::from(near) == exact || exact.is_nan() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(f64::from(near).abs() > exact.abs());
    f32::from_bits(toward_zero | 1)
}

/// 53 bits of the value, the lowest set when any bit below it was.
fn integer_to_odd(value: u64) -> f64 {
    if value >> 53 == 0 {
        return value as f64;
    }
    (((value >> 11) | u64::from(value & 0x7ff != 0)) << 11) as f64
}

fn put<const N: usize, T: Copy>(values: &[T], bytes: &mut [u8], to_bytes: impl Fn(T) -> [u8; N]) {
    for (cell, &value) in bytes.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *cell = to_bytes(value);
    }
}

/// A complex number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Complex<T> {
    pub(super) re: T,
    pub(super) im: T,
}

/// Whether an element is not 0, whatever its type.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Truth(pub(super) bool);

macro_rules! truths {
    ($($from:ty),*) => { $(impl Cast<$from> for Truth {
        #[inline(always)]
        fn cast(value: $from) -> Truth {
            Truth(value != <$from>::default())
        }
    })* };
}
truths!(
    u8,
    u16,
    u32,
    u64,
    i8,
    i16,
    i32,
    i64,
    f32,
    f64,
    Complex<f32>,
    Complex<f64>
);

impl FromElement for Truth {}

macro_rules! complex_registers {
    ($($part:ty),*; $from:tt) => { $(complex_registers!(@one $part, $from);)* };
    (@one $part:ty, ($($from:ty),*)) => {
        $(impl Cast<$from> for Complex<$part> {
            #[inline(always)]
            fn cast(value: $from) -> Complex<$part> {
                Complex { re: value as $part, im: 0.0 }
            }
        })*

        impl Complex<$part> {
            pub(super) fn scaled(self, by: $part) -> Complex<$part> {
                Complex { re: self.re * by, im: self.im * by }
            }
        }

        complex_registers!(@complex $part, (f32, f64));

        impl FromElement for Complex<$part> {}

        impl Register for Complex<$part> {
            /// Rounds each part to that of `dtype`.
            fn store(values: &[Self], dtype: DType, bytes: &mut [u8]) {
                match Element::of(dtype.part()) {
                    Ok(Element::F32) if dtype.is_complex() => put(values, bytes, |x| {
                        let parts = [x.re as f32, x.im as f32].map(f32::to_ne_bytes);
                        parts.as_flattened().try_into().unwrap_or([0; 8])
                    }),
                    Ok(Element::F64) if dtype.is_complex() => put(values, bytes, |x| {
                        let parts = [f64::from(x.re), f64::from(x.im)].map(f64::to_ne_bytes);
                        parts.as_flattened().try_into().unwrap_or([0; 16])
                    }),
                    Ok(_) | Err(_) => misfit(dtype),
                }
            }
        }
    };
    (@complex $part:ty, ($($from:ty),*)) => { $(
        impl Cast<Complex<$from>> for Complex<$part> {
            #[inline(always)]
            fn cast(value: Complex<$from>) -> Complex<$part> {
                Complex { re: value.re as $part, im: value.im as $part }
            }
        }
    )* };
}
complex_registers!(f32, f64; (u8, u16, u32, u64, i8, i16, i32, i64, f32, f64));

/// Runs `$body` with `$R` naming the register that elements of `$dtype` are computed in, if their class says yes.
macro_rules! by_class {
    ($integers:ident $floats:ident $complex:ident, $dtype:expr, $R:ident => $body:expr) => {{
        use $crate::{element::Element, kernels::element};
        match Element::of($dtype) {
            Ok(Element::U2) => element::arm!($integers, $dtype, $R = element::U2 => $body),
            Ok(Element::U4) => element::arm!($integers, $dtype, $R = element::U4 => $body),
            Ok(Element::S2) => element::arm!($integers, $dtype, $R = element::S2 => $body),
            Ok(Element::S4) => element::arm!($integers, $dtype, $R = element::S4 => $body),
            Ok(Element::U8) => element::arm!($integers, $dtype, $R = u8 => $body),
            Ok(Element::U16) => element::arm!($integers, $dtype, $R = u16 => $body),
            Ok(Element::U32) => element::arm!($integers, $dtype, $R = u32 => $body),
            Ok(Element::U64) => element::arm!($integers, $dtype, $R = u64 => $body),
            Ok(Element::S8) => element::arm!($integers, $dtype, $R = i8 => $body),
            Ok(Element::S16) => element::arm!($integers, $dtype, $R = i16 => $body),
            Ok(Element::S32) => element::arm!($integers, $dtype, $R = i32 => $body),
            Ok(Element::S64) => element::arm!($integers, $dtype, $R = i64 => $body),
            Ok(Element::F8 | Element::F8E4M3FN | Element::F16 | Element::BF16 | Element::F32) => {
                element::arm!($floats, $dtype, $R = f32 => $body)
            }
            Ok(Element::F64) => element::arm!($floats, $dtype, $R = f64 => $body),
            Ok(Element::C64) => element::arm!($complex, $dtype, $R = element::Complex<f32> => $body),
            Ok(Element::C128) => element::arm!($complex, $dtype, $R = element::Complex<f64> => $body),
            Err(why) => Err(why),
        }
    }};
}

macro_rules! arm {
    (yes, $dtype:expr, $R:ident = $register:ty => $body:expr) => {{
        type $R = $register;
        $body
    }};
    (no, $dtype:expr, $R:ident = $register:ty => $body:expr) => {
        Err(format!("it is not computed in {}", $dtype))
    };
}

/// As `by_class`, for real numbers.
macro_rules! by_register {
    ($dtype:expr, $R:ident => $body:expr) => {
        $crate::kernels::element::by_class!(yes yes no, $dtype, $R => $body)
    };
}

/// As `by_class`, for all numbers.
macro_rules! by_number {
    ($dtype:expr, $R:ident => $body:expr) => {
        $crate::kernels::element::by_class!(yes yes yes, $dtype, $R => $body)
    };
}

/// As `by_class`, for complex numbers only.
macro_rules! by_complex {
    ($dtype:expr, $R:ident => $body:expr) => {
        $crate::kernels::element::by_class!(no no yes, $dtype, $R => $body)
    };
}

/// As `by_class`, for floats only.
macro_rules! by_float {
    ($dtype:expr, $R:ident => $body:expr) => {
        $crate::kernels::element::by_class!(no yes no, $dtype, $R => $body)
    };
}

/// As `by_class`, for integers only.
macro_rules! by_integer {
    ($dtype:expr, $R:ident => $body:expr) => {
        $crate::kernels::element::by_class!(yes no no, $dtype, $R => $body)
    };
}

pub(super) use {arm, by_class, by_complex, by_float, by_integer, by_number, by_register};
