//! What is known of a vendor's devices, where Vulkan promises it of none.

use nx_vulkan_abi::{Define, DeviceInfo, glsl::define};

const NVIDIA: u32 = 0x10de;

/// `VK_DRIVER_ID_NVIDIA_PROPRIETARY`.
const NVIDIAS_OWN: i64 = 4;

/// Whether a device is NVIDIA's and runs by NVIDIA's own driver, whose compiler it was that was measured: NVK has another one.
pub fn is_nvidia(device: &DeviceInfo<'_>) -> bool {
    device.vendor == NVIDIA && device.fact("driver_id") == [NVIDIAS_OWN]
}

/// What the headers may use on a device: an `fma()` that rounds once, for the math headers, exact conversions of f16, and an `isnan()`
/// to rely on. Its own conversion to bf16 is not among them: on an H200 with driver 580.159.04 it cuts off what it should round, also
/// where a module asks for rounding to nearest.
pub fn defines(is_nvidia: bool, math: bool) -> Vec<Define> {
    let switches = [
        (math, "NXV_FUSED_FMA"),
        (true, "NXV_NATIVE_HALF"),
        (true, "NXV_NATIVE_NAN"),
    ];
    let on = switches
        .into_iter()
        .filter(|(is_on, _)| is_nvidia && *is_on);
    on.map(|(_, name)| define(name, "1")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gpu, with_fact};

    #[test]
    fn nvidias_devices_with_another_driver_have_another_compiler() {
        let of = |vendor, driver: &[i64]| {
            let device = DeviceInfo { vendor, ..gpu() };
            is_nvidia(&with_fact(device, "driver_id", driver))
        };
        assert!(of(NVIDIA, &[NVIDIAS_OWN]));
        // `VK_DRIVER_ID_MESA_NVK`.
        assert!(!of(NVIDIA, &[23]));
        assert!(!of(NVIDIA, &[]));
        assert!(!of(0x1002, &[NVIDIAS_OWN]));
    }
}
