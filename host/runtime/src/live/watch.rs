//! The watcher: sees that files changed, waits until they stay as they are, and has the runtime look again.
//!
//! An event of the file system only says "look again"; what changed is found by looking. Folders are watched, not
//! files, since editors and builds replace files by renaming.

pub(crate) mod files;
pub(crate) mod folders;

use files::{Stamps, stamps};
use nx_vulkan_registry::Places;
use parking_lot::{Condvar, Mutex};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Settling takes no longer than this, however long somebody writes.
const MOST_SETTLING: Duration = Duration::from_secs(2);

/// The watcher of one runtime. It ends when it is dropped or the runtime is gone.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// When the first event came since the last look, and the last one.
    dirty: Mutex<Option<(Instant, Instant)>>,
    /// What was removed or renamed since folders were watched last: the system may have forgotten to watch it.
    gone: Mutex<Vec<PathBuf>>,
    wake: Condvar,
    stop: AtomicBool,
}

/// Events that came before a look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Events(Option<(Instant, Instant)>);

impl Watch {
    /// Starts a thread that does `work`, which looks again whenever something changed.
    pub(crate) fn start(
        work: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> std::io::Result<Watch> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-watch".to_owned())
            .spawn({
                let shared = shared.clone();
                move || work(&shared)
            })?;
        Ok(Watch {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(crate) fn stop(&self) {
        {
            // Who has seen that it goes on waits by the time that it is told.
            let _dirty = self.shared.dirty.lock();
            self.shared.stop.store(true, Ordering::Release);
        }
        self.shared.wake.notify_all();
        let thread = self.thread.lock().take();
        // The last handle of the runtime may be dropped by the watcher itself.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            drop(thread.join());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        let mut dirty = self.dirty.lock();
        let now = Instant::now();
        *dirty = Some((dirty.map_or(now, |(first, _)| first), now));
        self.wake.notify_all();
    }

    /// The events so far that nobody looked for yet.
    pub(crate) fn events(&self) -> Events {
        Events(*self.dirty.lock())
    }

    /// Forgets these, after which nothing was found to have changed; not those that came since. Says whether there were any.
    pub(crate) fn forget(&self, events: Events) -> bool {
        let mut dirty = self.dirty.lock();
        if *dirty == events.0 {
            *dirty = None;
        }
        events.0.is_some()
    }

    /// Waits for so long, but no longer than settling takes, whatever comes, unless the watcher is stopped.
    pub(crate) fn rest(&self, time: Duration) {
        let until = Instant::now() + time.min(MOST_SETTLING);
        let mut dirty = self.dirty.lock();
        while !self.is_stopped() && !self.wake.wait_until(&mut dirty, until).timed_out() {}
    }

    /// Waits for an event or for `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let mut dirty = self.dirty.lock();
        if dirty.is_none() && !self.is_stopped() {
            self.wake.wait_for(&mut dirty, limit);
        }
    }

    /// Waits until nothing has changed for `settle`; the state of the files then.
    pub(crate) fn settle(&self, settle: Duration, places: &Places, seen: &Stamps) -> Stamps {
        let start = Instant::now();
        let mut stable = seen.clone();
        let mut since = self.dirty.lock().map_or(start, |(_, last)| last);
        loop {
            let now = Instant::now();
            let quiet = now.saturating_duration_since(since);
            if quiet >= settle || now.saturating_duration_since(start) >= MOST_SETTLING {
                self.dirty.lock().take();
                return stamps(places);
            }
            self.wake.wait_for(&mut self.dirty.lock(), settle - quiet);
            if self.is_stopped() {
                return stable;
            }
            // Something else may be written beside it all the time.
            let now = stamps(places);
            if now != stable {
                (stable, since) = (now, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_nothing_is_looked_for_once() {
        let waits = |shared: &Shared, millis| {
            let (start, limit) = (Instant::now(), Duration::from_millis(millis));
            shared.wait(limit);
            start.elapsed() >= limit
        };
        let shared = Shared::default();
        assert!(waits(&shared, 20));
        shared.touch();
        assert!(!waits(&shared, 10_000));
        assert!(shared.forget(shared.events()));
        assert!(waits(&shared, 20));
        assert!(!shared.forget(shared.events()));

        // One that comes after the look began.
        let before = shared.events();
        shared.touch();
        shared.forget(before);
        assert!(!waits(&shared, 10_000));
    }
}
