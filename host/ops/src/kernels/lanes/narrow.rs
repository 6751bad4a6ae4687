//! Floats of 16 bits as f32 and back, by the instructions that convert many.

use super::{Cell, widest};
use half::{f16, slice::HalfFloatSliceExt};
use nx_vulkan_abi::DType;

/// An element of two bytes in memory, at any alignment.
pub(crate) type Short = [u8; 2];

/// Elements that are converted at a time.
const STEP: usize = 64;

/// Whether it is a float of 16 bits.
pub(crate) fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The f32 that elements of `dtype`, a float of 16 bits, are.
pub(crate) fn widen(dtype: DType, from: &[Short], to: &mut [Cell]) {
    match dtype {
        DType::BF16 => widen_bf16(from, to),
        _ => widen_f16(from, to),
    }
}

/// The elements of `dtype`, a float of 16 bits, that are nearest, of two the even one.
pub(crate) fn narrow(dtype: DType, from: &[Cell], to: &mut [Short]) {
    if dtype == DType::BF16 {
        return narrow_bf16(from, to);
    }
    for (from, to) in from.chunks(STEP).zip(to.chunks_mut(STEP)) {
        let (mut floats, mut halves) = ([0f32; STEP], [f16::ZERO; STEP]);
        for (float, x) in floats.iter_mut().zip(from) {
            *float = f32::from_ne_bytes(*x);
        }
        halves.convert_from_f32_slice(&floats);
        for (to, x) in to.iter_mut().zip(halves) {
            *to = x.to_ne_bytes();
        }
    }
}

widest! {
    fn widen_f16(from: &[Short], to: &mut [Cell]) {
        /// By how much the exponents of f32 are higher.
        const BIAS: u32 = 127 - 15;
        /// 2^-14, where the denormal numbers end.
        const NORMAL: u32 = (BIAS + 1) << 23;
        for (to, x) in to.iter_mut().zip(from) {
            let bits = u32::from(u16::from_ne_bytes(*x));
            let size = (bits & 0x7fff) << 13;
            let denormal = f32::from_bits(size + NORMAL) - f32::from_bits(NORMAL);
            let more = if size >= 31 << 23 { 2 * BIAS } else { BIAS };
            let is_denormal = size < 1 << 23;
            let wide = if is_denormal { denormal.to_bits() } else { size + (more << 23) };
            *to = (wide | (bits & 0x8000) << 16).to_ne_bytes();
        }
    }

    fn widen_bf16(from: &[Short], to: &mut [Cell]) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = (u32::from(u16::from_ne_bytes(*x)) << 16).to_ne_bytes();
        }
    }

    fn narrow_bf16(from: &[Cell], to: &mut [Short]) {
        for (to, x) in to.iter_mut().zip(from) {
            let bits = u32::from_ne_bytes(*x);
            let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
            let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
            let upper = if is_nan { bits >> 16 | 0x40 } else { nearest };
            *to = (upper as u16).to_ne_bytes();
        }
    }
}
