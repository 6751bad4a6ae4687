//! Which pack files are loaded: those of the search folders that are admitted, not in quarantine, and pass the trial.

use super::{
    admission,
    config::{Config, Mode},
    folder,
    image::Image,
    loaded::{FoundPack, LoadedPack, loaded},
    loader::PackFile,
    mapping,
    options::Options,
    private::Folder,
    probe::Prober,
    quarantine,
    store::Store,
    suspects::Suspects,
};
use nx_vulkan_ops::{Error, Kind, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

/// The environment variable whose folders are searched before all others, except in mode locked.
pub const PACKS_VARIABLE: &str = "NX_VULKAN_PACKS";

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) packs: Vec<FoundPack>,
    pub(super) rejected: Vec<Rejected>,
    /// Folders that are there and could not be listed.
    pub(super) unread: Vec<PathBuf>,
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// A file that was found and not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// The step that failed, and why.
    pub reason: String,
    /// sha256 of its content; empty where it could not be read.
    pub sha256: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// A search in progress.
#[derive(Debug)]
struct Search<'a> {
    config: &'a Config,
    /// What is not loaded, by hash, with the reason.
    quarantine: BTreeMap<String, String>,
    prober: Option<Prober>,
    suspects: Suspects,
    store: Store,
    /// Weaknesses of files and folders that were warned of.
    weak: BTreeSet<String>,
    found: Found,
}

/// Loads what the configuration allows. In locked mode every listed pack must load.
pub(super) fn packs(config: &Config, options: &Options) -> Result<Found> {
    let mut search = Search {
        config,
        quarantine: BTreeMap::new(),
        prober: prober(config, options),
        suspects: Suspects::new(judge(config, options)),
        store: Store::new(config.store(options), config.mode == Mode::Locked),
        weak: BTreeSet::new(),
        found: Found::default(),
    };
    let given = search.given(options);
    let folders: Vec<&Path> = given
        .iter()
        .chain(&config.paths)
        .map(PathBuf::as_path)
        .collect();
    search.look_back()?;
    let mut named = Vec::new();
    for (id, entry) in &config.packs {
        if let Some(file) = &entry.file {
            let path = locate(file, &folders, config.source.folder());
            search.add(&path, Some(id.as_str()));
            named.push(path);
        }
    }
    for folder in &folders {
        for path in search.found.list(folder) {
            if !named.contains(&path) {
                search.add(&path, None);
            }
        }
    }
    search.found.report_missing(config)?;
    Ok(search.found)
}

/// The program that tries packs; a locked registry takes none from the environment.
fn program<'a>(config: &Config, options: &'a Options) -> Option<&'a PathBuf> {
    let is_locked = config.mode == Mode::Locked;
    let named = options.environment.prober.as_ref();
    named.filter(|_| !is_locked).or(options.prober.as_ref())
}

/// What tries contents that a process ended with: in mode dev unless the registry says not to try any.
fn judge(config: &Config, options: &Options) -> Option<Prober> {
    let is_wanted = config.mode == Mode::Locked || config.dev.probe;
    program(config, options)
        .filter(|_| is_wanted)
        .map(Prober::new)
}

/// What tries new packs: in mode dev, unless the registry says not to. Pinned and signed packs need no trial.
fn prober(config: &Config, options: &Options) -> Option<Prober> {
    static WARNED: Once = Once::new();
    if config.mode == Mode::Locked || !config.dev.probe {
        return None;
    }
    let program = program(config, options);
    if program.is_none() {
        WARNED.call_once(|| {
            log::warn!(
                "there is no nxv-child to try new packs with, so a broken one ends this process; set NX_VULKAN_PROBER",
            );
        });
    }
    program.map(Prober::new)
}

/// A bare name is a file in the first search folder that has it; a path is taken as it is.
fn locate(file: &Path, folders: &[&Path], registry: &Path) -> PathBuf {
    if file.file_name() != Some(file.as_os_str()) {
        return file.to_owned();
    }
    let mut places = folders.iter().map(|folder| folder.join(file));
    let found = places.clone().find(|path| path.exists());
    found
        .or_else(|| places.next())
        .unwrap_or_else(|| registry.join(file))
}

impl Search<'_> {
    /// The folders that the environment and the caller name. A locked registry takes none from the environment.
    fn given(&mut self, options: &Options) -> Vec<PathBuf> {
        let mut folders = options.environment.packs.clone();
        if self.config.mode == Mode::Locked && !folders.is_empty() {
            folders.clear();
            let warning = format!("mode \"locked\" ignores ${PACKS_VARIABLE}");
            self.found.warnings.push(warning);
        }
        folders.extend_from_slice(&options.packs);
        folders
    }

    /// Sets aside what processes died of, and reads what else is set aside.
    fn look_back(&mut self) -> Result<()> {
        let is_named = self.config.store.is_some() && self.config.mode == Mode::Locked;
        if let Some(trouble) = self.store.trouble().filter(|_| is_named) {
            return Err(Error::new(Kind::Pack, trouble));
        }
        // What lies in a store that others can write to, or in none, is no evidence.
        let Some(store) = self.store.folder().cloned() else {
            return Ok(());
        };
        self.read_quarantine(&store)?;
        let (known, warnings) = (&mut self.quarantine, &mut self.found.warnings);
        if self.suspects.look_back(&store, known, warnings) {
            self.read_quarantine(&store)?;
        }
        Ok(())
    }

    fn read_quarantine(&mut self, store: &Folder) -> Result<()> {
        match quarantine::listed(store) {
            Ok(list) => {
                let shown = list.into_iter().map(|entry| {
                    (
                        entry.sha256,
                        format!("since {}: {}", entry.since, entry.reason),
                    )
                });
                self.quarantine.extend(shown);
            }
            Err(error) if self.config.mode == Mode::Locked => return Err(error),
            Err(error) => self.found.warnings.push(error.to_string()),
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, id: Option<&str>) {
        match self.load(path, id) {
            Ok(pack) => self.found.packs.extend(pack),
            Err(reason) => self.found.rejected.push(Rejected {
                path: path.to_owned(),
                reason,
                sha256: PackFile::look(path).map_or(String::new(), |file| file.sha256),
            }),
        }
    }

    /// Loads one file; `None` when its content is loaded already, or is not listed in locked mode.
    fn load(
        &mut self,
        path: &Path,
        wanted: Option<&str>,
    ) -> std::result::Result<Option<FoundPack>, String> {
        let (config, locked) = (self.config, self.config.mode == Mode::Locked);
        let file = match config.mode {
            Mode::Dev => PackFile::look(path)?,
            Mode::Locked => PackFile::read(path)?,
        };
        if self
            .found
            .packs
            .iter()
            .any(|pack| pack.sha256 == file.sha256)
        {
            return Ok(None);
        }
        let entry = |id: &str| config.packs.get(id);
        file.check_pin(wanted.and_then(entry))?;
        let inspected = file.inspect();
        let wanted =
            wanted.or_else(|| admission::listed(config, &file, &inspected).filter(|_| locked));
        if locked && wanted.is_none() {
            return Ok(None);
        }
        self.check_weaknesses(&file)?;
        if let Some(reason) = self.quarantine.get(&file.sha256) {
            let sha256 = &file.sha256;
            let file = self
                .store
                .path()
                .unwrap_or(Path::new(""))
                .join("quarantine.toml");
            return Err(format!(
                "quarantine: {reason}; `nxv pack release {}` removes its entry from {} to load it again",
                &sha256[..12],
                file.display()
            ));
        }
        let identity = inspected?;
        admission::check_identity(config, &self.found.packs, wanted, &identity, &file)?;
        admission::check_trust(config, &file, &identity, wanted)?;
        let image = match file.without_code() {
            Some(folder) => Arc::new(folder.describe()?),
            None => self.map(&file)?,
        };
        let priority = entry(&image.id).map_or(0, |entry| entry.priority);
        Ok(Some(FoundPack {
            is_vouched: admission::is_vouched(config, &image.id),
            path: path.to_owned(),
            sha256: file.sha256,
            priority,
            image,
        }))
    }

    /// Maps a library, after it was tried where that is wanted.
    fn map(&mut self, file: &PackFile) -> std::result::Result<Arc<Image>, String> {
        let store = self.store.create();
        if let Some(trouble) = self.store.trouble() {
            if self.config.mode == Mode::Locked && self.config.store.is_some() {
                return Err(format!("store: {trouble}"));
            }
            if !self.found.warnings.contains(&trouble) {
                self.found.warnings.push(trouble);
            }
        }
        let mut news = None;
        if let Some(store) = &store
            && !mapping::is_mapped(&file.sha256)
        {
            news = self.suspects.judge(file, store)?;
        }
        if let Some(prober) = &self.prober {
            prober.admit(&file.path, &file.sha256, store.as_deref())?;
        }
        let is_limited = self.config.mode == Mode::Dev;
        let mapped = file.map(store.as_ref(), is_limited, news.is_some());
        self.found.warnings.extend(news);
        let cleared = self.suspects.clear(&file.sha256);
        self.found.warnings.extend(cleared);
        let mapped = mapped?;
        self.found.warnings.extend(mapped.warnings);
        Ok(mapped.image)
    }

    /// Files that others could have changed: a warning in dev mode, for each place once.
    fn check_weaknesses(&mut self, file: &PackFile) -> std::result::Result<(), String> {
        let weak = &file.weaknesses;
        match (self.config.mode, weak.as_slice()) {
            (_, []) => Ok(()),
            (Mode::Locked, weak) => Err(format!("permissions: {}", weak.join("; "))),
            (Mode::Dev, _) => {
                for why in weak {
                    if self.weak.insert(why.clone()) {
                        let warning = format!(
                            "{why}: others could swap packs, and mode \"locked\" loads none from there"
                        );
                        self.found.warnings.push(warning);
                    }
                }
                Ok(())
            }
        }
    }
}

impl Found {
    /// The packs, with what they had to say among the warnings and notes.
    pub(super) fn take_packs(&mut self) -> Vec<LoadedPack> {
        let packs = std::mem::take(&mut self.packs);
        for pack in &packs {
            let said = |text: &String| format!("pack {}: {text}", pack.image.id);
            self.warnings.extend(pack.image.warnings.iter().map(said));
            self.notes.extend(pack.image.notes.iter().map(said));
        }
        packs.into_iter().map(loaded).collect()
    }

    /// The packs of a folder by name, so that the order of the directory does not matter.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        if folder::is_pack(folder) {
            return vec![folder.to_owned()];
        }
        if folder == Path::new("") {
            let warning = "an empty path names no search folder".to_owned();
            self.warnings.push(warning);
            return Vec::new();
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.warnings
                    .push(format!("search folder {}: {error}", folder.display()));
                if error.kind() != std::io::ErrorKind::NotFound {
                    self.unread.push(folder.to_owned());
                }
                return Vec::new();
            }
        };
        let mut files: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
            .map(|entry| entry.path())
            .filter(|path| {
                let extension = path.extension();
                extension.is_some_and(|e| e == std::env::consts::DLL_EXTENSION)
                    || folder::is_pack(path)
            })
            .collect();
        files.sort();
        files
    }

    /// Listed packs that did not load: a warning in dev mode, an error in locked mode.
    fn report_missing(&mut self, config: &Config) -> Result<()> {
        let missing = config
            .packs
            .iter()
            .filter(|(id, _)| !self.packs.iter().any(|pack| pack.image.id == **id));
        let mut reports = Vec::new();
        for (id, entry) in missing {
            match config.mode {
                Mode::Dev => {
                    let line = config.source.line(entry.at.start);
                    self.warnings
                        .push(format!("{line}: pack `{id}` did not load"));
                }
                Mode::Locked => {
                    let message = format!("pack `{id}` did not load");
                    reports.push(config.source.report(entry.at.clone(), &message));
                }
            }
        }
        if reports.is_empty() {
            return Ok(());
        }
        reports.extend(self.rejected.iter().map(Rejected::to_string));
        reports.append(&mut self.warnings);
        Err(Error::new(Kind::Pack, reports.join("\n")))
    }
}
