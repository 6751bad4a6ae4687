//! Whether the device makes progress: what tells a long queue from a lost device, and long commands from short ones.

use std::time::{Duration, Instant};

/// Commands after which an open command buffer is submitted, unless the last ones took long.
pub(super) const BATCH: u32 = 64;
/// The first batches of a device that draws the screen too: drivers of such give a command buffer some seconds.
const FIRST_OF_INTEGRATED: u32 = 8;
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
    pub(super) running: u64,
    /// For how long it has been seen to run. Never more than it has run.
    seen: Duration,
    /// Commands that fit into a batch.
    pub(super) batch: u32,
}

impl Clock {
    /// For a device of that kind.
    pub(super) fn new(now: Instant, kind: &str) -> Clock {
        Clock {
            looked: now,
            done: 0,
            running: 0,
            seen: Duration::ZERO,
            batch: match kind {
                "integrated" => FIRST_OF_INTEGRATED,
                _ => BATCH,
            },
        }
    }

    /// Notes a look: `done` is the number up to which all commands are done, `running` how many the batch has that is not.
    pub(super) fn note(&mut self, now: Instant, done: u64, running: u64) {
        let passed = now.saturating_duration_since(self.looked).min(LONGEST_LOOK);
        self.looked = now;
        if running > 0 && self.running > 0 && done == self.done {
            self.seen += passed;
            self.batch = self.batch.min(fitting(running, self.seen));
        } else {
            // Short commands say little of the next ones, so that a few of them do not make long batches.
            let came = u32::try_from(done.saturating_sub(self.done)).unwrap_or(u32::MAX);
            let grown = (2 * self.batch).max(came).min(BATCH);
            if self.running > 0 {
                self.batch = fitting(self.running, self.seen).min(grown);
            } else if done > self.done {
                self.batch = grown;
            }
            self.seen = Duration::ZERO;
        }
        (self.done, self.running) = (done, running);
    }

    /// How long the batch that runs may take, where it has taken longer.
    pub(super) fn overdue(&self, timeout: Duration) -> Option<Duration> {
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
        let mut clock = Clock::new(now, "discrete");
        let products = [(3, 2); 103];
        assert!(!watch(&mut clock, &mut now, &products));
        assert!(!watch(&mut clock, &mut now, &[(64, 64 * 5)]), "one batch");
        assert!(!watch(&mut clock, &mut now, &[(1, 119); 3]));
    }

    #[test]
    fn a_command_without_end_is_overdue() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now, "discrete");
        assert!(watch(&mut clock, &mut now, &[(2, 10), (1, 121)]));
        assert!(watch(&mut clock, &mut now, &[(2, 241)]));
    }

    #[test]
    fn time_that_nobody_looked_does_not_count() {
        let start = Instant::now();
        let mut clock = Clock::new(start, "discrete");
        clock.note(start, 0, 1);
        clock.note(start + 10 * TIMEOUT, 0, 1);
        assert_eq!(clock.overdue(TIMEOUT), None);
    }

    #[test]
    fn batches_shrink_while_commands_are_long_and_grow_again() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now, "discrete");
        watch(&mut clock, &mut now, &[(64, 32)]);
        assert_eq!(clock.batch, 2, "half a second each");
        watch(&mut clock, &mut now, &[(1, 5)]);
        assert_eq!(clock.batch, 1);
        clock.note(now, clock.done, 0);
        assert_eq!(clock.batch, 1, "nothing new is known");
        for grown in [2, 4, 8] {
            clock.note(now, clock.done, 1);
            clock.note(now, clock.done + 1, 0);
            assert_eq!(clock.batch, grown, "too short to be seen");
        }
        clock.note(now, clock.done + 3, 0);
        assert_eq!(clock.batch, 16, "not even seen to run");
        watch(&mut clock, &mut now, &[(1, 5)]);
        clock.note(now, clock.done + 200, 0);
        assert_eq!(clock.batch, BATCH, "many in a row");
    }

    #[test]
    fn a_short_command_does_not_undo_what_long_ones_taught() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now, "discrete");
        watch(&mut clock, &mut now, &[(64, 16)]);
        assert_eq!(clock.batch, 4, "a quarter of a second each");
        clock.note(now, clock.done + 1, 0);
        assert_eq!(clock.batch, 8);
        watch(&mut clock, &mut now, &[(8, 2)]);
        assert_eq!(clock.batch, 4);
    }

    #[test]
    fn what_draws_the_screen_too_begins_with_small_batches() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now, "integrated");
        assert_eq!(clock.batch, FIRST_OF_INTEGRATED);
        for _ in 0..3 {
            clock.note(now, clock.done + 1, 0);
            now += LONGEST_LOOK;
        }
        assert_eq!(clock.batch, BATCH);
    }
}
