//! What a call takes of the turn that its process has on a scheduler: the VM counts a call as little unless it is told.

use rustler::{Env, schedule::consume_timeslice};
use std::time::Instant;

/// Microseconds of a hundredth of a turn, which is about a millisecond.
const HUNDREDTH: u128 = 10;

/// A call that does some work on a normal scheduler; as it is dropped, the VM is told how long that took.
pub(crate) struct Turn<'a> {
    env: Env<'a>,
    start: Instant,
}

impl Turn<'_> {
    pub(crate) fn begin(env: Env<'_>) -> Turn<'_> {
        Turn {
            env,
            start: Instant::now(),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let spent = self.start.elapsed().as_micros() / HUNDREDTH;
        if spent > 0 {
            // Whether anything is left of the turn is the VM's business.
            consume_timeslice(self.env, spent.min(100) as i32);
        }
    }
}
