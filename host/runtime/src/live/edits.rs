//! Shaders in watched folders that stand in for the ones inside a pack's file.

use nx_vulkan_registry::{EditedSource, LoadedPack};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Largest shader that is read.
const MAX_BYTES: u64 = 1 << 20;
/// How deep below a watched folder shaders are looked for.
const MAX_DEPTH: usize = 3;

/// The sources of `packs` that lie in `folders` with another text than the packs' own, each with the index of its pack.
///
/// A file belongs to the pack whose id is the name of the nearest folder above it that is an id of a pack, and
/// stands for the source of the same name, which may be a path below that folder. One that is being written stays
/// what it is in `served`.
pub(crate) fn edits(
    folders: &[PathBuf],
    packs: &[LoadedPack],
    served: &[LoadedPack],
) -> Vec<(usize, EditedSource)> {
    let mut files = Vec::new();
    for folder in folders {
        list(folder, MAX_DEPTH, &mut files);
    }
    let mut edits: Vec<(usize, EditedSource)> = Vec::new();
    for path in files {
        let Some((pack, name)) = owner(&path, packs) else {
            continue;
        };
        let known = edits
            .iter()
            .any(|(other, edit)| *other == pack && edit.name == name);
        if known {
            continue;
        }
        let Some(own) = packs[pack].own_glsl(&name).map(|own| own.text) else {
            let id = &packs[pack].id;
            tell_once(&path, format_args!("pack {id} has no shader `{name}`"));
            continue;
        };
        let text = match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) if own.is_empty() => continue,
            Ok(None) => {
                let now = served.iter().find(|now| now.id == packs[pack].id);
                let mut edits = now.map_or(&[][..], |now| &now.edited).iter();
                match edits.find(|edit| edit.path == path && edit.name == name) {
                    Some(edit) => edit.text.clone(),
                    None => continue,
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                tell_once(&path, format_args!("it cannot be read: {error}"));
                continue;
            }
        };
        if own != text {
            edits.push((pack, EditedSource { name, path, text }));
        }
    }
    edits.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    edits
}

fn owner(path: &Path, packs: &[LoadedPack]) -> Option<(usize, String)> {
    let name = path.file_name()?.to_str()?;
    let (pack, folder) = path.ancestors().skip(1).find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        let pack = packs.iter().position(|pack| pack.id == name)?;
        Some((pack, folder))
    })?;
    // What lies in a pack without code is the pack itself.
    if path.starts_with(&packs[pack].path) {
        return None;
    }
    let inside = path.strip_prefix(folder).ok()?.to_str()?;
    let is_source = packs[pack].own_glsl(inside).is_some();
    let name = if is_source { inside } else { name };
    Some((pack, name.to_owned()))
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let Ok(kind) = path.symlink_metadata() else {
            continue;
        };
        let is_shader = path
            .extension()
            .is_some_and(|extension| extension == "comp" || extension == "glsl");
        if kind.is_dir() && depth > 0 && path.file_name().is_some_and(|name| name != "target") {
            list(&path, depth - 1, files);
        } else if is_shader && !kind.is_file() {
            tell_once(&path, format_args!("it is not a regular file"));
        } else if is_shader && kind.len() > MAX_BYTES {
            let len = kind.len();
            tell_once(
                &path,
                format_args!("it has {len} bytes; at most {MAX_BYTES} are read"),
            );
        } else if is_shader {
            files.push(path);
        }
    }
}

/// Warns of a shader that is not served, once.
fn tell_once(path: &Path, why: std::fmt::Arguments<'_>) {
    const MOST: usize = 1000;
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let message = format!("{} is not served: {why}", path.display());
    let mut told = TOLD.lock();
    if told.len() < MOST && told.insert(message.clone()) {
        log::warn!("{message}");
    }
}

/// The text; nothing while it is being written, as an empty file is: many editors empty a file first.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    let before = path.symlink_metadata()?;
    let text = std::fs::read_to_string(path)?;
    let after = path.symlink_metadata()?;
    let same = before.len() == after.len() && before.modified()? == after.modified()?;
    Ok((same && !text.is_empty()).then_some(text))
}
