//! The driver's cache of compiled pipelines, as callers of the runtime see it.

use super::Runtime;
use crate::Result;
use nx_vulkan_registry::hex;
use std::path::PathBuf;

impl Runtime {
    /// Gives pipelines back to the driver that nobody can use any more, where there are many.
    pub(super) fn sweep_pipelines(&self) {
        self.pipelines
            .forget_spare(|| self.stream.sequence(), self.stream.completed_hint());
    }

    /// The file that keeps it. Its name has the device's UUID and a hash of the driver's version.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] without a cache folder.
    pub fn pipeline_cache_file(&self) -> Result<PathBuf> {
        self.pipelines.cache().file()
    }

    /// What the driver calls data that it can read: `pipelineCacheUUID` in hexadecimal.
    pub fn pipeline_cache_uuid(&self) -> String {
        hex(&self.device.pipeline_cache_uuid())
    }

    /// Writes the file now. The runtime does so too, when it has nothing to do and pipelines were made.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when it cannot be written; [`crate::Kind::DeviceLost`].
    pub fn persist_pipelines(&self) -> Result<()> {
        self.pipelines.cache().persist()
    }

    /// Adds what the file has, which was done when the runtime opened. No file is no error.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when it cannot be read, is damaged, or comes from another device or driver.
    pub fn load_pipelines(&self) -> Result<()> {
        self.pipelines.cache().load()
    }

    /// Removes the file. No file is no error.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when it cannot be removed.
    pub fn clear_pipelines(&self) -> Result<()> {
        self.pipelines.cache().clear()
    }
}
