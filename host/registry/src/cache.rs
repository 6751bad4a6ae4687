//! The cache folder of a runtime: a private one, or none. What is kept in it, and how it is checked, is told elsewhere.

use super::private::{Folder, Rule, open_folder};
use nx_vulkan_ops::{Error, Kind, Result};
use parking_lot::Mutex;
use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

/// What to do about a folder that is not used.
const CURE: &str =
    "make it and the folders above it this user's alone, or name another with cache_dir";

/// Warnings that are told once.
const MOST_TOLD: usize = 100;

/// The cache folder in force.
#[derive(Debug)]
pub struct Cache {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Where it is to be, and what it has to be.
    wanted: Option<(PathBuf, Rule)>,
    /// The folder, or why there is none.
    folder: std::result::Result<Arc<Folder>, String>,
}

impl Cache {
    /// The folder `wanted`, created where it is missing, if nobody could have written to it but this user and root, as
    /// the rule has it. Else there is none, with a warning.
    pub fn open(wanted: Option<(PathBuf, Rule)>) -> Arc<Cache> {
        let state = Mutex::new(State::new(wanted));
        Arc::new(Cache { state })
    }

    /// From now on the cache is that folder; nothing is read from the one before any more.
    pub fn change(&self, wanted: Option<(PathBuf, Rule)>) {
        *self.state.lock() = State::new(wanted);
    }

    /// The folder.
    ///
    /// # Errors
    /// [`Kind::Io`] with the reason why there is none.
    pub fn folder(&self) -> Result<Arc<Folder>> {
        let mut state = self.state.lock();
        // Somebody emptied the cache while it was in use.
        if state.folder.as_ref().is_ok_and(|folder| folder.is_gone()) {
            *state = State::new(state.wanted.take());
        }
        let folder = state.folder.clone();
        folder.map_err(|why| Error::new(Kind::Io, why))
    }

    /// The folder of that name in it, created where it is missing.
    ///
    /// # Errors
    /// [`Kind::Io`] when there is none, or it cannot be created or used.
    pub fn within(&self, name: &str) -> Result<Folder> {
        let within = self.folder()?.within(name);
        within.map_err(|error| Error::new(Kind::Io, format!("the cache folder {error}")))
    }
}

impl State {
    fn new(wanted: Option<(PathBuf, Rule)>) -> State {
        let folder = match &wanted {
            None => Err(format!("there is no cache folder: {CURE}")),
            Some((path, rule)) => match open_folder(path, *rule, true) {
                Ok(Some(folder)) => Ok(Arc::new(folder)),
                Ok(None) => Err(format!(
                    "the cache folder {} cannot be created",
                    path.display()
                )),
                Err(error) => Err(format!(
                    "the cache folder {} is not used: {error}; {CURE}",
                    path.display()
                )),
            },
        };
        if let Err(why) = &folder {
            warn_once(why);
        }
        State { wanted, folder }
    }
}

/// What a process is told once however often it comes up.
fn warn_once(message: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock();
    if told.len() < MOST_TOLD && told.insert(message.to_owned()) {
        log::warn!("{message}");
    }
}
