//! How often kernels failed: what fails again and again is asked no more.

use crate::Error;
use nx_vulkan_registry::{KernelEntry, LoadedPack};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long a kernel is not asked that failed often for reasons of the moment; twice as long each time it fails again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Failures of the moment within such a time are one.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The longest of these times is `PATIENCE` times two to the power of this.
const MOST_DOUBLED: u32 = 6;

/// Failures by the content of a pack and the id of its kernel.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, Failed>>);

#[derive(Debug)]
struct Failed {
    lasting: u32,
    /// The kernel, and how it failed the last time for a reason that lasts.
    why: Option<String>,
    /// In a row: long after the last one they count anew.
    passing: u32,
    /// When it failed for a reason of the moment the last time.
    last: Option<Instant>,
    /// How long it rests after that.
    patience: Duration,
}

impl Default for Failed {
    fn default() -> Failed {
        Failed {
            lasting: 0,
            why: None,
            passing: 0,
            last: None,
            patience: PATIENCE,
        }
    }
}

/// Whether a kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    Asked,
    /// Not until then.
    Rests(Instant),
    /// Not until something is reloaded.
    GivenUp,
}

impl Failures {
    /// Whether the kernel is asked, where `limit` failures are too many; none are for 0.
    pub(crate) fn standing(&self, pack: &LoadedPack, kernel: &KernelEntry, limit: u32) -> Standing {
        let mut all = self.0.lock();
        match all.get_mut(&key(pack, kernel)) {
            Some(failed) if limit > 0 => failed.standing(limit, Instant::now()),
            _ => Standing::Asked,
        }
    }

    /// Counts a failure, for a reason of the moment or another one.
    pub(crate) fn add(&self, pack: &LoadedPack, kernel: &KernelEntry, error: &Error) {
        let mut all = self.0.lock();
        let failed = all.entry(key(pack, kernel)).or_default();
        failed.add(error.is_passing(), Instant::now());
        if !error.is_passing() {
            failed.why = Some(format!("{}/{}: {error}", pack.id, kernel.id));
        }
    }

    /// What failed for a reason that lasts, and why.
    pub(crate) fn lasting(&self) -> Vec<String> {
        let all = self.0.lock();
        all.values()
            .filter_map(|failed| failed.why.clone())
            .collect()
    }

    /// Forgets everything: something was replaced, and what failed before may work now.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl Failed {
    fn add(&mut self, is_passing: bool, now: Instant) {
        if !is_passing {
            self.lasting = self.lasting.saturating_add(1);
            return;
        }
        match self.last.map(|last| now.saturating_duration_since(last)) {
            // Several threads may meet with one reason.
            Some(since) if since < AT_ONCE => return,
            Some(since) if since < 2 * self.patience => {
                self.passing = self.passing.saturating_add(1);
            }
            _ => (self.passing, self.patience) = (1, PATIENCE),
        }
        self.last = Some(now);
    }

    fn standing(&mut self, limit: u32, now: Instant) -> Standing {
        if self.lasting >= limit {
            return Standing::GivenUp;
        }
        let Some(over) = self.passing.checked_sub(limit) else {
            return Standing::Asked;
        };
        self.patience = PATIENCE * (1 << over.min(MOST_DOUBLED));
        match self.last.map(|last| last + self.patience) {
            Some(until) if now < until => Standing::Rests(until),
            _ => Standing::Asked,
        }
    }
}

/// When routes are found anew, since a kernel that was passed over is asked again.
#[derive(Debug)]
pub(crate) struct Expiry {
    start: Instant,
    /// Milliseconds from the start on.
    at: AtomicU64,
}

impl Default for Expiry {
    fn default() -> Expiry {
        Expiry {
            start: Instant::now(),
            at: AtomicU64::new(u64::MAX),
        }
    }
}

impl Expiry {
    /// Says that a route is not for longer than that.
    pub(crate) fn note(&self, until: Instant) {
        let millis = until.saturating_duration_since(self.start).as_millis() as u64;
        self.at.fetch_min(millis, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        at != u64::MAX && self.start.elapsed().as_millis() as u64 >= at
    }

    pub(crate) fn clear(&self) {
        self.at.store(u64::MAX, Ordering::Relaxed);
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
        for _ in 0..10 {
            failed.add(true, start);
        }
        failed.add(true, after(10));
        assert_eq!(failed.standing(3, after(10)), Standing::Asked);
        failed.add(true, after(20));
        assert_eq!(failed.standing(3, after(79)), Standing::Rests(after(80)));
        assert_eq!(failed.standing(3, after(80)), Standing::Asked);
        failed.add(true, after(80));
        assert_eq!(failed.standing(3, after(199)), Standing::Rests(after(200)));
        assert_eq!(failed.standing(3, after(200)), Standing::Asked);
        let mut now = 200;
        for patience in [240, 480, 960, 1920, 3840, 3840] {
            failed.add(true, after(now));
            let until = now + patience;
            assert_eq!(
                failed.standing(3, after(now)),
                Standing::Rests(after(until))
            );
            now = until;
        }
        // Long after the last one they count anew.
        failed.add(true, after(now + 3840));
        assert_eq!(failed.standing(3, after(now + 3840)), Standing::Asked);
        assert_eq!(
            failed.standing(1, after(now + 3840)),
            Standing::Rests(after(now + 3900))
        );
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

    #[test]
    fn the_first_of_several_times_is_when_routes_expire() {
        let expiry = Expiry::default();
        assert!(!expiry.is_over());
        expiry.note(Instant::now() + Duration::from_secs(3600));
        assert!(!expiry.is_over());
        expiry.note(Instant::now());
        assert!(expiry.is_over());
        expiry.clear();
        assert!(!expiry.is_over());
    }
}
