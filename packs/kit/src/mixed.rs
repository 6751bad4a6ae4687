//! Operands of different types that no type of shaders holds both values of: which, and as what `mixed.glsl` takes them.

use nx_vulkan_abi::{DType, dtype::Class};

/// Whether a u64 meets a signed integer.
pub(crate) fn outgrow(types: &[DType]) -> bool {
    types.contains(&DType::U64) && types.iter().any(|dtype| dtype.is_signed())
}

/// Whether the merge of the types rounds what it compares.
pub(crate) fn is_ordered(types: &[DType]) -> bool {
    let widest = |of: fn(DType) -> bool| {
        let sizes = types.iter().filter(|dtype| of(**dtype));
        sizes.map(|dtype| dtype.size()).max()
    };
    // A complex number compares with a real one part by part.
    if types.iter().any(|dtype| dtype.is_complex()) {
        return types.iter().any(|dtype| !dtype.is_complex());
    }
    // A mantissa holds the integers of half the float's size, that of f32 those of 16 bits; 16-bit floats are computed in f32.
    let beside = |float: u64| if float == 8 { 4 } else { 2 };
    match (widest(DType::is_integer), widest(DType::is_float)) {
        (Some(integer), Some(float)) => integer > beside(float),
        _ => outgrow(types),
    }
}

/// The type in which the functions of `mixed.glsl` take an operand of type `dtype`.
pub(crate) fn comparand(dtype: DType, outgrown: bool) -> DType {
    let register = dtype.register();
    match dtype.class() {
        Some(Class::Float | Class::Complex) => register,
        Some(Class::Unsigned | Class::Signed) if outgrown && dtype != DType::U64 => DType::S64,
        Some(Class::Unsigned | Class::Signed) | None => dtype,
    }
}
