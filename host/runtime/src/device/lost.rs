//! Devices that stopped working: who notices, what callers are told, and what is never destroyed then.

use super::Device;
use crate::{
    Error, Kind, Result,
    exit::{self, Inside},
};

impl Device {
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// From now on every call on the device fails, because of the first `why`.
    pub(crate) fn mark_lost(&self, why: impl Into<String>) {
        exit::cut_short();
        self.lost.get_or_init(|| why.into());
    }

    /// Fails when the device is lost or the process ends.
    pub(crate) fn usable(&self) -> Result<()> {
        if self.is_lost() {
            Err(self.lost_error())
        } else if exit::is_ending() {
            Err(exit::error())
        } else {
            Ok(())
        }
    }

    /// To be held while this thread is inside the driver; fails as [`Device::usable`] does.
    pub(crate) fn enter(&self) -> Result<Inside> {
        let inside = exit::enter().ok_or_else(exit::error)?;
        self.usable()?;
        Ok(inside)
    }

    /// As [`Device::enter`], to destroy something. Objects of a lost device are kept: a driver may wait for its work, or
    /// the work may still use them.
    pub(crate) fn enter_to_destroy(&self) -> Option<Inside> {
        exit::enter().filter(|_| !self.is_lost())
    }

    /// The error of a failed Vulkan call; remembers a lost device.
    pub(crate) fn failed(&self, what: &str, code: ash::vk::Result) -> Error {
        use ash::vk::Result as R;
        match code {
            R::ERROR_DEVICE_LOST => {
                self.mark_lost(format!("{what} says so"));
                self.lost_error()
            }
            R::ERROR_OUT_OF_DEVICE_MEMORY | R::ERROR_OUT_OF_HOST_MEMORY => Error::new(
                Kind::OutOfMemory,
                format!("{what}: {code:?} on {}", self.summary.name),
            ),
            _ => Error::new(
                Kind::Vulkan,
                format!("{what}: {code:?} on {}", self.summary.name),
            ),
        }
    }

    /// `Ok` for `VK_SUCCESS`, else [`Device::failed`].
    pub(crate) fn check(&self, what: &str, code: ash::vk::Result) -> Result<()> {
        match code {
            ash::vk::Result::SUCCESS => Ok(()),
            code => Err(self.failed(what, code)),
        }
    }

    pub(crate) fn lost_error(&self) -> Error {
        let why = self.lost.get().map_or("the driver failed", String::as_str);
        Error::new(
            Kind::DeviceLost,
            format!(
                "the device {} was lost: {why}; it stays lost until the process (the VM) starts anew, other devices work on",
                self.summary.name
            ),
        )
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        exit::join_finished();
        // vulkano would wait for the queue, and the driver for its threads.
        if self.enter_to_destroy().is_none() {
            std::mem::forget((self.vk.clone(), self.queue.clone()));
        }
    }
}
