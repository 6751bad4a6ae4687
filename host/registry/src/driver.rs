//! Versions of Vulkan drivers: how vendors pack them into a number, and ranges of them as denials name them.

use nx_vulkan_abi::DeviceInfo;
use std::{cmp::Ordering, fmt};

/// Its driver packs versions in its own way.
const NVIDIA: u32 = 0x10de;

/// Bounds that a version must keep, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DriverRange(Vec<(Bound, Vec<u32>)>);

/// A sign, and how a version may compare with the number behind it.
type Bound = &'static (&'static str, &'static [Ordering]);

/// Longer signs first, so that `<=` is not read as `<`.
const BOUNDS: &[(&str, &[Ordering])] = &[
    ("<=", &[Ordering::Less, Ordering::Equal]),
    (">=", &[Ordering::Greater, Ordering::Equal]),
    ("<", &[Ordering::Less]),
    (">", &[Ordering::Greater]),
    ("=", &[Ordering::Equal]),
];

impl DriverRange {
    /// Reads `">=535, <550.54"`: a sign, then one to four numbers.
    pub(super) fn parse(text: &str) -> Result<DriverRange, String> {
        let bounds = text.split(',').map(|part| {
            let part = part.trim();
            let found = BOUNDS.iter().find(|(sign, _)| part.starts_with(sign));
            let bound = found.ok_or("expected a bound such as `<550.54` or `>=535, <550.54`")?;
            let numbers = part[bound.0.len()..].trim().split('.').map(|n| {
                let digits = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
                n.parse().ok().filter(|_| digits)
            });
            let version: Option<Vec<u32>> = numbers.collect();
            match version {
                Some(version) if version.len() <= 4 => Ok((bound, version)),
                _ => Err("a driver version is one to four numbers with dots between them"),
            }
        });
        let bounds: Result<Vec<_>, &str> = bounds.collect();
        bounds.map(DriverRange).map_err(str::to_owned)
    }

    /// Whether a driver lies within every bound. Numbers that a bound leaves out may be any, so `<=550` has 550.54.
    pub(super) fn matches(&self, device: &DeviceInfo<'_>) -> bool {
        let version = version(device.vendor, device.driver);
        self.0.iter().all(|(bound, limit)| {
            let own = &version[..limit.len()];
            bound.1.contains(&own.cmp(limit))
        })
    }
}

/// The numbers of a driver version. NVIDIA packs 10, 8, 8 and 6 bits; all others as VK_MAKE_API_VERSION does.
fn version(vendor: u32, packed: u32) -> [u32; 4] {
    match vendor {
        NVIDIA => [
            packed >> 22,
            packed >> 14 & 0xff,
            packed >> 6 & 0xff,
            packed & 0x3f,
        ],
        _ => [packed >> 22, packed >> 12 & 0x3ff, packed & 0xfff, 0],
    }
}

impl fmt::Display for DriverRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (bound, version)) in self.0.iter().enumerate() {
            let numbers: Vec<String> = version.iter().map(u32::to_string).collect();
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{}{}", bound.0, numbers.join("."))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::tests::device;

    #[test]
    fn versions_are_unpacked_by_vendor() {
        assert_eq!(
            version(NVIDIA, 550 << 22 | 54 << 14 | 15 << 6),
            [550, 54, 15, 0]
        );
        assert_eq!(version(0x10005, 25 << 22 | 7), [25, 0, 7, 0]);
    }

    #[test]
    fn ranges_compare_as_many_numbers_as_they_name() {
        let driver = DeviceInfo {
            vendor: NVIDIA,
            driver: 550 << 22 | 54 << 14 | 15 << 6,
            ..device()
        };
        for (range, matches) in [
            ("<550.54", false),
            ("<550.54.16", true),
            ("<=550", true),
            (">550", false),
            (">= 535, < 551", true),
            (">=535, <550", false),
            ("=550.54", true),
            ("=550.54.14.0", false),
        ] {
            let range = DriverRange::parse(range).unwrap();
            assert_eq!(range.matches(&driver), matches, "{range}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "550",
            "<",
            "<550.x",
            "<550.",
            "<1.2.3.4.5",
            "<+5",
            "<4294967296",
            "<1,",
        ] {
            assert!(DriverRange::parse(text).is_err(), "{text}");
        }
    }
}
