//! What a runtime gives back, while it lives and when it goes.

use super::Runtime;
use crate::Result;
use std::time::{Duration, Instant};

/// How long the end of a runtime waits for a thread of its own that is inside a driver.
const STOPPING: Duration = Duration::from_secs(1);

impl Runtime {
    /// Ends the runtime's own threads and child processes, for a process that is about to exit: work that nobody waits for is then no longer
    /// submitted.
    pub fn stop_threads(&self) {
        self.stop();
    }

    /// The same; false where the queue's own is still at work.
    fn stop(&self) -> bool {
        self.builder.stop();
        if let Some(watch) = self.watch.get() {
            watch.stop();
        }
        self.stream.stop_timer(Instant::now() + STOPPING)
    }

    /// Gives unused memory back to the driver.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn trim(&self) -> Result<()> {
        self.forget_routes(&mut self.current.write());
        self.give_back()
    }

    /// The same of all but what plans take.
    pub(super) fn give_back(&self) -> Result<()> {
        self.constants.lock().clear();
        self.replays.forget(false);
        self.kept.clear();
        self.stream.wait(self.stream.sequence())?;
        let done = self.stream.completed()?;
        [&self.tensors, &self.literals, &self.readback, &self.upload]
            .iter()
            .for_each(|pool| pool.trim(done));
        Ok(())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.stop() {
            return;
        }
        // Its thread holds the queue, which then does not wait for its work before memory goes.
        match self.stream.try_sequence() {
            Some(last) => drop(self.stream.wait(last)),
            None => self
                .device
                .mark_lost("its queue is inside the driver as the device is closed"),
        }
    }
}
