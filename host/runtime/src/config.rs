//! How a runtime is opened: which device, which packs, where caches lie.

use crate::device::DeviceChoice;
use nx_vulkan_registry::{PACKS_VARIABLE, REGISTRY_VARIABLE};
use std::{path::PathBuf, time::Duration};

/// Options of [`crate::Runtime::open`]. `Config::from_env()` is what the tool and the NIF start from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// Which device to open.
    pub device: DeviceChoice,
    /// The registry file that the application names; without any, built-in defaults.
    pub registry: Option<PathBuf>,
    /// The file that `$NX_VULKAN_REGISTRY` names. It is read in place of `registry`, unless that is in mode locked.
    pub registry_override: Option<PathBuf>,
    /// Folders with packs, searched before those of the registry file.
    pub packs: Vec<PathBuf>,
    /// Folder for compiled shaders, pipelines and private copies of packs; without one the user's cache folder.
    pub cache_dir: Option<PathBuf>,
    /// The `nxv` executable that tries new packs in a process of its own; without one they are not tried.
    pub prober: Option<PathBuf>,
    /// Whether to run under the Vulkan validation layers.
    pub validation: bool,
    /// Whether to watch files as the registry's `[dev]` says.
    pub watch: bool,
    /// Whether accesses of shaders through `tensor.glsl` are checked against the arrays' lengths. Every op then waits
    /// for its result.
    pub checked: bool,
    /// How long one batch of work may take before the device counts as lost.
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            device: DeviceChoice::Auto,
            registry: None,
            registry_override: None,
            packs: Vec::new(),
            cache_dir: None,
            prober: None,
            validation: false,
            watch: false,
            checked: false,
            timeout: Duration::from_secs(120),
        }
    }
}

impl Config {
    /// The defaults, with `$NX_VULKAN_DEVICE` (an index, a UUID or a part of the name), `$NX_VULKAN_REGISTRY` (a
    /// file), `$NX_VULKAN_PACKS` (a list of folders), `$NX_VULKAN_CACHE` (a folder), `$NX_VULKAN_PROBER` (a file; else
    /// this executable, where it is `nxv`), `$NX_VULKAN_VALIDATION` (`1`) and `$NX_VULKAN_CHECKED` (`1`) applied.
    pub fn from_env() -> Config {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Config {
            device: variable("NX_VULKAN_DEVICE").map_or(DeviceChoice::Auto, |value| {
                DeviceChoice::parse(&value.to_string_lossy())
            }),
            registry_override: variable(REGISTRY_VARIABLE).map(PathBuf::from),
            packs: variable(PACKS_VARIABLE)
                .map_or_else(Vec::new, |list| std::env::split_paths(&list).collect()),
            cache_dir: variable("NX_VULKAN_CACHE").map(PathBuf::from),
            prober: variable("NX_VULKAN_PROBER")
                .map(PathBuf::from)
                .or_else(own_executable),
            validation: variable("NX_VULKAN_VALIDATION").is_some_and(|value| value == "1"),
            checked: variable("NX_VULKAN_CHECKED").is_some_and(|value| value == "1"),
            ..Config::default()
        }
    }

    /// The cache folder in force; `None` where the machine has no home folder.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        let variable = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        self.cache_dir.clone().or_else(|| {
            variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".cache")))
                .map(|base| base.join("nx_vulkan"))
        })
    }

    /// Folder for private copies of packs, unless the registry file names one.
    pub fn store_dir(&self) -> PathBuf {
        self.cache_dir()
            .unwrap_or_else(|| std::env::temp_dir().join("nx_vulkan"))
            .join("packs")
    }
}

/// The running executable, where it is `nxv`.
fn own_executable() -> Option<PathBuf> {
    std::env::current_exe()
        .ok()
        .filter(|path| path.file_stem().is_some_and(|name| name == "nxv"))
}

impl DeviceChoice {
    /// Reads an index, a UUID of 32 hexadecimal digits, or a part of a name.
    pub fn parse(text: &str) -> DeviceChoice {
        let digits = text.replace('-', "");
        if let Ok(index) = text.parse() {
            DeviceChoice::Index(index)
        } else if digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            DeviceChoice::Uuid(digits)
        } else {
            DeviceChoice::Name(text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_choices_are_told_apart() {
        assert_eq!(DeviceChoice::parse("1"), DeviceChoice::Index(1));
        assert_eq!(
            DeviceChoice::parse("llvmpipe"),
            DeviceChoice::Name("llvmpipe".to_owned())
        );
        let uuid = "6d657361-3235-2e30-2e37-2d3200000000";
        assert_eq!(
            DeviceChoice::parse(uuid),
            DeviceChoice::Uuid(uuid.replace('-', ""))
        );
    }
}
