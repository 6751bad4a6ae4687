//! The GLSL headers that every shader may `#include`, and the defines that tell a shader an operand's type.

use crate::{DType, Define, dtype::Glsl};
use abi_stable::std_types::RString;

/// Headers by the name under which shaders include them.
pub const HEADERS: &[(&str, &str)] = &[
    ("dtype.glsl", include_str!("../glsl/dtype.glsl")),
    ("tensor.glsl", include_str!("../glsl/tensor.glsl")),
    ("math_f32.glsl", include_str!("../glsl/math_f32.glsl")),
    ("math_narrow.glsl", include_str!("../glsl/math_narrow.glsl")),
    ("math_f64.glsl", include_str!("../glsl/math_f64.glsl")),
    ("gamma_f32.glsl", include_str!("../glsl/gamma_f32.glsl")),
    ("gamma_f64.glsl", include_str!("../glsl/gamma_f64.glsl")),
];

/// `(element in memory, element in registers)` of `dtype` in GLSL, or `None` for a type shaders do not compute with.
/// 8- and 16-bit integers are 32-bit in registers, f16 and bf16 are float.
pub fn types(dtype: DType) -> Option<(&'static str, &'static str)> {
    let glsl = of(dtype)?;
    Some((glsl.storage, of(glsl.register)?.storage))
}

/// How shaders see `dtype`, or `None` for a type they do not compute with.
pub fn of(dtype: DType) -> Option<&'static Glsl> {
    dtype.row()?.glsl.as_ref()
}

/// The GLSL type of `width` elements, 1, 2 or 4, whose type in memory is `storage`; `None` where there is none.
pub fn vector(storage: &'static str, width: u64) -> Option<&'static str> {
    let rows = DType::all().filter_map(of);
    let vectors = rows
        .filter(|glsl| glsl.storage == storage)
        .find_map(|glsl| glsl.vectors);
    match width {
        1 => Some(storage),
        2 => Some(vectors?[0]),
        4 => Some(vectors?[1]),
        _ => None,
    }
}

/// Defines for one operand called `name`: `{name}_STORAGE` (type in memory), `{name}_VALUE` (type in registers),
/// `{name}_LOAD(x)` (memory to register), `{name}_STORE(x)` (register to memory; integers wrap to their width)
/// and `{name}_IS_{TYPE}`, plus the `NXV_NEEDS_*` switches that `dtype.glsl` turns into extensions.
/// Empty for a type shaders do not compute with.
pub fn operand(name: &str, dtype: DType) -> Vec<Define> {
    let (Some(glsl), Some((storage, value))) = (of(dtype), types(dtype)) else {
        return Vec::new();
    };
    let mut defines = vec![
        define(format!("{name}_STORAGE"), storage),
        define(format!("{name}_VALUE"), value),
        define(format!("{name}_LOAD(x)"), format!("{}(x)", glsl.load)),
        define(format!("{name}_STORE(x)"), format!("{}(x)", glsl.store)),
        define(format!("{name}_IS_{}", dtype.name().to_uppercase()), "1"),
    ];
    defines.extend(needs(dtype));
    defines
}

/// The `NXV_NEEDS_*` switches for shaders that touch `dtype`.
pub fn needs(dtype: DType) -> Vec<Define> {
    let switch = of(dtype).and_then(|glsl| glsl.switch);
    switch
        .map(|switch| define(switch, "1"))
        .into_iter()
        .collect()
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
    fn every_type_that_is_computed_with_has_a_shader_form() {
        for dtype in DType::all() {
            let computed = DTypeSet::NUMBER.has(dtype);
            assert_eq!(types(dtype).is_some(), computed, "{dtype}");
            assert_eq!(operand("A", dtype).is_empty(), !computed, "{dtype}");
        }
    }
}
