//! What a device takes of a request: types that it computes with, operands in order, and what one buffer argument reaches.

use nx_vulkan_abi::{DType, DeviceInfo, Features, InputAs, Refusal, Request};

/// Declines what needs more than the device has to compute with `dtype`.
///
/// # Errors
/// A decline that names what is missing.
pub fn supports(what: &str, dtype: DType, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    let missing = Features::for_dtype(dtype).0 & !device.features.0;
    if missing == 0 {
        return Ok(());
    }
    let names = Features(missing).names().join(" and ");
    Err(Refusal::decline(format!("{what} on {dtype} needs {names}")))
}

/// The GLSL type that holds any element of `size` bytes, and the dtype that needs the same device features.
pub fn raw_type(size: u64) -> (&'static str, DType) {
    match size {
        1 => ("uint8_t", DType::U8),
        2 => ("uint16_t", DType::U16),
        4 => ("uint", DType::U32),
        8 => ("uvec2", DType::U32),
        _ => ("uvec4", DType::U32),
    }
}

/// Asks the host for the operands that are not contiguous tensors of `dtype` already.
///
/// # Errors
/// [`Refusal::InputsAs`] where there are any.
pub fn in_order(request: &Request<'_>, dtype: DType) -> Result<(), Refusal> {
    let inputs = request.inputs.iter().zip(0..);
    let wanted = inputs.filter(|(input, _)| input.dtype != dtype || !input.is_contiguous());
    let wanted: Vec<InputAs> = wanted
        .map(|(_, index)| InputAs::new(index, dtype))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    Err(Refusal::InputsAs(wanted))
}

/// Declines tensors that 32-bit indices or one buffer argument cannot reach.
///
/// # Errors
/// A decline.
pub fn within_reach(request: &Request<'_>) -> Result<(), Refusal> {
    for tensor in request.inputs.iter().chain(request.outputs) {
        let mut shape = tensor.shape.iter();
        let elements = shape.try_fold(1u64, |n, &extent| n.checked_mul(extent));
        let end = elements.and_then(|n| n.checked_add(tensor.offset));
        if end.is_none_or(|end| end > u64::from(u32::MAX) / 2)
            || tensor.storage_len > request.device.max_buffer_range
        {
            return Err(Refusal::decline(
                "a tensor is too large for 32-bit indices or one buffer argument",
            ));
        }
    }
    Ok(())
}
