//! Requests for reductions.

use crate::{describe, plan};
use nx_vulkan_abi::DType;
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor};

/// A request to reduce `axes`; a pick without axes is one from all elements.
pub(super) fn ask(op: &str, dtype: DType, shape: &[u64], axes: &[i64]) -> Ask {
    let picks = op.starts_with("arg");
    let goes = |axis: &i64| axes.contains(axis) || picks && axes.is_empty();
    let kept = shape.iter().zip(0..).filter(|(_, axis)| !goes(axis));
    let kept: Vec<u64> = kept.map(|(extent, _)| *extent).collect();
    let result = match op {
        "all" | "any" => DType::U8,
        _ => dtype,
    };
    let (operand, result) = (Tensor::new(dtype, shape), Tensor::new(result, &kept));
    let ask = Pack { describe, plan }.ask(op, &[operand], &[result]);
    if picks {
        ask.ints("axis", axes).text("tie_break", "low")
    } else {
        ask.ints("axes", axes)
    }
}
