//! The timer of a queue: a thread that sleeps while there is nothing to do.

use crate::{Error, Kind, Result, exit};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Work for the timer's thread while nothing is being recorded.
pub(crate) struct Quiet(pub(crate) Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Quiet")
    }
}

#[derive(Debug, Default)]
pub(super) struct Timer {
    sleeping: AtomicBool,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Timer {
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-timer".to_owned())
            .spawn(work)
            .map_err(|e| {
                Error::new(
                    Kind::Io,
                    format!("the submission timer could not be started: {e}"),
                )
            })?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Ends the thread; false when it is still at work at `deadline`.
    pub(super) fn stop(&self, deadline: Instant) -> bool {
        self.stop.store(true, Ordering::Release);
        self.notify();
        let mut thread = self.thread.lock();
        // The thread itself may drop the last handle of the stream.
        let own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        let stopped = |thread: &JoinHandle<()>| own(thread) || thread.is_finished();
        let stopped = exit::until(deadline, || thread.as_ref().is_none_or(stopped));
        if let Some(thread) = thread.take_if(|thread| stopped && !own(thread)) {
            // What a driver keeps for each thread goes with the thread, not with its function.
            drop(thread.join());
        }
        stopped
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn notify(&self) {
        if self.sleeping.load(Ordering::Acquire) {
            let _guard = self.lock.lock();
            self.wake.notify_one();
        }
    }

    /// Sleeps until something is recorded, and says whether it is. The time limit covers work recorded just before `sleeping` was set.
    pub(super) fn sleep(&self) -> bool {
        let mut guard = self.lock.lock();
        self.sleeping.store(true, Ordering::Release);
        let waited = self.wake.wait_for(&mut guard, Duration::from_millis(100));
        self.sleeping.store(false, Ordering::Release);
        !waited.timed_out()
    }
}
