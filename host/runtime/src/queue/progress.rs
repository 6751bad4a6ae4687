//! Whether the device makes progress: what tells a long queue from a lost device, and long commands from short ones.

use super::{BATCH, Stream};
use crate::Result;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How long a batch of commands should take at most, where they can be told to take long.
const LONG: Duration = Duration::from_secs(1);
/// No more than this passes between two looks: a process that was stopped does not hold it against the device.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// What the looks at the queue saw.
#[derive(Debug)]
pub(super) struct Clock {
    looked: Instant,
    done: u64,
    /// Commands of the batch that runs; 0 when none does.
    running: u64,
    /// For how long it has been seen to run. Never more than it has run.
    seen: Duration,
    /// Commands that fit into a batch.
    batch: u32,
}

impl Clock {
    pub(super) fn new(now: Instant) -> Clock {
        Clock {
            looked: now,
            done: 0,
            running: 0,
            seen: Duration::ZERO,
            batch: BATCH,
        }
    }

    /// Notes a look: `done` is the number up to which all commands are done, `running` how many the batch has that is not.
    fn note(&mut self, now: Instant, done: u64, running: u64) {
        let passed = now.saturating_duration_since(self.looked).min(LONGEST_LOOK);
        self.looked = now;
        if running > 0 && self.running > 0 && done == self.done {
            self.seen += passed;
            self.batch = self.batch.min(fitting(running, self.seen));
        } else {
            if self.running > 0 {
                self.batch = fitting(self.running, self.seen);
            }
            self.seen = Duration::ZERO;
        }
        (self.done, self.running) = (done, running);
    }

    /// How long the batch that runs may take, where it has taken longer.
    fn overdue(&self, timeout: Duration) -> Option<Duration> {
        // The timeline moves once per batch, and each of its commands may take so long.
        let commands = u32::try_from(self.running).unwrap_or(u32::MAX);
        let allowed = timeout.saturating_mul(commands);
        (self.running > 0 && self.seen >= allowed).then_some(allowed)
    }
}

/// How many commands a batch may have, when so many took so long.
fn fitting(commands: u64, took: Duration) -> u32 {
    let fits = (LONG.as_nanos() * u128::from(commands)).checked_div(took.as_nanos());
    fits.map_or(BATCH, |fits| fits.clamp(1, BATCH.into()) as u32)
}

impl Stream {
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
            self.device.mark_lost(format!(
                "{commands} did not finish within {} s",
                allowed.as_secs_f32()
            ));
            return Err(self.device.lost_error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(120);

    /// Looks every 50 ms for as long as each batch of `(commands, seconds)` takes; whether one was overdue.
    fn watch(clock: &mut Clock, now: &mut Instant, batches: &[(u64, u64)]) -> bool {
        let mut done = clock.done;
        let mut overdue = false;
        for &(commands, seconds) in batches {
            for _ in 0..seconds * 20 {
                clock.note(*now, done, commands);
                overdue |= clock.overdue(TIMEOUT).is_some();
                *now += Duration::from_millis(50);
            }
            done += commands;
        }
        clock.note(*now, done, 0);
        overdue
    }

    #[test]
    fn a_queue_that_advances_is_never_overdue() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now);
        let products = [(3, 2); 103];
        assert!(!watch(&mut clock, &mut now, &products));
        assert!(!watch(&mut clock, &mut now, &[(64, 64 * 5)]), "one batch");
        assert!(!watch(&mut clock, &mut now, &[(1, 119); 3]));
    }

    #[test]
    fn a_command_without_end_is_overdue() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now);
        assert!(watch(&mut clock, &mut now, &[(2, 10), (1, 121)]));
        assert!(watch(&mut clock, &mut now, &[(2, 241)]));
    }

    #[test]
    fn time_that_nobody_looked_does_not_count() {
        let start = Instant::now();
        let mut clock = Clock::new(start);
        clock.note(start, 0, 1);
        clock.note(start + 10 * TIMEOUT, 0, 1);
        assert_eq!(clock.overdue(TIMEOUT), None);
    }

    #[test]
    fn batches_shrink_while_commands_are_long_and_grow_again() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now);
        watch(&mut clock, &mut now, &[(64, 32)]);
        assert_eq!(clock.batch, 2, "half a second each");
        watch(&mut clock, &mut now, &[(1, 5)]);
        assert_eq!(clock.batch, 1);
        clock.note(now, clock.done, 1);
        clock.note(now, clock.done + 1, 0);
        assert_eq!(clock.batch, BATCH, "too short to be seen");
    }
}
