//! Workgroups: how many invocations one may have, and how many of them cover the work.

use nx_vulkan_abi::{DeviceInfo, DeviceKind, Features, Refusal};
use std::ops::Range;

/// Multiply-adds of f32 that one dispatch has, at most: drivers end what takes seconds, and a display waits for it. The first is a
/// tenth of a second where a device does 700 GFLOP/s, the other a quarter of one at 2 TFLOP/s.
const TURN: u64 = 1 << 35;
const TURN_OF_DISCRETE: u64 = 1 << 38;
/// Dispatches, at most: a plan has 64, among them what comes before and after these.
const TURNS: u64 = 48;

/// The most invocations of a workgroup along x.
pub fn invocations(device: &DeviceInfo<'_>) -> u32 {
    let most = device.max_invocations.min(device.max_workgroup_size[0]);
    most.max(1)
}

/// Invocations of a workgroup along x: the largest power of two that the device takes, up to `most`.
pub fn threads(device: &DeviceInfo<'_>, most: u32) -> u32 {
    1 << invocations(device).min(most).max(1).ilog2()
}

/// Workgroups along x, as many as the device takes; the shader walks on from there.
pub fn along_x(groups: u64, device: &DeviceInfo<'_>) -> [u32; 3] {
    [groups.min(u64::from(device.max_groups[0])) as u32, 1, 1]
}

/// At least `groups` workgroups over x and y, with less than one row of y too many; `nxv_workgroup()` numbers them in the
/// shader.
///
/// # Errors
/// A decline where that is more than the device runs at once.
pub fn spread(groups: u64, device: &DeviceInfo<'_>) -> Result<[u32; 3], Refusal> {
    let [most_x, most_y, _] = device.max_groups.map(u64::from);
    let rows = groups.div_ceil(most_x.max(1));
    let columns = groups.div_ceil(rows.max(1));
    if rows > most_y || rows * columns > u64::from(u32::MAX) {
        return Err(Refusal::Decline(format!(
            "{groups} workgroups are more than the device runs at once"
        )));
    }
    Ok([columns as u32, rows as u32, 1])
}

/// Workgroups by the dispatches that run them, each of that many multiply-adds of numbers that take `bytes` in registers: more
/// than one dispatch where all would take a device too long. A CPU has nobody who waits.
pub fn turns(
    groups: u64,
    multiply_adds: u64,
    bytes: u64,
    device: &DeviceInfo<'_>,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let most = match device.kind {
        DeviceKind::CPU => u64::MAX,
        DeviceKind::DISCRETE => TURN_OF_DISCRETE,
        _ => TURN,
    };
    // A complex number has four products, and f64 takes most devices four times as long as f32, or longer.
    let work = multiply_adds.saturating_mul((bytes / 4).max(1).pow(2));
    let each = (most / work.max(1)).clamp(1, groups.max(1));
    let each = each.max(groups.div_ceil(TURNS));
    let first = (0..groups).step_by(each as usize);
    first.map(move |first| first..groups.min(first + each))
}

/// Whether the invocations of a workgroup are full subgroups of the device's size, and exchange values by shuffles.
pub fn has_full_subgroups(device: &DeviceInfo<'_>, workgroup: u64) -> bool {
    let needed = Features::SUBGROUP_SHUFFLE
        .with(Features::SUBGROUP_ARITHMETIC)
        .with(Features::SUBGROUP_SIZE_CONTROL);
    let size = u64::from(device.subgroup_size);
    device.features.has(needed) && size.is_power_of_two() && size <= workgroup
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> DeviceInfo<'static> {
        DeviceInfo {
            max_groups: [1000, 10, 1],
            max_invocations: 384,
            max_workgroup_size: [512; 3],
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn workgroups_cover_the_work_within_limits() {
        let spread = |groups| spread(groups, &device());
        assert_eq!(spread(0), Ok([0, 0, 1]));
        assert_eq!(spread(1000), Ok([1000, 1, 1]));
        assert_eq!(spread(1001), Ok([501, 2, 1]));
        for groups in 1..10_000 {
            let [x, y, _] = spread(groups).unwrap().map(u64::from);
            assert!(x <= 1000 && y <= 10 && x * y >= groups && x * y < groups + y);
        }
        assert!(matches!(spread(10_001), Err(Refusal::Decline(_))));
        assert_eq!(along_x(5, &device()), [5, 1, 1]);
        assert_eq!(along_x(u64::MAX, &device()), [1000, 1, 1]);
    }

    #[test]
    fn what_takes_long_is_several_dispatches() {
        let ranges = |kind, groups, each, bytes| {
            let device = DeviceInfo { kind, ..device() };
            Vec::from_iter(turns(groups, each, bytes, &device))
        };
        let each = 1 << 30;
        assert_eq!(ranges(DeviceKind::INTEGRATED, 32, each, 4).len(), 1);
        let turns = ranges(DeviceKind::INTEGRATED, 70, each, 4);
        assert_eq!(turns, [0..32, 32..64, 64..70]);
        let of_20 = |bytes| ranges(DeviceKind::INTEGRATED, 20, each, bytes).len();
        assert_eq!([1, 4, 8, 16].map(of_20), [1, 1, 3, 10]);
        assert_eq!(ranges(DeviceKind::DISCRETE, 256, each, 4).len(), 1);
        assert_eq!(ranges(DeviceKind::DISCRETE, 257, each, 4).len(), 2);
        assert_eq!(ranges(DeviceKind::CPU, 1 << 20, each, 4).len(), 1);
        assert_eq!(ranges(DeviceKind::OTHER, 2, u64::MAX, 4).len(), 2);
        let most = ranges(DeviceKind::OTHER, 1 << 30, u64::MAX, 4).len();
        assert_eq!(most as u64, TURNS);
        assert_eq!(ranges(DeviceKind::OTHER, 0, 0, 4), []);
    }

    #[test]
    fn workgroups_are_as_large_as_the_device_takes() {
        assert_eq!(invocations(&device()), 384);
        assert_eq!(threads(&device(), 1024), 256);
        assert_eq!(threads(&device(), 64), 64);
        let small = DeviceInfo {
            max_invocations: 3,
            ..device()
        };
        assert_eq!(threads(&small, 64), 2);
    }
}
