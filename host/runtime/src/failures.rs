//! How often kernels failed: what fails again and again is asked no more.

use nx_vulkan_registry::{KernelEntry, LoadedPack};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Failures by the content of a pack and the id of its kernel.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// How often the kernel failed.
    pub(crate) fn of(&self, pack: &LoadedPack, kernel: &KernelEntry) -> u32 {
        self.0.lock().get(&key(pack, kernel)).copied().unwrap_or(0)
    }

    /// Counts a failure; how often the kernel failed with it.
    pub(crate) fn add(&self, pack: &LoadedPack, kernel: &KernelEntry) -> u32 {
        let mut counts = self.0.lock();
        let count = counts.entry(key(pack, kernel)).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Forgets everything: something was replaced, and what failed before may work now.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

fn key(pack: &LoadedPack, kernel: &KernelEntry) -> String {
    format!("{}/{}", pack.sha256, kernel.id)
}
