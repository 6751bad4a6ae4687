//! What kernels on matrix units need to know of a device.

use nx_vulkan_abi::{DeviceInfo, Features, Refusal};

/// Name of the fact with the bytes of the device's memory, and the part of it that one plan may have for itself.
const MEMORY: &str = "memory_bytes";
const PART: u64 = 8;

/// Declines where lanes do not hold the elements of fragments in the order that kernels which fill them themselves rely on.
///
/// Vulkan leaves that order open. The host measures it, and says by a feature that it is the one of `docs/abi.md`: that of
/// NVIDIA's own driver. Hosts before that feature say nothing, and there nothing is known.
///
/// # Errors
/// A decline.
pub fn expect_known_order(device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    if device.features.has(Features::COOPMAT_ORDER) {
        return Ok(());
    }
    Err(Refusal::decline(
        "the order of elements in fragments is not the one that is known, or was not measured",
    ))
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
    use crate::testing::{gpu, with_fact, without};

    #[test]
    fn the_order_is_known_where_the_host_has_measured_it() {
        assert_eq!(expect_known_order(&gpu()), Ok(()));
        let other = without(gpu(), Features::COOPMAT_ORDER);
        let refusal = expect_known_order(&other);
        assert!(matches!(refusal, Err(Refusal::Decline(why)) if why.contains("measured")));
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
