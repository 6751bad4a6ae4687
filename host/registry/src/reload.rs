//! A later look at the registry and its folders: what changed is loaded anew, what broke stays as it was.

use super::{
    codes::Code,
    config::{Config, Mode},
    diagnostic::Severity,
    discover::{self, Rejected},
    load::configuration,
    loaded::LoadedPack,
    options::Options,
    table::Table,
    vet,
};
use nx_vulkan_ops::{Error, Kind, Result};
use std::path::{Path, PathBuf};

/// What a later look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A pack that was not there.
    Added(String),
    /// A pack whose file has another content.
    Replaced(String),
    /// A pack whose file is gone or is no longer admitted.
    Removed(String),
    /// A pack that is kept though its file cannot be loaded any more.
    Kept(String, Rejected),
    /// A pack that is kept for a while though its file is gone.
    Gone(String),
    /// A file that cannot be loaded.
    Rejected(Rejected),
    /// The registry file says something else.
    Registry,
}

/// Loads what is there now. Packs of `current` whose files broke, or are gone and `is_awaited`, or whose folder cannot be listed, are
/// kept as long as the registry admits them. `held` may put another version in the place of a pack that was found.
///
/// # Errors
/// As [`super::load()`]; `current` stays as it is then.
pub fn reload(
    options: &Options,
    current: &Table,
    is_awaited: &dyn Fn(&str) -> bool,
    held: &dyn Fn(LoadedPack) -> LoadedPack,
) -> Result<(Table, Vec<Change>)> {
    let (config, named) = configuration(options)?;
    if current.is_locked() && config.mode == Mode::Dev {
        let at = config.mode_at.unwrap_or(0);
        let message = "mode \"locked\" stands until the process ends";
        let refused =
            config
                .source
                .diagnostic(Code::Unlocked, Severity::Error, at..at, message.to_owned());
        return Err(Error::new(Kind::Registry, refused.to_string()));
    }
    let mut found = discover::packs(&config, options)?;
    let mut changes = Vec::new();
    let mut packs: Vec<LoadedPack> = found.take_packs().into_iter().map(held).collect();
    for old in &current.packs {
        if packs.iter().any(|pack| pack.id == old.id) {
            continue;
        }
        // Descriptors may have run out, or a file system be away for a moment.
        let is_unread = |folder: &PathBuf| old.path.parent() == Some(folder);
        if found.unread.iter().any(is_unread) && admits(&config, old) {
            packs.push(old.clone());
            continue;
        }
        let broken = found.rejected.iter().find(|file| file.path == old.path);
        let id = old.id.clone();
        let kept = match broken {
            Some(file) => Some(Change::Kept(id, file.clone())),
            None if !old.path.exists() && is_awaited(&id) => Some(Change::Gone(id)),
            None => None,
        };
        match kept.filter(|_| admits(&config, old)) {
            Some(kept) if changed(&old.path, &old.sha256) => {
                changes.push(kept);
                packs.push(old.clone());
            }
            _ => changes.push(Change::Removed(old.id.clone())),
        }
    }
    for pack in &packs {
        match current.packs.iter().find(|old| old.id == pack.id) {
            None => changes.push(Change::Added(pack.id.clone())),
            Some(old) if old.sha256 != pack.sha256 => {
                changes.push(Change::Replaced(pack.id.clone()));
            }
            Some(_) => {}
        }
    }
    if config.source.text() != current.config.source.text() {
        changes.push(Change::Registry);
    }
    let fresh = |file: &&Rejected| {
        !current.rejected.contains(file) && !current.packs.iter().any(|p| p.path == file.path)
    };
    let rejected = found.rejected.iter().filter(fresh);
    changes.extend(rejected.cloned().map(Change::Rejected));
    let table = Table::assemble(config, named, packs, found)?;
    Ok((table, changes))
}

/// Whether the registry lets that pack be loaded, by its pin and range of versions.
fn admits(config: &Config, pack: &LoadedPack) -> bool {
    match config.packs.get(&pack.id) {
        None => config.mode == Mode::Dev,
        Some(entry) => {
            entry.pin.as_ref().is_none_or(|pin| *pin == pack.sha256)
                && entry
                    .version
                    .as_ref()
                    .is_none_or(|range| range.matches(&pack.version))
        }
    }
}

/// Whether the file has another content than that. A file that cannot be read has.
fn changed(path: &Path, sha256: &str) -> bool {
    !vet::sha256_of(path).is_ok_and(|found| found == sha256)
}
