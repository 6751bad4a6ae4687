//! Whether a device has room for a plan's scratch buffers. How much is free just now is not asked.

use super::refusal::{beyond, invalid};
use crate::Result;
use nx_vulkan_abi::{DeviceInfo, Plan, plan::MAX_SCRATCH_BYTES};

pub(super) fn scratch(plan: &Plan, limits: &DeviceInfo<'_>) -> Result<()> {
    let sizes = plan.scratch.as_slice();
    let sum = sizes
        .iter()
        .try_fold(0u64, |sum, &len| sum.checked_add(len));
    let sum = sum.filter(|&sum| sum <= MAX_SCRATCH_BYTES && !sizes.contains(&0));
    let sum = sum.ok_or_else(|| invalid(format!("scratch sizes {sizes:?}")))?;
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let rows = [
        ("scratch buffers of", sum, "memory_bytes", "has"),
        (
            "a scratch buffer of",
            largest,
            "max_allocation",
            "allocates at most",
        ),
    ];
    for (what, bytes, fact, verb) in rows {
        let most = limits.fact(fact).first().map(|&most| most.unsigned_abs());
        if let Some(most) = most.filter(|&most| bytes > most) {
            return Err(beyond(format!(
                "{what} {bytes} bytes, and the device {verb} {most}"
            )));
        }
    }
    Ok(())
}
