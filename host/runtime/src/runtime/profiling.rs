//! Profiles: what the device runs from one moment to another, and how long each of it takes.

use super::Runtime;
use crate::{Result, profile::Profile};
use std::sync::Arc;

/// A profile that is on. It ends with this value.
#[derive(Debug)]
pub struct Profiling {
    runtime: Arc<Runtime>,
}

impl Runtime {
    /// Waits for all recorded work, and has what is recorded from now on profiled, whoever calls for it. Nothing is known of what
    /// the host computes. Programs that were recorded once are recorded in each run meanwhile.
    ///
    /// # Errors
    /// Bad input where a profile is on; [`Kind::Unsupported`](crate::Kind::Unsupported) where the device has no clock;
    /// [`Kind::DeviceLost`](crate::Kind::DeviceLost).
    pub fn begin_profile(self: &Arc<Runtime>) -> Result<Profiling> {
        self.sync()?;
        self.stream.begin_stamps()?;
        Ok(Profiling {
            runtime: self.clone(),
        })
    }
}

impl Profiling {
    /// Waits for all recorded work, as [`Runtime::sync`] does, and says what it was.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`](crate::Kind::DeviceLost).
    pub fn end(self) -> Result<Profile> {
        self.runtime.settle_last();
        self.runtime.stream.end_stamps()
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        self.runtime.stream.forget_stamps();
    }
}
