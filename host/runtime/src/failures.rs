//! How often kernels failed: what fails again and again is asked no more.

use nx_vulkan_registry::{KernelEntry, LoadedPack};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long a kernel is not asked that failed often for reasons of the moment; twice as long each time it fails again.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest of these times is `PATIENCE` times two to the power of this.
const MOST_DOUBLED: u32 = 6;

/// Failures by the content of a pack and the id of its kernel.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, Failed>>);

#[derive(Debug, Default)]
struct Failed {
    lasting: u32,
    passing: u32,
    /// When it failed for a reason of the moment the last time.
    last: Option<Instant>,
}

/// Whether a kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    Asked,
    /// Not for a while.
    Rests,
    /// Not until something is reloaded.
    GivenUp,
}

impl Failures {
    /// Whether the kernel is asked, where `limit` failures are too many; none are for 0.
    pub(crate) fn standing(&self, pack: &LoadedPack, kernel: &KernelEntry, limit: u32) -> Standing {
        let all = self.0.lock();
        let Some(failed) = all.get(&key(pack, kernel)).filter(|_| limit > 0) else {
            return Standing::Asked;
        };
        failed.standing(limit, Instant::now())
    }

    /// Counts a failure, for a reason of the moment or another one.
    pub(crate) fn add(&self, pack: &LoadedPack, kernel: &KernelEntry, is_passing: bool) {
        let mut all = self.0.lock();
        all.entry(key(pack, kernel))
            .or_default()
            .add(is_passing, Instant::now());
    }

    /// Forgets everything: something was replaced, and what failed before may work now.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl Failed {
    fn add(&mut self, is_passing: bool, now: Instant) {
        if is_passing {
            self.passing = self.passing.saturating_add(1);
            self.last = Some(now);
        } else {
            self.lasting = self.lasting.saturating_add(1);
        }
    }

    fn standing(&self, limit: u32, now: Instant) -> Standing {
        if self.lasting >= limit {
            return Standing::GivenUp;
        }
        let over = self.passing.checked_sub(limit);
        let rests = over.zip(self.last).is_some_and(|(over, last)| {
            let patience = PATIENCE * (1 << over.min(MOST_DOUBLED));
            now.saturating_duration_since(last) < patience
        });
        match rests {
            true => Standing::Rests,
            false => Standing::Asked,
        }
    }
}

fn key(pack: &LoadedPack, kernel: &KernelEntry) -> String {
    format!("{}/{}", pack.sha256, kernel.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_moment_are_forgiven_after_ever_longer_times() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut failed = Failed::default();
        failed.add(true, start);
        failed.add(true, start);
        assert_eq!(failed.standing(3, start), Standing::Asked);
        failed.add(true, start);
        assert_eq!(failed.standing(3, after(59)), Standing::Rests);
        assert_eq!(failed.standing(3, after(60)), Standing::Asked);
        failed.add(true, after(60));
        assert_eq!(failed.standing(3, after(179)), Standing::Rests);
        assert_eq!(failed.standing(3, after(180)), Standing::Asked);
        for _ in 0..1000 {
            failed.add(true, after(180));
        }
        assert_eq!(failed.standing(3, after(180 + 3839)), Standing::Rests);
        assert_eq!(failed.standing(3, after(180 + 3840)), Standing::Asked);
    }

    #[test]
    fn other_failures_last() {
        let start = Instant::now();
        let mut failed = Failed::default();
        failed.add(true, start);
        failed.add(false, start);
        failed.add(false, start);
        assert_eq!(failed.standing(3, start), Standing::Asked);
        failed.add(false, start);
        let later = start + Duration::from_secs(1 << 20);
        assert_eq!(failed.standing(3, later), Standing::GivenUp);
    }
}
