//! Which shaders were built in a child without harm, in memory and noted in the cache folder.

use super::message::VERSION;
use nx_vulkan_registry::{cache::Cache, hex, private::Folder};
use parking_lot::Mutex;
use std::{collections::HashSet, sync::Arc};

/// Folder, in the cache folder, of the notes.
const NOTES: &str = "built";

/// Shaders that are remembered before that starts anew.
pub(super) const MAX_REMEMBERED: usize = 65_536;

/// The keys of what passed.
#[derive(Debug, Default)]
pub(super) struct Passed {
    cache: Option<Arc<Cache>>,
    known: Mutex<HashSet<[u8; 32]>>,
}

impl Passed {
    pub(super) fn new(cache: &Arc<Cache>) -> Passed {
        Passed {
            cache: Some(cache.clone()),
            known: Mutex::default(),
        }
    }

    pub(super) fn has(&self, key: &[u8; 32]) -> bool {
        if self.known.lock().contains(key) {
            return true;
        }
        let (name, text) = (note_name(key), note(key));
        let noted = self.notes().is_some_and(|notes| {
            let there = notes.read(&name, text.len() as u64);
            there.is_ok_and(|there| there.as_deref() == Some(text.as_bytes()))
        });
        if noted {
            self.remember(*key);
        }
        noted
    }

    pub(super) fn add(&self, key: [u8; 32]) {
        self.remember(key);
        if let Some(notes) = self.notes() {
            // Without the note it is tried again in the next process, which costs milliseconds.
            drop(notes.write(&note_name(&key), &[note(&key).as_bytes()], false));
        }
    }

    fn notes(&self) -> Option<Folder> {
        self.cache.as_ref()?.within(NOTES).ok()
    }

    fn remember(&self, key: [u8; 32]) {
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key);
    }
}

fn note_name(key: &[u8; 32]) -> String {
    format!("{}.built", hex(key))
}

fn note(key: &[u8; 32]) -> String {
    format!("nxv {VERSION}: {} was built\n", hex(key))
}
