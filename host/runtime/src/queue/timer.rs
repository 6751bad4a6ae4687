//! The timer of a queue: a thread that submits what was recorded and nobody waited for.

use super::Stream;
use crate::{Error, Kind, Result, exit};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How often the timer looks at an open command buffer.
const TICK: Duration = Duration::from_micros(60);
/// How often it looks whether the device makes progress, at most.
const LOOK: Duration = Duration::from_millis(10);
/// Ticks without work after which the timer sleeps until it is woken.
const QUIET_TICKS: u32 = 40;

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
    /// Starts the timer of `stream`.
    pub(super) fn start(stream: &Arc<Stream>) -> Result<()> {
        let weak = Arc::downgrade(stream);
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-timer".to_owned())
            .spawn(move || run_timer(&weak))
            .map_err(|e| {
                Error::new(
                    Kind::Io,
                    format!("the submission timer could not be started: {e}"),
                )
            })?;
        *stream.timer.thread.lock() = Some(thread);
        Ok(())
    }
}

impl Stream {
    /// Ends the timer's thread, so that nothing of the queue runs in the background any more; false when it is still
    /// inside the driver at `deadline`.
    pub(crate) fn stop_timer(&self, deadline: Instant) -> bool {
        self.timer.stop.store(true, Ordering::Release);
        self.timer.notify();
        let mut thread = self.timer.thread.lock();
        // The timer itself may drop the last handle of the stream.
        let own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        let stopped = |thread: &JoinHandle<()>| own(thread) || thread.is_finished();
        let stopped = exit::until(deadline, || thread.as_ref().is_none_or(stopped));
        if let Some(thread) = thread.take_if(|thread| stopped && !own(thread)) {
            // What a driver keeps for each thread goes with the thread, not with its function.
            drop(thread.join());
        }
        stopped
    }

    /// Submits an open command buffer if there is one. Returns whether the timer has to look again soon.
    fn tick(&self) -> bool {
        let Some(mut open) = self.open.try_lock() else {
            return true;
        };
        if open.commands == 0 {
            return false;
        }
        if let Err(error) = self.submit(&mut open) {
            open.failure.get_or_insert(error);
        }
        true
    }
}

fn run_timer(stream: &Weak<Stream>) {
    let mut quiet = 0;
    let mut looked = Instant::now();
    while let Some(stream) = stream.upgrade() {
        if stream.timer.stop.load(Ordering::Acquire) {
            return;
        }
        // Nobody else may be waiting for the device: what is stuck inside the driver relies on this look.
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if stream.look().is_err() {
                return;
            }
        }
        quiet = if stream.tick() { 0 } else { quiet + 1 };
        if quiet < QUIET_TICKS {
            drop(stream);
            std::thread::sleep(TICK);
        } else {
            (stream.when_quiet.0)();
            stream.timer.sleep();
            quiet = 0;
        }
    }
}

impl Timer {
    pub(super) fn notify(&self) {
        if self.sleeping.load(Ordering::Acquire) {
            let _guard = self.lock.lock();
            self.wake.notify_one();
        }
    }

    /// Sleeps until something is recorded. The time limit covers work recorded just before `sleeping` was set.
    fn sleep(&self) {
        let mut guard = self.lock.lock();
        self.sleeping.store(true, Ordering::Release);
        self.wake.wait_for(&mut guard, Duration::from_millis(100));
        self.sleeping.store(false, Ordering::Release);
    }
}
