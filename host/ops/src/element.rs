//! The types that the CPU computes with, as a closed list: whoever computes with elements says what to do with each.

use crate::f8::{E4M3FN, E5M2};
use half::{bf16, f16};
use nx_vulkan_abi::DType;

/// A type that the CPU computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Unsigned integer of 2 bits.
    U2,
    /// Unsigned integer of 4 bits.
    U4,
    /// Unsigned integer of 8 bits.
    U8,
    /// Unsigned integer of 16 bits.
    U16,
    /// Unsigned integer of 32 bits.
    U32,
    /// Unsigned integer of 64 bits.
    U64,
    /// Signed integer of 2 bits.
    S2,
    /// Signed integer of 4 bits.
    S4,
    /// Signed integer of 8 bits.
    S8,
    /// Signed integer of 16 bits.
    S16,
    /// Signed integer of 32 bits.
    S32,
    /// Signed integer of 64 bits.
    S64,
    /// 8-bit float, E5M2.
    F8,
    /// 8-bit float, E4M3 without infinities.
    F8E4M3FN,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Complex of two binary32.
    C64,
    /// Complex of two binary64.
    C128,
}

const ALL: &[(DType, Element)] = &[
    (DType::U2, Element::U2),
    (DType::U4, Element::U4),
    (DType::U8, Element::U8),
    (DType::U16, Element::U16),
    (DType::U32, Element::U32),
    (DType::U64, Element::U64),
    (DType::S2, Element::S2),
    (DType::S4, Element::S4),
    (DType::S8, Element::S8),
    (DType::S16, Element::S16),
    (DType::S32, Element::S32),
    (DType::S64, Element::S64),
    (DType::F8, Element::F8),
    (DType::F8_E4M3FN, Element::F8E4M3FN),
    (DType::F16, Element::F16),
    (DType::BF16, Element::BF16),
    (DType::F32, Element::F32),
    (DType::F64, Element::F64),
    (DType::C64, Element::C64),
    (DType::C128, Element::C128),
];

impl Element {
    /// The element of that type.
    ///
    /// # Errors
    /// A sentence where the CPU does not compute with it.
    pub fn of(dtype: DType) -> Result<Element, String> {
        let row = ALL.iter().find(|row| row.0 == dtype);
        row.map(|row| row.1)
            .ok_or_else(|| format!("the host does not compute with {dtype}"))
    }
}

/// Every element but the floats.
macro_rules! no_float {
    () => {
        Element::U2
            | Element::U4
            | Element::U8
            | Element::U16
            | Element::U32
            | Element::U64
            | Element::S2
            | Element::S4
            | Element::S8
            | Element::S16
            | Element::S32
            | Element::S64
            | Element::C64
            | Element::C128
    };
}
pub(crate) use no_float;

/// Appends `value`, rounded to `dtype`, which is a float type.
pub fn push_float(dtype: DType, value: f64, bytes: &mut Vec<u8>) {
    match Element::of(dtype) {
        Ok(Element::F8) => bytes.extend(E5M2.store(value)),
        Ok(Element::F8E4M3FN) => bytes.extend(E4M3FN.store(value)),
        Ok(Element::F16) => bytes.extend(f16::from_f64(value).to_le_bytes()),
        Ok(Element::BF16) => bytes.extend(bf16::from_f64(value).to_le_bytes()),
        Ok(Element::F32) => bytes.extend((value as f32).to_le_bytes()),
        Ok(Element::F64) => bytes.extend(value.to_le_bytes()),
        Ok(no_float!()) | Err(_) => debug_assert!(false, "{dtype} is no float"),
    }
}

/// The value of an element of a float type; `None` for other types.
pub fn float(dtype: DType, element: &[u8]) -> Option<f64> {
    match Element::of(dtype) {
        Ok(Element::F8) => element.try_into().ok().map(|x| E5M2.load(x).into()),
        Ok(Element::F8E4M3FN) => element.try_into().ok().map(|x| E4M3FN.load(x).into()),
        Ok(Element::F16) => element
            .try_into()
            .ok()
            .map(|x| f16::from_le_bytes(x).to_f64()),
        Ok(Element::BF16) => element
            .try_into()
            .ok()
            .map(|x| bf16::from_le_bytes(x).to_f64()),
        Ok(Element::F32) => element
            .try_into()
            .ok()
            .map(|x| f32::from_le_bytes(x).into()),
        Ok(Element::F64) => element.try_into().ok().map(f64::from_le_bytes),
        Ok(no_float!()) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_abi::DTypeSet;

    #[test]
    fn the_cpu_computes_with_what_shaders_compute_with() {
        for dtype in DType::all() {
            let computed = DTypeSet::NUMBER.has(dtype);
            assert_eq!(Element::of(dtype).is_ok(), computed, "{dtype}");
        }
    }

    #[test]
    fn floats_are_read_as_they_were_written() {
        for dtype in DType::all().filter(|dtype| dtype.is_float()) {
            let mut bytes = Vec::new();
            push_float(dtype, -1.5, &mut bytes);
            assert_eq!(float(dtype, &bytes), Some(-1.5), "{dtype}");
        }
        assert_eq!(float(DType::S32, &[0; 4]), None);
    }
}
