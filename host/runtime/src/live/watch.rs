//! The watcher: sees that files changed, waits until they stay as they are, and has the runtime look again.
//!
//! An event of the file system only says "look again"; what changed is found by looking. Folders are watched, not
//! files, since editors and builds replace files by renaming.

mod folders;

use super::{Event, EventKind};
use crate::Runtime;
use folders::Folders;
use nx_vulkan_registry::{Places, folder};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Changes that the system did not tell about are found this often.
const SAFETY: Duration = Duration::from_secs(5);
/// How often folders are looked through where the system tells nothing.
const POLL: Duration = Duration::from_secs(1);
/// Settling takes no longer than this, however long somebody writes.
const MOST_SETTLING: Duration = Duration::from_secs(2);
/// How long a pack whose file is gone is kept.
const GRACE: Duration = Duration::from_secs(1);
/// How deep below the watched folders changes are seen.
const MAX_DEPTH: usize = 3;

/// The watcher of one runtime. It ends when it is dropped or the runtime is gone.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// When the first event came since the last look.
    dirty: Mutex<Option<(Instant, Instant)>>,
    wake: Condvar,
    stop: AtomicBool,
}

/// What tells apart two states of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watch {
    /// Starts a thread that watches for `runtime`, as the registry's `[dev]` says.
    pub(crate) fn start(runtime: &Arc<Runtime>) -> std::io::Result<Watch> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-watch".to_owned())
            .spawn({
                let (shared, runtime) = (shared.clone(), Arc::downgrade(runtime));
                move || run(&shared, &runtime)
            })?;
        Ok(Watch {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
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

fn run(shared: &Arc<Shared>, runtime: &Weak<Runtime>) {
    let mut folders = Folders::new(shared);
    let mut known = None;
    // Until when packs are kept whose files are gone.
    let mut awaited: BTreeMap<String, Instant> = BTreeMap::new();
    while let Some(runtime) = runtime.upgrade() {
        let table = runtime.table();
        let places = table.places(runtime.options());
        let (settle, poll) = (
            Duration::from_millis(table.dev().settle_ms),
            table.dev().poll_ms,
        );
        if let Some(trouble) = folders.follow(&places, poll) {
            runtime.tell(&Event::new(
                EventKind::WatchTrouble,
                table.generation,
                trouble,
            ));
        }
        let stamps = stamps(&places);
        let is_due = awaited.values().any(|until| Instant::now() >= *until);
        if known.as_ref() != Some(&stamps) || is_due {
            let settled = shared.settle(settle, &places, &stamps);
            let now = Instant::now();
            let is_awaited = |pack: &str| awaited.get(pack).is_none_or(|until| now < *until);
            let gone = runtime.look(&is_awaited, now).gone;
            awaited.retain(|pack, _| gone.contains(pack));
            for pack in gone {
                awaited.entry(pack).or_insert(now + GRACE);
            }
            known = Some(settled);
        }
        drop(table);
        drop(runtime);
        let wait = match (poll, folders.polls()) {
            (0, false) => SAFETY,
            (0, true) => POLL,
            (poll, _) => Duration::from_millis(poll),
        };
        let next = awaited.values().min();
        shared.wait(next.map_or(wait, |until| {
            wait.min(until.saturating_duration_since(Instant::now()))
        }));
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
    }
}

impl Shared {
    fn touch(&self) {
        let mut dirty = self.dirty.lock();
        let now = Instant::now();
        *dirty = Some((dirty.map_or(now, |(first, _)| first), now));
        self.wake.notify_all();
    }

    /// Waits for an event or for `limit`.
    fn wait(&self, limit: Duration) {
        let mut dirty = self.dirty.lock();
        if dirty.is_none() && !self.stop.load(Ordering::Acquire) {
            self.wake.wait_for(&mut dirty, limit);
        }
    }

    /// Waits until nothing has changed for `settle`; the state of the files then.
    fn settle(&self, settle: Duration, places: &Places, seen: &Stamps) -> Stamps {
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
            if self.stop.load(Ordering::Acquire) {
                return stable;
            }
            let now = stamps(places);
            let touched = self.dirty.lock().map_or(since, |(_, last)| last);
            if now != stable {
                (stable, since) = (now, Instant::now());
            } else if touched > since {
                since = touched;
            }
        }
    }
}

type Stamps = BTreeMap<PathBuf, Stamp>;

/// The state of every file that a look reads.
fn stamps(places: &Places) -> Stamps {
    let mut stamps = BTreeMap::new();
    if let Some(registry) = &places.registry {
        stamp(registry, &mut stamps);
    }
    let mut file = |path: &Path, is_folder: bool| {
        if !is_folder {
            stamp(path, &mut stamps);
        }
    };
    for folder in &places.search {
        below(folder, 1, &mut file);
    }
    for pack in &packs_without_code(places) {
        within(pack, &mut file);
    }
    for named in &places.named {
        file(named, named.is_dir());
    }
    for folder in &places.watched {
        below(folder, MAX_DEPTH, &mut |path, is_folder| {
            let kind = path.extension().and_then(|extension| extension.to_str());
            if !is_folder && matches!(kind, Some("comp" | "glsl" | "toml")) {
                stamp(path, &mut stamps);
            }
        });
    }
    stamps
}

/// The folders that are packs themselves.
fn packs_without_code(places: &Places) -> Vec<PathBuf> {
    let mut packs = Vec::new();
    let mut add = |path: &Path, is_folder: bool| {
        if is_folder && folder::is_pack(path) {
            packs.push(path.to_owned());
        }
    };
    for folder in places.search.iter().chain(&places.named) {
        add(folder, true);
    }
    for folder in &places.search {
        below(folder, 0, &mut add);
    }
    packs
}

/// Calls `f` with everything in a pack without code.
fn within(pack: &Path, f: &mut dyn FnMut(&Path, bool)) {
    listed(pack, folder::MAX_DEPTH, &[], f);
}

fn stamp(path: &Path, stamps: &mut Stamps) {
    if let Ok(meta) = path.symlink_metadata() {
        stamps.insert(
            path.to_owned(),
            Stamp {
                device: meta.dev(),
                inode: meta.ino(),
                len: meta.len(),
                modified: (meta.mtime(), meta.mtime_nsec()),
                changed: (meta.ctime(), meta.ctime_nsec()),
            },
        );
    }
}

/// Calls `f` with everything below `folder`, but for hidden names and cargo's intermediate files.
fn below(folder: &Path, depth: usize, f: &mut dyn FnMut(&Path, bool)) {
    let skipped = ["target", "deps", "build", "incremental", ".fingerprint"];
    listed(folder, depth, &skipped, f);
}

fn listed(folder: &Path, depth: usize, skipped: &[&str], f: &mut dyn FnMut(&Path, bool)) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || skipped.iter().any(|skip| name == *skip) {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        f(&path, is_folder);
        if is_folder && depth > 0 {
            listed(&path, depth - 1, skipped, f);
        }
    }
}
