//! Which pack files are loaded: those of the search folders, as mode, pins and version ranges allow.

use super::{
    Options, Rejected,
    config::{Config, Mode, PackEntry},
    folder,
    image::Image,
    loader::{Identity, PackFile},
};
use crate::{Error, Kind, Result};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) packs: Vec<FoundPack>,
    pub(super) rejected: Vec<Rejected>,
    pub(super) warnings: Vec<String>,
}

/// A loaded pack with its origin.
#[derive(Debug)]
pub(super) struct FoundPack {
    pub(super) path: PathBuf,
    pub(super) sha256: String,
    pub(super) priority: i64,
    pub(super) image: Arc<Image>,
}

/// Loads what the configuration allows. In locked mode every listed pack must load.
pub(super) fn packs(config: &Config, options: &Options) -> Result<Found> {
    let mut found = Found::default();
    let folders: Vec<&Path> = options
        .packs
        .iter()
        .chain(&config.paths)
        .map(PathBuf::as_path)
        .collect();
    let store = config.store.as_deref().unwrap_or(&options.store);
    let mut named = Vec::new();
    for (id, entry) in &config.packs {
        if let Some(file) = &entry.file {
            let path = locate(file, &folders, config.source.folder());
            found.add(config, store, &path, Some(id.as_str()));
            named.push(path);
        }
    }
    for folder in &folders {
        for path in found.list(folder) {
            if !named.contains(&path) {
                found.add(config, store, &path, None);
            }
        }
    }
    found.report_missing(config)?;
    Ok(found)
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

impl Found {
    /// The packs of a folder by name, so that the order of the directory does not matter.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        if folder::is_pack(folder) {
            return vec![folder.to_owned()];
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.warnings
                    .push(format!("search folder {}: {error}", folder.display()));
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

    fn add(&mut self, config: &Config, store: &Path, path: &Path, id: Option<&str>) {
        match self.load(config, store, path, id) {
            Ok(pack) => self.packs.extend(pack),
            Err(reason) => self.rejected.push(Rejected {
                path: path.to_owned(),
                reason,
            }),
        }
    }

    /// Loads one file; `None` when its content is loaded already, or is not listed in locked mode.
    fn load(
        &self,
        config: &Config,
        store: &Path,
        path: &Path,
        wanted: Option<&str>,
    ) -> std::result::Result<Option<FoundPack>, String> {
        let file = PackFile::read(path)?;
        let by_pin = || {
            let pinned = |entry: &PackEntry| {
                entry.file.is_none() && entry.pin.as_ref() == Some(&file.sha256)
            };
            config
                .packs
                .iter()
                .find(|(_, entry)| pinned(entry))
                .map(|(id, _)| id.as_str())
        };
        let wanted = wanted.or_else(|| by_pin().filter(|_| config.mode == Mode::Locked));
        let unlisted = config.mode == Mode::Locked && wanted.is_none();
        if unlisted || self.packs.iter().any(|pack| pack.sha256 == file.sha256) {
            return Ok(None);
        }
        let entry = |id: &str| config.packs.get(id);
        file.check_pin(wanted.and_then(entry))?;
        let inspected = file.inspect()?;
        if let Some(identity) = &inspected {
            self.admit(entry(&identity.id), wanted, identity, &file)?;
        }
        let image = file.map(store)?;
        let mapped = Identity {
            id: image.id.clone(),
            version: image.version.clone(),
        };
        match &inspected {
            Some(told) if *told != mapped => {
                return Err(format!(
                    "describe: it calls itself {mapped}, its metadata says {told}"
                ));
            }
            Some(_) => {}
            None => self.admit(entry(&mapped.id), wanted, &mapped, &file)?,
        }
        let priority = entry(&mapped.id).map_or(0, |entry| entry.priority);
        Ok(Some(FoundPack {
            path: path.to_owned(),
            sha256: file.sha256,
            priority,
            image,
        }))
    }

    /// Whether a pack of that identity may be loaded from that file.
    fn admit(
        &self,
        entry: Option<&PackEntry>,
        wanted: Option<&str>,
        identity: &Identity,
        file: &PackFile,
    ) -> std::result::Result<(), String> {
        match wanted {
            Some(wanted) if wanted != identity.id => {
                return Err(format!(
                    "metadata: it is pack `{}`, the registry expects `{wanted}`",
                    identity.id
                ));
            }
            None if entry.is_some_and(|entry| entry.file.is_some()) => {
                return Err(format!(
                    "metadata: the registry names another file for pack `{}`",
                    identity.id
                ));
            }
            _ => {}
        }
        if let Some(other) = self.packs.iter().find(|pack| pack.image.id == identity.id) {
            let path = other.path.display();
            return Err(format!(
                "metadata: pack `{}` is already loaded from {path}",
                identity.id
            ));
        }
        let Some(entry) = entry else { return Ok(()) };
        file.check_pin(Some(entry))?;
        match &entry.version {
            Some(range) if !range.matches(&identity.version) => Err(format!(
                "metadata: version {} is not in the range \"{range}\"",
                identity.version
            )),
            _ => Ok(()),
        }
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
