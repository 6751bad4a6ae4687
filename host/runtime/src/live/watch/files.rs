//! The files that a look at the packs reads, and what tells whether they changed.

use nx_vulkan_registry::{Places, Stamp, folder};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// How deep below the watched folders changes are seen.
pub(super) const MAX_DEPTH: usize = 3;

pub(crate) type Stamps = BTreeMap<PathBuf, Stamp>;

/// The state of every file that a look reads.
pub(crate) fn stamps(places: &Places) -> Stamps {
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
pub(super) fn packs_without_code(places: &Places) -> Vec<PathBuf> {
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
pub(super) fn within(pack: &Path, f: &mut dyn FnMut(&Path, bool)) {
    listed(pack, folder::MAX_DEPTH, &[], f);
}

fn stamp(path: &Path, stamps: &mut Stamps) {
    if let Ok(meta) = path.symlink_metadata() {
        stamps.insert(path.to_owned(), Stamp::of(&meta));
    }
}

/// Calls `f` with everything below `folder`, but for hidden names and cargo's intermediate files.
pub(super) fn below(folder: &Path, depth: usize, f: &mut dyn FnMut(&Path, bool)) {
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
