//! The store: a private folder with crash markers, the quarantine, notes of packs that were tried, and, where the system
//! has no memory to map libraries from, copies of them.

use crate::private::{Folder, Rule, open_folder};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What there is no store for then.
const LOST: &str =
    "so a pack that ends this process is loaded again by the next, and every pack is tried anew";

/// The store of a load, which may not be there.
#[derive(Debug, Default)]
pub(super) struct Store {
    path: Option<PathBuf>,
    is_locked: bool,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// It is not there yet, or nobody has looked.
    #[default]
    Absent,
    Open(Arc<Folder>),
    /// It cannot be used, for that reason.
    Unusable(String),
}

impl Store {
    /// The store at `path`, or none. What is there is opened; nothing is created.
    pub(super) fn new(path: Option<&Path>, is_locked: bool) -> Store {
        let mut store = Store {
            path: path.map(Path::to_owned),
            is_locked,
            state: State::Absent,
        };
        store.look(false);
        store
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The folder, if it is there.
    pub(super) fn folder(&self) -> Option<&Arc<Folder>> {
        match &self.state {
            State::Open(folder) => Some(folder),
            _ => None,
        }
    }

    /// The folder, created where it is missing.
    pub(super) fn create(&mut self) -> Option<Arc<Folder>> {
        self.look(true);
        self.folder().cloned()
    }

    /// Why it cannot be used, as a sentence that says what to do.
    pub(super) fn trouble(&self) -> Option<String> {
        let name = "name one with `store` under [search] or with cache_dir";
        match (&self.state, &self.path) {
            (State::Unusable(why), Some(path)) => Some(format!(
                "the store {} is unusable: {why}; make it and the folders above it this user's alone, or {name}; {LOST}",
                path.display()
            )),
            (_, None) => Some(format!("there is no folder for a store; {name}; {LOST}")),
            _ => None,
        }
    }

    fn look(&mut self, create: bool) {
        if let (State::Absent, Some(path)) = (&self.state, &self.path) {
            match open(path, self.is_locked, create) {
                Ok(Some(folder)) => self.state = State::Open(Arc::new(folder)),
                Ok(None) => {}
                Err(why) => self.state = State::Unusable(why),
            }
        }
    }
}

/// Opens a store that nobody else can write to: what lies in it decides what is loaded.
fn open(path: &Path, is_locked: bool, create: bool) -> Result<Option<Folder>, String> {
    let rule = if is_locked {
        Rule::Private
    } else {
        Rule::Sticky
    };
    open_folder(path, rule, create).map_err(|error| error.to_string())
}

/// The same for tools, which know of no mode.
pub(super) fn open_at(path: &Path, create: bool) -> Result<Option<Folder>, String> {
    let unusable = |why| format!("the store {} is unusable: {why}", path.display());
    open(path, false, create).map_err(unusable)
}
