//! Who else could change a file: itself, or by way of a folder above it. It reads modes and owners, nothing more.

use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Who besides this user and root may change what `meta` belongs to, as the end of a sentence; `None`: nobody.
pub(super) fn weakness(meta: &Metadata) -> Option<String> {
    // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
    let user = unsafe { libc::geteuid() };
    let mode = meta.mode() & 0o7777;
    match () {
        () if meta.uid() != user && meta.uid() != 0 => {
            Some(format!("belongs to user {}, not {user}", meta.uid()))
        }
        () if mode & 0o002 != 0 => Some(format!("is writable for everyone (mode {mode:o})")),
        () if mode & 0o020 != 0 => Some(format!("is writable for its group (mode {mode:o})")),
        () => None,
    }
}

/// The weaknesses of a file and of every folder above it, each a sentence.
///
/// The sticky bit does not help: once a folder is deleted, as cleaners of /tmp do, anybody may create its name.
pub(super) fn weaknesses(path: &Path, meta: &Metadata) -> Vec<String> {
    let sentence = |path: &Path, meta: &Metadata| {
        let why = weakness(meta)?;
        Some(format!("{} {why}", path.display()))
    };
    let mut found = Vec::from_iter(sentence(path, meta));
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match folder.unwrap_or(Path::new(".")).canonicalize() {
        Ok(folder) => {
            let above = folder.ancestors().filter_map(|folder| {
                let meta = fs::metadata(folder).ok()?;
                sentence(folder, &meta)
            });
            found.extend(above);
        }
        Err(error) => found.push(format!("the folder of {}: {error}", path.display())),
    }
    found
}
