//! What the shader of a pass is told of types and stages.

use crate::roots::root;
use nx_vulkan_abi::{DType, Define, dtype::Glsl, glsl};

/// Types of the operand, of the result, and of what is computed with parts of type `part`. Without a type they are pairs of
/// such parts; without an operand there is nothing to load.
pub(crate) fn types(part: DType, from: Option<Option<DType>>, to: Option<DType>) -> Vec<Define> {
    let real = glsl::of(part).map_or("", |glsl| glsl.storage);
    let pair = glsl::vector(real, 2).unwrap_or("");
    let suffix = if part == DType::F64 { "LF" } else { "" };
    let literal = |x: f64| format!("{x:?}{suffix}");
    let mut defines = vec![
        glsl::define("REAL", real),
        glsl::define("PAIR", pair),
        glsl::define("HALF_ROOT", literal(std::f64::consts::FRAC_1_SQRT_2)),
    ];
    for odd in [3u64, 5, 7] {
        let list = |each: &dyn Fn([f64; 2]) -> f64| {
            let all = (0..odd).map(|k| literal(each(root(k, odd))));
            all.collect::<Vec<_>>().join(", ")
        };
        let (cosines, sines) = (list(&|[cos, _]| cos), list(&|[_, sin]| -sin));
        defines.push(glsl::define(format!("COSINES_{odd}"), cosines));
        defines.push(glsl::define(format!("SINES_{odd}"), sines));
    }
    if let Some(from) = from {
        let (storage, load) = match from.map(|dtype| (dtype, pairs(dtype))) {
            None => (pair, "x".to_owned()),
            Some((_, Some(pairs))) => (pairs, format!("{pair}(x)")),
            Some((dtype, None)) => {
                let (storage, load) = real_of(dtype, &mut defines, |glsl| glsl.load);
                (
                    storage,
                    format!("{pair}(nxv_to_{}({load}(x)), 0)", part.name()),
                )
            }
        };
        defines.push(glsl::define("T_STORAGE", storage));
        defines.push(glsl::define("LOAD(x)", load));
    }
    let (storage, store) = match to.map(|dtype| (dtype, pairs(dtype))) {
        None => (pair, "x".to_owned()),
        Some((_, Some(pairs))) => (pairs, format!("{pairs}(x)")),
        Some((dtype, None)) => {
            let (storage, store) = real_of(dtype, &mut defines, |glsl| glsl.store);
            (storage, format!("{store}(nxv_to_{}(x.x))", dtype.name()))
        }
    };
    defines.push(glsl::define("R_STORAGE", storage));
    defines.push(glsl::define("STORE(x)", store));
    defines.extend(glsl::needs(part));
    defines
}

/// An element in memory and the function that `of` picks, for a type that shaders compute with.
fn real_of(
    dtype: DType,
    defines: &mut Vec<Define>,
    of: impl Fn(&Glsl) -> &'static str,
) -> (&'static str, &'static str) {
    defines.extend(glsl::needs(dtype));
    glsl::of(dtype).map_or(("float", ""), |glsl| (glsl.storage, of(glsl)))
}

/// Pairs of a complex type in memory.
fn pairs(dtype: DType) -> Option<&'static str> {
    let complex = glsl::of(dtype).filter(|_| dtype.is_complex());
    complex.map(|glsl| glsl.storage)
}

/// Stages as the shader's macros.
pub(crate) fn stages(stages: &[u32]) -> String {
    let mut done = 1;
    let mut text = Vec::new();
    for (index, radix) in stages.iter().enumerate() {
        text.push(match index {
            0 if stages.len() == 1 => format!("ONLY({radix})"),
            0 => format!("FIRST({radix})"),
            _ if index + 1 == stages.len() => format!("FINAL({radix}, {done}u)"),
            _ => format!("MIDDLE({radix}, {done}u)"),
        });
        done *= radix;
    }
    text.join(" ")
}
