//! The kernel pack NAME: `pack.toml` lists its ops, the files in `shaders/` run them, and `plan` brings the two together.
//!
//! A pack answers one question: how would you run this op on this device? It never touches the device itself.

mod largest;
mod map;
mod table;
#[cfg(test)]
mod tests;

use nx_vulkan_abi::{
    DType, Description, DeviceInfo, Features, InputAs, Numerics, Plan, Refusal, Request, Row,
    Source, TensorDesc, pack,
};
use table::{Family, TableRow};

pack! { id: "NAME", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

/// Invocations per workgroup: at least this many are allowed on every device. A power of two, for `largest.comp`.
const WORKGROUP: u64 = 128;

/// What the host asks once, after loading: the shaders, and one row for each kernel.
fn describe() -> Result<Description, String> {
    let kernel = |row: &TableRow| Row {
        id: row.op.clone(),
        op: row.op.clone(),
        inputs: row.types,
        outputs: row.types,
        numerics: Numerics::IEEE,
        rank: 100,
        ..Row::default()
    };
    Ok(Description {
        sources: vec![
            Source::glsl("map.comp", include_str!("../shaders/map.comp")),
            Source::glsl("largest.comp", include_str!("../shaders/largest.comp")),
        ],
        kernels: table::rows()?.iter().map(kernel).collect(),
    })
}

/// What the host asks once for each kind of request. It must be pure: the same request gives the same answer.
fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let rows = table::rows().map_err(Refusal::Internal)?;
    let row = rows
        .get(row as usize)
        .ok_or_else(|| Refusal::Internal(format!("pack.toml has no row {row}")))?;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    if inputs.len() != row.operands || outputs.len() != 1 {
        return Err(Refusal::BadRequest(format!(
            "{} takes {} operands and gives 1 result, got: {} and {}",
            row.op,
            row.operands,
            inputs.len(),
            outputs.len()
        )));
    }
    let result = &outputs[0];
    let needs = Features::for_dtype(result.dtype);
    if !row.types.has(result.dtype) || !request.device.features.has(needs) {
        return Err(Refusal::decline(format!(
            "{} of {} is not for this device",
            row.op, result.dtype
        )));
    }
    for tensor in inputs.iter().chain(outputs) {
        fits(tensor, request.device)?;
    }
    match row.family {
        Family::Map => map::plan(row, request),
        Family::Largest => largest::plan(request),
    }
}

/// Declines what 32-bit indices or one buffer argument cannot reach.
fn fits(tensor: &TensorDesc<'_>, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    let elements = tensor
        .shape
        .iter()
        .try_fold(1u64, |n, &extent| n.checked_mul(extent));
    let reachable = elements
        .and_then(|n| n.checked_add(tensor.offset))
        .is_some_and(|end| end <= u64::from(u32::MAX) / 2);
    if !reachable || tensor.storage_len > device.max_buffer_range {
        return Err(Refusal::decline(
            "the tensor is too large for 32-bit indices or one buffer argument",
        ));
    }
    Ok(())
}

/// Asks the host for the inputs that are not contiguous tensors of `dtype` already.
fn in_order(request: &Request<'_>, dtype: DType) -> Result<(), Refusal> {
    let wanted: Vec<InputAs> = (0..)
        .zip(request.inputs)
        .filter(|(_, input)| input.dtype != dtype || !input.is_contiguous())
        .map(|(index, _)| InputAs::new(index, dtype))
        .collect();
    if wanted.is_empty() {
        Ok(())
    } else {
        Err(Refusal::InputsAs(wanted))
    }
}

/// Workgroup counts for that many workgroups, over x and y; `nxv_workgroup()` numbers them in the shader.
fn spread(workgroups: u64, device: &DeviceInfo<'_>) -> Result<[u32; 3], Refusal> {
    let x = workgroups.clamp(1, u64::from(device.max_groups[0].max(1)));
    let y = workgroups.div_ceil(x);
    if y > u64::from(device.max_groups[1]) {
        return Err(Refusal::decline("the tensor is too large for one dispatch"));
    }
    Ok([x as u32, y as u32, 1])
}

/// Push constants: 32-bit words.
fn push(words: &[u64]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|&word| (word as u32).to_le_bytes())
        .collect()
}
