//! Operands and results in which some elements are others, where a device may compute with those.

use super::Case;
use nx_vulkan_abi::DType;
use nx_vulkan_host::Tensor;
use nx_vulkan_ops::element::{float, push_float};

/// The operands with denormals replaced by zeros; nothing where there are none.
pub(super) fn without_denormals(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
) -> Option<Vec<Vec<u8>>> {
    let result = case.outputs[0].0.part();
    let computed = |dtype: DType| if result.is_float() { result } else { dtype };
    let mut changed = false;
    let mut replace = |(base, view): (&Vec<u8>, &Tensor)| {
        let dtype = view.dtype().part();
        let wide = dtype == DType::F64 && computed(dtype) == DType::F64;
        let smallest = if wide {
            f64::MIN_POSITIVE
        } else {
            f32::MIN_POSITIVE.into()
        };
        let mut bytes = Vec::with_capacity(base.len());
        for element in base.chunks_exact(dtype.size() as usize) {
            match float(dtype, element) {
                Some(value) if value != 0.0 && value.abs() < smallest => {
                    changed = true;
                    push_float(dtype, 0f64.copysign(value), &mut bytes);
                }
                _ => bytes.extend_from_slice(element),
            }
        }
        bytes
    };
    let replaced = bases.iter().zip(views).map(&mut replace).collect();
    changed.then_some(replaced)
}

/// The operands with 1 in place of every finite factor but 0, where there are infinite ones. In another order than the
/// host's a product may meet infinity before it underflows to 0, and is then infinite and not NaN.
pub(super) fn signs_of_finite_factors(bases: &[Vec<u8>], views: &[Tensor]) -> Option<Vec<Vec<u8>>> {
    let mut infinite = false;
    let mut replace = |(base, view): (&Vec<u8>, &Tensor)| {
        let dtype = view.dtype().part();
        let mut bytes = Vec::with_capacity(base.len());
        for element in base.chunks_exact(dtype.size() as usize) {
            match float(dtype, element) {
                Some(value) if value.is_finite() && value != 0.0 => {
                    push_float(dtype, value.signum(), &mut bytes);
                }
                value => {
                    infinite |= value.is_some_and(f64::is_infinite);
                    bytes.extend_from_slice(element);
                }
            }
        }
        bytes
    };
    let replaced = bases.iter().zip(views).map(&mut replace).collect();
    infinite.then_some(replaced)
}

/// The result with the other sign of what is infinite, where no operand is: the parts of a complex number are known to a part of its
/// magnitude, and where that overflows a part may have either sign.
pub(super) fn opposite_overflows(
    dtype: DType,
    bytes: &[u8],
    bases: &[Vec<u8>],
    views: &[Tensor],
) -> Option<Vec<u8>> {
    let finite = |(base, view): (&Vec<u8>, &Tensor)| {
        let part = view.dtype().part();
        let mut parts = base.chunks_exact(part.size() as usize);
        parts.all(|element| float(part, element).is_none_or(f64::is_finite))
    };
    if !bases.iter().zip(views).all(finite) {
        return None;
    }
    let part = dtype.part();
    let mut other = Vec::with_capacity(bytes.len());
    for element in bytes.chunks_exact(part.size() as usize) {
        match float(part, element) {
            Some(value) if value.is_infinite() => push_float(part, -value, &mut other),
            _ => other.extend_from_slice(element),
        }
    }
    Some(other)
}
