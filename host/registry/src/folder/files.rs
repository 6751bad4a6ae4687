//! The files of a code-free pack as they lie on disk: read once, hashed together, nothing followed.

use crate::{permissions, store};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, Metadata},
    path::Path,
};

/// The table of a code-free pack.
pub(super) const TABLE: &str = "pack.toml";
const MAX_FILES: usize = 256;
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 16 << 20;
/// How deep below the pack's folder its files may lie.
pub const MAX_DEPTH: usize = 4;

/// Relative name, with `/` between folders, and content of each file, sorted by name.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// Reads every file of the folder and its sub-folders, but for hidden ones and editors' backups (`name~`).
///
/// The second value says who else may change them, each a sentence.
///
/// # Errors
/// On a symbolic link, anything else that is no regular file, a name that is not UTF-8, or too much of it.
pub(super) fn read(folder: &Path) -> Result<(Files, Vec<String>), String> {
    let kind = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    if kind.is_symlink() {
        return Err("it is a symbolic link; name the folder itself".to_owned());
    }
    let mut read = Read::default();
    read.collect(folder, "", 0)?;
    read.files.sort();
    read.weaknesses.sort();
    Ok((read.files, read.weaknesses))
}

/// What was read so far.
#[derive(Default)]
struct Read {
    files: Files,
    weaknesses: Vec<String>,
    total: u64,
}

impl Read {
    fn collect(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), String> {
        let at = |name: &str, why: String| format!("{prefix}{name}: {why}");
        let entries = fs::read_dir(folder).map_err(|error| at("", error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| at("", error.to_string()))?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .filter(|name| !name.chars().any(char::is_control))
                .ok_or_else(|| at("", format!("{name:?} is no name for a file of a pack")))?;
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            let kind = entry.file_type();
            let kind = kind.map_err(|error| at(name, error.to_string()))?;
            if kind.is_dir() {
                if depth == MAX_DEPTH {
                    return Err(at(name, "folders lie too deep".to_owned()));
                }
                let meta = entry
                    .metadata()
                    .map_err(|error| at(name, error.to_string()))?;
                self.check(&entry.path(), &meta);
                self.collect(&entry.path(), &format!("{prefix}{name}/"), depth + 1)?;
                continue;
            }
            if !kind.is_file() {
                let why = "it is a symbolic link, or not a regular file";
                return Err(at(name, why.to_owned()));
            }
            let path = entry.path();
            let (bytes, meta) =
                store::read_up_to(&path, MAX_FILE_BYTES).map_err(|why| at(name, why))?;
            self.check(&path, &meta);
            self.total += bytes.len() as u64;
            self.files.push((format!("{prefix}{name}"), bytes));
            if self.files.len() > MAX_FILES || self.total > MAX_BYTES {
                let most = format!("at most {MAX_FILES} files and {MAX_BYTES} bytes");
                return Err(format!("a code-free pack has {most}"));
            }
        }
        Ok(())
    }

    fn check(&mut self, path: &Path, meta: &Metadata) {
        let why = permissions::weakness(meta);
        let sentence = why.map(|why| format!("{} {why}", path.display()));
        self.weaknesses.extend(sentence);
    }
}

/// One hash over names and contents, in lower-case hex.
pub(super) fn sha256(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in files {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    crate::store::hex(&hash.finalize())
}
