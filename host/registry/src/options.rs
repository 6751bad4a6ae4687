//! Where the registry and the packs are, as the application and the environment say.

use std::path::{Path, PathBuf};

/// Environment variable that names the registry file where the application names none, or one in mode dev.
pub const REGISTRY_VARIABLE: &str = "NX_VULKAN_REGISTRY";

/// Where the registry and the packs are.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The registry file that the application names; without any, built-in defaults (mode dev, fallback host).
    pub registry: Option<PathBuf>,
    /// The file that the environment names. It is read in place of `registry`, unless that is in mode locked.
    pub registry_override: Option<PathBuf>,
    /// Folders searched before those of the registry file.
    pub packs: Vec<PathBuf>,
    /// Folder for crash markers, the quarantine and notes, unless the registry file names one. Created where missing; an
    /// empty path is none.
    pub store: PathBuf,
    /// The `nxv` executable that tries packs in a process of its own: new ones in mode dev, and in either mode those that a
    /// process ended with. Without one they are not tried.
    pub prober: Option<PathBuf>,
    /// What the environment says. Mode locked takes none of it.
    pub environment: FromEnvironment,
}

/// What the environment says about packs, in mode dev.
#[derive(Debug, Clone, Default)]
pub struct FromEnvironment {
    /// Folders searched before all others.
    pub packs: Vec<PathBuf>,
    /// Takes the place of [`field@Options::store`].
    pub store: Option<PathBuf>,
    /// Takes the place of [`Options::prober`].
    pub prober: Option<PathBuf>,
}

impl Options {
    /// The folder of the store where the registry file names none.
    pub(super) fn store(&self, is_locked: bool) -> Option<&Path> {
        let from_environment = self.environment.store.as_deref().filter(|_| !is_locked);
        let store = from_environment.unwrap_or(&self.store);
        Some(store).filter(|store| *store != Path::new(""))
    }
}
