//! The folders that the system watches for us.

use super::{
    Shared,
    files::{MAX_DEPTH, below, packs_without_code, within},
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use nx_vulkan_registry::Places;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How often folders are looked through where the system tells nothing.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// What is watched, and whether that works.
pub(crate) struct Folders {
    shared: Arc<Shared>,
    watcher: Option<RecommendedWatcher>,
    /// Device and inode of each, since a folder may be deleted and made again.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    told: bool,
    polling: bool,
    /// Whether a folder was not watched before.
    has_grown: bool,
}

impl Folders {
    pub(crate) fn new(shared: &Arc<Shared>) -> Folders {
        Folders {
            shared: shared.clone(),
            watcher: None,
            watched: BTreeMap::new(),
            told: false,
            polling: false,
            has_grown: false,
        }
    }

    /// Whether changes are only found by looking now and then.
    pub(crate) fn polls(&self) -> bool {
        self.polling
    }

    /// Whether [`Folders::follow`] found a folder last that was not watched before: what changed there earlier nobody told.
    pub(crate) fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// Watches what the table names; what cannot be watched is told once and looked at now and then.
    pub(crate) fn follow(&mut self, places: &Places, poll: u64) -> Option<String> {
        self.has_grown = false;
        if poll > 0 {
            self.watcher = None;
            self.watched.clear();
            return None;
        }
        let trouble = self.update(places).err();
        self.polling = trouble.is_some();
        let trouble = trouble?;
        let first = !std::mem::replace(&mut self.told, true);
        first.then(|| {
            format!(
                "the system does not tell when files change ({trouble}); they are looked at every {} s",
                POLL.as_secs()
            )
        })
    }

    fn update(&mut self, places: &Places) -> notify::Result<()> {
        if self.watcher.is_none() {
            let shared = self.shared.clone();
            // Looking opens folders and files too, and must not look like a change.
            let on_event = move |event: notify::Result<notify::Event>| match event {
                Ok(event) if is_reading(&event.kind) => {}
                Ok(event) => {
                    if is_leaving(&event.kind) {
                        shared.gone.lock().extend(event.paths);
                    }
                    shared.touch();
                }
                Err(_) => shared.touch(),
            };
            self.watcher = Some(notify::recommended_watcher(on_event)?);
        }
        let Some(watcher) = &mut self.watcher else {
            return Ok(());
        };
        // A folder that comes back is the same to us, and no longer watched.
        let gone = std::mem::take(&mut *self.shared.gone.lock());
        let wanted = wanted(places);
        self.watched.retain(|path, identity| {
            let is_gone = gone.iter().any(|gone| path.starts_with(gone));
            let stays = wanted.get(path) == Some(identity) && !is_gone;
            if !stays {
                // It may be gone already, and its watch with it.
                drop(watcher.unwatch(path));
            }
            stays
        });
        let mut trouble = Ok(());
        for (path, identity) in wanted {
            if let Entry::Vacant(unwatched) = self.watched.entry(path) {
                match watcher.watch(unwatched.key(), RecursiveMode::NonRecursive) {
                    Ok(()) => {
                        unwatched.insert(identity);
                        self.has_grown = true;
                    }
                    // It is gone again, of which the folder above tells.
                    Err(error) if is_missing(&error) => {}
                    Err(error) => trouble = Err(error),
                }
            }
        }
        trouble
    }
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn is_reading(kind: &notify::EventKind) -> bool {
    use notify::event::{AccessKind, AccessMode};
    let written = AccessKind::Close(AccessMode::Write);
    matches!(kind, notify::EventKind::Access(access) if *access != written)
}

/// Whether something is no longer where it was.
fn is_leaving(kind: &notify::EventKind) -> bool {
    use notify::event::ModifyKind;
    matches!(
        kind,
        notify::EventKind::Remove(_) | notify::EventKind::Modify(ModifyKind::Name(_))
    )
}

/// Every folder in which something may change, by device and inode. For one that is missing, the nearest above it.
fn wanted(places: &Places) -> BTreeMap<PathBuf, (u64, u64)> {
    let above_registry = places.registry.as_deref().and_then(Path::parent);
    let above_registry = above_registry.map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let above_named = places.named.iter().filter_map(|path| path.parent());
    let roots = places
        .search
        .iter()
        .chain(&places.watched)
        .map(PathBuf::as_path)
        .chain(above_named);
    let mut wanted = BTreeMap::new();
    let mut add = |path: &Path| {
        if let Ok(meta) = path.metadata() {
            wanted.insert(path.to_owned(), (meta.dev(), meta.ino()));
        }
    };
    for root in roots.chain(above_registry) {
        let nearest = root.ancestors().find(|path| path.is_dir());
        nearest.into_iter().for_each(&mut add);
    }
    for pack in packs_without_code(places) {
        add(&pack);
        within(&pack, &mut |path, is_folder| {
            if is_folder {
                add(path);
            }
        });
    }
    let depths = [(&places.search, 0), (&places.watched, MAX_DEPTH)];
    for (folder, depth) in depths
        .iter()
        .flat_map(|(all, depth)| all.iter().map(move |f| (f, *depth)))
    {
        below(folder, depth, &mut |path, is_folder| {
            if is_folder {
                add(path);
            }
        });
    }
    wanted
}
