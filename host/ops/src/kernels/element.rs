//! Elements in memory and the registers they are computed in: loads, stores, conversions. No arithmetic.

use half::{bf16, f16};
use nx_vulkan_abi::dtype::DType;

/// Conversion as `as_type` defines it: integers wrap, floats round to nearest even or saturate.
pub(super) trait Cast<T> {
    fn cast(value: T) -> Self;
}

/// What elements of every real type convert to. 16-bit floats arrive as f32.
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
{
}

/// A type that results are computed in.
pub(super) trait Register:
    FromElement + PartialEq + PartialOrd + Send + Sync + 'static
{
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
        impl FromElement for $to {}
    };
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
            match dtype.size() {
                1 => put(values, bytes, |x| (x as u8).to_ne_bytes()),
                2 => put(values, bytes, |x| (x as u16).to_ne_bytes()),
                4 => put(values, bytes, |x| (x as u32).to_ne_bytes()),
                _ => put(values, bytes, |x| (x as u64).to_ne_bytes()),
            }
        }
    })* };
}
wide_integer_registers!(i32, i64, i128);

impl Register for f32 {
    fn store(values: &[f32], dtype: DType, bytes: &mut [u8]) {
        match dtype {
            DType::F16 => put(values, bytes, |x| f16::from_f32(x).to_ne_bytes()),
            DType::BF16 => put(values, bytes, |x| bf16::from_f32(x).to_ne_bytes()),
            _ => put(values, bytes, f32::to_ne_bytes),
        }
    }
}

impl Register for f64 {
    fn store(values: &[f64], dtype: DType, bytes: &mut [u8]) {
        match dtype {
            DType::F16 => put(values, bytes, |x| {
                f16::from_f32(round_to_odd(x)).to_ne_bytes()
            }),
            DType::BF16 => put(values, bytes, |x| {
                bf16::from_f32(round_to_odd(x)).to_ne_bytes()
            }),
            DType::F32 => put(values, bytes, |x| (x as f32).to_ne_bytes()),
            _ => put(values, bytes, f64::to_ne_bytes),
        }
    }
}

/// An f32 that rounds to a 16-bit float as its source would have: inexact conversions to it round to odd
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

impl FromElement for Odd {}

impl Odd {
    /// Writes `values` as elements of `dtype`, f16 or bf16.
    pub(super) fn store(values: &[Odd], dtype: DType, bytes: &mut [u8]) {
        match dtype {
            DType::F16 => put(values, bytes, |x| f16::from_f32(x.0).to_ne_bytes()),
            _ => put(values, bytes, |x| bf16::from_f32(x.0).to_ne_bytes()),
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

/// Runs `$body` with `$R` naming the register that elements of `$dtype` are computed in.
macro_rules! by_register {
    ($dtype:expr, $R:ident => $body:expr) => {
        match $dtype {
            dtype if dtype.is_integer() => $crate::kernels::element::by_integer!(dtype, $R => $body),
            dtype => $crate::kernels::element::by_float!(dtype, $R => $body),
        }
    };
}

/// As `by_register`, for floats only.
macro_rules! by_float {
    ($dtype:expr, $R:ident => $body:expr) => {
        match $dtype {
            DType::F16 | DType::BF16 | DType::F32 => {
                type $R = f32;
                $body
            }
            DType::F64 => {
                type $R = f64;
                $body
            }
            dtype => Err(format!("the host does not compute with {dtype}")),
        }
    };
}

/// As `by_register`, for integers only.
macro_rules! by_integer {
    ($dtype:expr, $R:ident => $body:expr) => {
        match $dtype {
            DType::U8 => {
                type $R = u8;
                $body
            }
            DType::U16 => {
                type $R = u16;
                $body
            }
            DType::U32 => {
                type $R = u32;
                $body
            }
            DType::U64 => {
                type $R = u64;
                $body
            }
            DType::S8 => {
                type $R = i8;
                $body
            }
            DType::S16 => {
                type $R = i16;
                $body
            }
            DType::S32 => {
                type $R = i32;
                $body
            }
            DType::S64 => {
                type $R = i64;
                $body
            }
            dtype => Err(format!("the host does not compute with {dtype}")),
        }
    };
}

pub(super) use {by_float, by_integer, by_register};
