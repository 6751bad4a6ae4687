//! What kernels on matrix units need to know of a device.

use nx_vulkan_abi::{DeviceInfo, Features, Refusal};

const NVIDIA: u32 = 0x10de;
/// Name of the fact with the `VkDriverId`, and that of NVIDIA's own driver.
const DRIVER: &str = "driver_id";
const NVIDIA_PROPRIETARY: i64 = 4;
/// Name of the fact with the bytes of the device's memory, and the part of it that one plan may have for itself.
const MEMORY: &str = "memory_bytes";
const PART: u64 = 8;

/// Declines where the order of elements in a fragment is not known.
///
/// Vulkan leaves it open which lane has which elements of a cooperative matrix, and kernels that fill fragments themselves rely
/// on it: g = lane / 4 and t = lane % 4 have elements 2t and 2t + 1 of row or column g, then those 8 further on, then the same
/// of g + 8. That is measured, with NVIDIA's driver 580, and says nothing of another driver for the same devices: Mesa's NVK
/// has the same vendor and another order. Devices before those with matrices of bf16 (compute capability 8.0) multiply in other
/// steps, and are not served either.
///
/// # Errors
/// A decline.
pub fn expect_known_order(device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    if device.vendor != NVIDIA || device.fact(DRIVER) != [NVIDIA_PROPRIETARY] {
        return Err(Refusal::decline(
            "the order of elements in fragments is known of NVIDIA's own driver only",
        ));
    }
    if !device.features.has(Features::COOPMAT_BF16) {
        return Err(Refusal::decline(
            "the order of elements in fragments is known of devices with matrices of bf16 only",
        ));
    }
    Ok(())
}

/// Bytes of the device's memory that one plan may have for packed operands and partial results: an eighth. No bound where the
/// device does not say how much it has.
pub fn memory(device: &DeviceInfo<'_>) -> u64 {
    match device.fact(MEMORY) {
        [bytes] => *bytes as u64 / PART,
        _ => u64::MAX,
    }
}

/// Declines what takes more than [`memory`].
///
/// # Errors
/// A decline that names the bytes.
pub fn expect_memory(bytes: u64, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    let most = memory(device);
    if bytes <= most {
        return Ok(());
    }
    Err(Refusal::decline(format!(
        "packed operands and partial results take {bytes} bytes, more than the {most} that are an eighth of the device's memory"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gpu, with_fact};

    #[test]
    fn the_order_is_known_of_one_driver() {
        let nvidia = DeviceInfo {
            vendor: NVIDIA,
            ..gpu()
        };
        assert_eq!(expect_known_order(&nvidia), Ok(()));
        let nvk = with_fact(nvidia, DRIVER, &[24]);
        let unsaid = with_fact(nvidia, DRIVER, &[]);
        for other in [gpu(), nvk, unsaid] {
            let refusal = expect_known_order(&other);
            assert!(matches!(refusal, Err(Refusal::Decline(why)) if why.contains("own driver")));
        }
        let older = DeviceInfo {
            features: Features(nvidia.features.0 & !Features::COOPMAT_BF16.0),
            ..nvidia
        };
        let refusal = expect_known_order(&older);
        assert!(matches!(refusal, Err(Refusal::Decline(why)) if why.contains("bf16")));
    }

    #[test]
    fn an_eighth_of_the_memory_is_the_bound() {
        let small = with_fact(gpu(), MEMORY, &[8 << 20]);
        assert_eq!(expect_memory(1 << 20, &small), Ok(()));
        let refusal = expect_memory((1 << 20) + 1, &small);
        assert!(matches!(refusal, Err(Refusal::Decline(why)) if why.contains("1048577 bytes")));
        assert_eq!(expect_memory(u64::MAX, &gpu()), Ok(()));
    }
}
