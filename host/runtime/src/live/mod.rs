//! What changes while a runtime runs: packs, shaders, the registry. It decides nothing about a single request.

mod edits;
mod event;
pub(crate) mod watch;

pub(crate) use edits::edits;
pub use event::{Event, EventKind};

use nx_vulkan_registry::{LoadedPack, Options};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// Is told what happened. Called on the thread that did it, so it must not block.
pub type Listener = Box<dyn Fn(&Event) + Send + Sync>;

/// The state behind reloads of one runtime.
pub(crate) struct Live {
    pub(crate) options: Options,
    /// Held for the whole of a reload: one at a time.
    pub(crate) turn: Mutex<()>,
    listeners: Mutex<Vec<(u64, Listener)>>,
    /// The number of the next one.
    listened: AtomicU64,
    /// Versions of each pack that have served, the newest last.
    history: Mutex<BTreeMap<String, Vec<LoadedPack>>>,
    /// Packs that were rolled back: the content of the file that was turned down, and what serves instead.
    held: Mutex<BTreeMap<String, (String, LoadedPack)>>,
    /// What was reported last and of which content, so that a file that stays broken is reported once.
    pub(crate) reported: Mutex<Vec<(String, u64)>>,
}

/// A version of a pack that serves or has served.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PackVersion {
    /// Its own version.
    pub version: String,
    /// sha256 of its file.
    pub sha256: String,
    /// Source files that were edited in a watched folder.
    pub edited: Vec<String>,
    /// Whether it serves now.
    pub serves: bool,
}

impl Live {
    pub(crate) fn new(options: Options) -> Live {
        Live {
            options,
            turn: Mutex::default(),
            listeners: Mutex::default(),
            listened: AtomicU64::new(1),
            history: Mutex::default(),
            held: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// Adds a listener; the number takes it away again.
    pub(crate) fn listen(&self, listener: Listener) -> u64 {
        let number = self.listened.fetch_add(1, Ordering::Relaxed);
        self.listeners.lock().push((number, listener));
        number
    }

    pub(crate) fn unlisten(&self, number: u64) {
        self.listeners
            .lock()
            .retain(|listener| listener.0 != number);
    }

    pub(crate) fn emit(&self, event: &Event) {
        event.log();
        self.listeners
            .lock()
            .iter()
            .for_each(|(_, listener)| listener(event));
    }

    pub(crate) fn has_listeners(&self) -> bool {
        !self.listeners.lock().is_empty()
    }

    /// Remembers the packs that begin to serve.
    pub(crate) fn remember(&self, packs: &[LoadedPack], keep: usize) {
        let mut history = self.history.lock();
        for pack in packs {
            let versions = history.entry(pack.id.clone()).or_default();
            if let Some(at) = versions.iter().position(|old| same(old, pack)) {
                let known = versions.remove(at);
                versions.push(known);
            } else {
                versions.push(pack.clone());
            }
            let surplus = versions.len().saturating_sub(keep.max(1) + 1);
            versions.drain(..surplus);
        }
    }

    pub(crate) fn versions(&self, pack: &str) -> Vec<LoadedPack> {
        self.history.lock().get(pack).cloned().unwrap_or_default()
    }

    /// From now on `pack` serves in place of the file's content `turned_down`.
    pub(crate) fn hold(&self, pack: LoadedPack, turned_down: String) {
        self.held
            .lock()
            .insert(pack.id.clone(), (turned_down, pack));
    }

    /// What serves in place of a pack that was found: the one it was rolled back to, while its file stays as it was.
    pub(crate) fn held(&self, found: LoadedPack) -> LoadedPack {
        let mut held = self.held.lock();
        match held.get(&found.id) {
            Some((turned_down, pack)) if *turned_down == found.sha256 => pack.clone(),
            Some(_) => {
                held.remove(&found.id);
                found
            }
            None => found,
        }
    }

    /// Whether the pack was rolled back, so that edits of its sources do not count.
    pub(crate) fn is_held(&self, pack: &str) -> bool {
        self.held.lock().contains_key(pack)
    }

    /// Ends a rollback: what lies on disk counts again.
    pub(crate) fn release(&self, pack: &str) {
        self.held.lock().remove(pack);
    }
}

/// Whether both are the same content.
pub(crate) fn same(a: &LoadedPack, b: &LoadedPack) -> bool {
    a.sha256 == b.sha256 && a.edited == b.edited
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
