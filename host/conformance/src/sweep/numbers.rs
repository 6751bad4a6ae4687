//! Elements of any type as numbers of f64.

use nx_vulkan_abi::DType;
use nx_vulkan_ops::element::float;

/// An element that is not complex.
pub(super) fn number(dtype: DType, element: &[u8]) -> f64 {
    float(dtype, element).unwrap_or_else(|| integer(dtype, element))
}

/// The absolute values as f64, those of complex numbers too.
pub(super) fn magnitudes(dtype: DType, base: &[u8]) -> Vec<u8> {
    let part = dtype.part();
    let magnitude = |element: &[u8]| {
        let parts = element.chunks_exact(part.size() as usize);
        // A part that is not a number says nothing of the other.
        let parts = parts.map(|element| number(part, element).abs());
        parts.reduce(|a, b| match (a.is_nan(), b.is_nan()) {
            (true, _) => b,
            (_, true) => a,
            (false, false) => a.hypot(b),
        })
    };
    base.chunks_exact(dtype.size() as usize)
        .flat_map(|element| magnitude(element).unwrap_or(0.0).to_le_bytes())
        .collect()
}

/// The largest finite magnitude among numbers of that type.
pub(super) fn largest(part: DType, bytes: &[u8]) -> f64 {
    let parts = bytes.chunks_exact(part.size() as usize);
    let magnitudes = parts
        .filter_map(|element| float(part, element))
        .map(f64::abs);
    let finite = magnitudes.filter(|magnitude| magnitude.is_finite());
    finite.fold(0.0, f64::max)
}

fn integer(dtype: DType, element: &[u8]) -> f64 {
    let unused = 64 - 8 * element.len() as u32;
    let bits = word(element) << unused;
    if dtype.is_signed() {
        (bits as i64 >> unused) as f64
    } else {
        (bits >> unused) as f64
    }
}

fn word(element: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..element.len()].copy_from_slice(element);
    u64::from_le_bytes(word)
}
