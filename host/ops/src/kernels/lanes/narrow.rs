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
    match dtype {
        DType::BF16 => narrow_bf16(from, to),
        _ => narrow_f16(from, to),
    }
}

/// By the machine's instructions, eight at a time; the last ones one by one.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Cell, Short};
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    const EIGHT: usize = 8;

    pub(super) fn are_here() -> bool {
        is_x86_feature_detected!("f16c") && is_x86_feature_detected!("avx")
    }

    /// How many elements were widened.
    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen(from: &[Short], to: &mut [Cell]) -> usize {
        let (from, to) = (from.as_chunks::<EIGHT>().0, to.as_chunks_mut::<EIGHT>().0);
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: both are arrays of eight elements, which may lie at any address.
            unsafe {
                let halves = _mm_loadu_si128(from.as_ptr().cast());
                _mm256_storeu_ps(to.as_mut_ptr().cast(), _mm256_cvtph_ps(halves));
            }
        }
        EIGHT * from.len().min(to.len())
    }

    /// How many elements were narrowed.
    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow(from: &[Cell], to: &mut [Short]) -> usize {
        let (from, to) = (from.as_chunks::<EIGHT>().0, to.as_chunks_mut::<EIGHT>().0);
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: both are arrays of eight elements, which may lie at any address.
            unsafe {
                let floats = _mm256_loadu_ps(from.as_ptr().cast());
                let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(floats);
                _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
            }
        }
        EIGHT * from.len().min(to.len())
    }
}

fn widen_f16(from: &[Short], to: &mut [Cell]) {
    #[cfg(target_arch = "x86_64")]
    if x86::are_here() {
        // SAFETY: the machine has these instructions.
        let done = unsafe { x86::widen(from, to) };
        return widen_any(&from[done..], &mut to[done..]);
    }
    widen_any(from, to);
}

fn narrow_f16(from: &[Cell], to: &mut [Short]) {
    #[cfg(target_arch = "x86_64")]
    if x86::are_here() {
        // SAFETY: the machine has these instructions.
        let done = unsafe { x86::narrow(from, to) };
        return narrow_any(&from[done..], &mut to[done..]);
    }
    narrow_any(from, to);
}

/// The bits of a number, of a NaN that says nothing, as the machine's own conversions make them.
#[inline(always)]
fn quiet(bits: u32) -> u32 {
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    bits | u32::from(is_nan) << 22
}

fn narrow_any(from: &[Cell], to: &mut [Short]) {
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
    fn widen_any(from: &[Short], to: &mut [Cell]) {
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
            *to = quiet(wide | (bits & 0x8000) << 16).to_ne_bytes();
        }
    }

    fn widen_bf16(from: &[Short], to: &mut [Cell]) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = quiet(u32::from(u16::from_ne_bytes(*x)) << 16).to_ne_bytes();
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

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    /// Numbers of all sizes and signs, some of each.
    fn numbers(step: usize) -> Vec<Cell> {
        let special = [
            0,
            1,
            0x7f_ffff,
            0x80_0000,
            0x3f80_0000,
            0x3f80_0001,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7fc0_0000,
        ];
        let special = special.into_iter().flat_map(|bits| [bits, bits | 1 << 31]);
        let spread = (0..=u32::MAX).step_by(step);
        special.chain(spread).map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn floats_of_16_bits_become_f32_and_are_rounded_as_one_by_one() {
        let shorts: Vec<Short> = (0..=u16::MAX).map(u16::to_ne_bytes).collect();
        let cells = numbers(4099);
        for dtype in [DType::F16, DType::BF16] {
            let mut wide = vec![Cell::default(); shorts.len()];
            widen(dtype, &shorts, &mut wide);
            let mut narrowed = vec![Short::default(); cells.len()];
            narrow(dtype, &cells, &mut narrowed);
            let is_same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
            for (x, got) in shorts.iter().zip(wide) {
                let want = match dtype {
                    DType::F16 => f16::from_ne_bytes(*x).to_f32(),
                    _ => bf16::from_ne_bytes(*x).to_f32(),
                };
                assert_eq!(u32::from_ne_bytes(got), want.to_bits(), "{dtype} {x:?}");
            }
            for (x, got) in cells.iter().zip(narrowed) {
                let x = f32::from_ne_bytes(*x);
                let (got, want) = match dtype {
                    DType::F16 => (f16::from_ne_bytes(got).to_f32(), f16::from_f32(x).to_f32()),
                    _ => (
                        bf16::from_ne_bytes(got).to_f32(),
                        bf16::from_f32(x).to_f32(),
                    ),
                };
                assert!(is_same(got, want), "{x:e} as {dtype}: {got:e}");
            }
        }
    }
}
