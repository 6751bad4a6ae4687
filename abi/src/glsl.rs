//! The GLSL headers that every shader may `#include`, and the defines that tell a shader an operand's type.

use crate::{DType, Define};
use abi_stable::std_types::RString;

/// Headers by the name under which shaders include them.
pub const HEADERS: &[(&str, &str)] = &[
    ("dtype.glsl", include_str!("../glsl/dtype.glsl")),
    ("tensor.glsl", include_str!("../glsl/tensor.glsl")),
    ("math_f32.glsl", include_str!("../glsl/math_f32.glsl")),
    ("math_f64.glsl", include_str!("../glsl/math_f64.glsl")),
    ("gamma_f32.glsl", include_str!("../glsl/gamma_f32.glsl")),
    ("gamma_f64.glsl", include_str!("../glsl/gamma_f64.glsl")),
];

/// How shaders see a type: GLSL type in memory, GLSL type in registers, load and store conversion, cast suffix.
const TYPES: &[(DType, &str, &str, &str, &str)] = &[
    (DType::U8, "uint8_t", "uint", "uint", "uint8_t"),
    (DType::U16, "uint16_t", "uint", "uint", "uint16_t"),
    (DType::U32, "uint", "uint", "", ""),
    (DType::U64, "uint64_t", "uint64_t", "", ""),
    (DType::S8, "int8_t", "int", "int", "int8_t"),
    (DType::S16, "int16_t", "int", "int", "int16_t"),
    (DType::S32, "int", "int", "", ""),
    (DType::S64, "int64_t", "int64_t", "", ""),
    (
        DType::F16,
        "uint16_t",
        "float",
        "nxv_load_f16",
        "nxv_store_f16",
    ),
    (
        DType::BF16,
        "uint16_t",
        "float",
        "nxv_load_bf16",
        "nxv_store_bf16",
    ),
    (DType::F32, "float", "float", "", ""),
    (DType::F64, "double", "double", "", ""),
];

/// `(element in memory, element in registers)` of `dtype` in GLSL, or `None` for a type shaders do not compute with.
/// 8- and 16-bit integers are 32-bit in registers, f16 and bf16 are float.
pub fn types(dtype: DType) -> Option<(&'static str, &'static str)> {
    TYPES
        .iter()
        .find(|row| row.0 == dtype)
        .map(|row| (row.1, row.2))
}

/// Defines for one operand called `name`: `{name}_STORAGE` (type in memory), `{name}_VALUE` (type in registers),
/// `{name}_LOAD(x)` (memory to register), `{name}_STORE(x)` (register to memory; integers wrap to their width)
/// and `{name}_IS_{TYPE}`, plus the `NXV_NEEDS_*` switches that `dtype.glsl` turns into extensions.
/// Empty for a type shaders do not compute with.
pub fn operand(name: &str, dtype: DType) -> Vec<Define> {
    let Some((_, storage, value, load, store)) = TYPES.iter().find(|row| row.0 == dtype) else {
        return Vec::new();
    };
    let mut defines = vec![
        define(format!("{name}_STORAGE"), *storage),
        define(format!("{name}_VALUE"), *value),
        define(format!("{name}_LOAD(x)"), format!("{load}(x)")),
        define(format!("{name}_STORE(x)"), format!("{store}(x)")),
        define(format!("{name}_IS_{}", dtype.name().to_uppercase()), "1"),
    ];
    defines.extend(needs(dtype));
    defines
}

/// The `NXV_NEEDS_*` switches for shaders that touch `dtype`.
pub fn needs(dtype: DType) -> Vec<Define> {
    let switch = match dtype {
        DType::U8 | DType::S8 => "NXV_NEEDS_INT8",
        DType::U16 | DType::S16 | DType::F16 | DType::BF16 => "NXV_NEEDS_INT16",
        DType::U64 | DType::S64 => "NXV_NEEDS_INT64",
        DType::F64 => "NXV_NEEDS_FP64",
        _ => return Vec::new(),
    };
    vec![define(switch, "1")]
}

/// A define.
pub fn define(name: impl Into<String>, value: impl Into<String>) -> Define {
    Define {
        name: RString::from(name.into()),
        value: RString::from(value.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DTypeSet;

    #[test]
    fn every_real_type_has_a_shader_form() {
        for dtype in DType::all() {
            assert_eq!(types(dtype).is_some(), DTypeSet::REAL.has(dtype), "{dtype}");
            assert_eq!(
                operand("A", dtype).is_empty(),
                !DTypeSet::REAL.has(dtype),
                "{dtype}"
            );
        }
    }
}
