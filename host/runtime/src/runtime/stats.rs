//! What a runtime did so far, and what it holds.

use super::{ReplayStats, Runtime};
use crate::memory::{BudgetStats, KeptStats, Stats};
use std::sync::atomic::Ordering;

/// What a runtime did so far, and what it holds.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RuntimeStats {
    /// Tensor memory.
    pub memory: Stats,
    /// What all memory together may be, and is.
    pub budget: BudgetStats,
    /// Of tensor memory, what kernels made of operands and the runtime keeps with these.
    pub kept: KeptStats,
    /// Programs that are recorded once and replayed.
    pub replays: ReplayStats,
    /// Commands that were recorded and are not known to be done.
    pub ahead: u64,
    /// Compiled pipelines that are kept.
    pub pipelines: usize,
    /// Ops that the host's CPU kernels ran because no pack did.
    pub fallbacks: u64,
    /// Ops by `(op, pack/kernel)`.
    pub served: Vec<(String, String, u64)>,
    /// Requests whose plan is known.
    pub plans: usize,
    /// Submissions to the queue.
    pub submissions: u64,
    /// Why compiled shaders cannot be kept on disk, if so.
    pub cache_trouble: Option<String>,
}

impl Runtime {
    /// Notes the bytes of results that somebody else owns, who may not see how much they hold. Whether all of them together
    /// have come to another 64th of what may be taken from the driver.
    pub fn note_results(&self, bytes: u64) -> bool {
        self.made
            .add(bytes, self.tensors.budget().stats().limit / 64)
    }

    /// The kernels that failed since something was loaded, for reasons that last, and how: others stand in for them.
    pub fn failed(&self) -> Vec<String> {
        self.failures.lasting()
    }

    /// What was done so far, and what is held.
    pub fn stats(&self) -> RuntimeStats {
        let mut served: Vec<_> = self
            .served
            .lock()
            .iter()
            .map(|((op, by), n)| (op.clone(), by.clone(), *n))
            .collect();
        let current = self.current();
        let routes = &current.routes;
        for route in routes.values() {
            let (op, by, count) = route.tally();
            match served.iter_mut().find(|row| row.0 == op && row.1 == by) {
                Some(row) => row.2 += count,
                None => served.push((op.to_owned(), by.to_owned(), count)),
            }
        }
        served.retain(|row| row.2 > 0);
        served.sort();
        RuntimeStats {
            memory: self.tensors.stats(),
            budget: self.tensors.budget().stats(),
            kept: self.kept.stats(),
            replays: self.replays.stats(),
            ahead: self.stream.ahead(),
            pipelines: self.pipelines.len(),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            served,
            plans: routes.len(),
            submissions: self.stream.submissions(),
            cache_trouble: self.shaders.disk_trouble(),
        }
    }
}
