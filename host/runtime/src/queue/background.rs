//! What a queue does in the background: it submits what was recorded and nobody waited for, and looks whether the device
//! makes progress.

use super::Stream;
use crate::Result;
use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

/// How often the timer looks at an open command buffer.
const TICK: Duration = Duration::from_micros(60);
/// How often it looks whether the device makes progress, at most.
const LOOK: Duration = Duration::from_millis(10);
/// Ticks without work after which the timer sleeps until it is woken.
const QUIET_TICKS: u32 = 40;

impl Stream {
    pub(super) fn start_timer(self: &Arc<Self>) -> Result<()> {
        let weak = Arc::downgrade(self);
        self.timer.start(move || run_timer(&weak))
    }

    /// Ends the timer's thread, so that nothing of the queue runs in the background any more; false when it is still
    /// inside the driver at `deadline`.
    pub(crate) fn stop_timer(&self, deadline: Instant) -> bool {
        self.timer.stop(deadline)
    }

    /// Looks whether the device makes progress. To be called now and then while it works.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`], also when a command takes longer than the timeout.
    pub(super) fn look(&self) -> Result<()> {
        let done = self.completed()?;
        let mut clock = self.clock.lock();
        let running = match self.open.try_lock() {
            Some(open) => open.unfinished(done).next().map_or(0, |last| last - done),
            // Whoever holds it may be stuck inside the driver.
            None => clock.running,
        };
        clock.note(Instant::now(), done, running);
        self.batch.store(clock.batch, Ordering::Relaxed);
        if let Some(allowed) = clock.overdue(self.timeout) {
            let commands = match clock.running {
                1 => "a command".to_owned(),
                several => format!("a batch of {several} commands"),
            };
            let open = self.open.try_lock();
            let names = open.map(|open| open.names.between(done, done + clock.running));
            self.device.mark_lost(format!(
                "{commands}{} did not finish within {} s",
                names.unwrap_or_default(),
                allowed.as_secs_f32()
            ));
            return Err(self.device.lost_error());
        }
        Ok(())
    }

    /// Submits an open command buffer if there is one and nothing was recorded since the last command was `seen`: who
    /// records submits as well. Returns whether the timer has to look again soon.
    pub(super) fn tick(&self, seen: &mut u64) -> bool {
        let Some(mut open) = self.open.try_lock() else {
            return true;
        };
        if open.commands == 0 {
            return false;
        }
        if std::mem::replace(seen, open.sequence) != open.sequence {
            return true;
        }
        open.eager = 1;
        if let Err(error) = self.submit(&mut open) {
            open.failure.get_or_insert(error);
        }
        true
    }
}

fn run_timer(stream: &Weak<Stream>) {
    let mut quiet = 0;
    let mut seen = 0;
    let mut looked = Instant::now();
    let mut is_lost = false;
    while let Some(stream) = stream.upgrade() {
        if stream.timer.is_stopped() {
            return;
        }
        // Nobody else may be waiting for the device: what is stuck inside the driver relies on this look.
        if is_lost || looked.elapsed() >= LOOK {
            looked = Instant::now();
            is_lost = is_lost || stream.look().is_err() && stream.device.usable().is_err();
            if is_lost {
                // Nothing is left to submit, but what rests may still have to end.
                (stream.when_quiet.0)();
                stream.timer.sleep();
                continue;
            }
        }
        quiet = if stream.tick(&mut seen) { 0 } else { quiet + 1 };
        if quiet < QUIET_TICKS {
            drop(stream);
            std::thread::sleep(TICK);
        } else {
            (stream.when_quiet.0)();
            if stream.timer.sleep() {
                quiet = 0;
            }
        }
    }
}
