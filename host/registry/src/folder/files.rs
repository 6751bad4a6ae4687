//! The files of a code-free pack as they lie on disk: read once, hashed together, nothing followed.

use crate::{private, spelling::hex};
use sha2::{Digest, Sha256};
use std::{fs::File, io, path::Path};

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
/// The second value says who else may change them or a folder above, each a sentence.
///
/// # Errors
/// On a symbolic link, anything else that is no regular file, a name that is not UTF-8, or too much of it.
pub(super) fn read(folder: &Path) -> Result<(Files, Vec<String>), String> {
    let opened = private::open_file(folder, false).map_err(|error| match is_link(&error) {
        true => "it is a symbolic link; name the folder itself".to_owned(),
        false => error.to_string(),
    })?;
    let mut read = Read::default();
    read.collect(&opened.file, folder, "", 0)?;
    read.files.sort();
    read.weaknesses.sort();
    Ok((read.files, [read.weaknesses, opened.weaknesses].concat()))
}

/// What was read so far.
#[derive(Default)]
struct Read {
    files: Files,
    weaknesses: Vec<String>,
    total: u64,
}

impl Read {
    /// Reads what lies in `folder`, which is open, so that nobody can put another in its place meanwhile.
    fn collect(
        &mut self,
        folder: &File,
        path: &Path,
        prefix: &str,
        depth: usize,
    ) -> Result<(), String> {
        let at = |name: &str, why: String| format!("{prefix}{name}: {why}");
        let names = private::names(folder).map_err(|error| at("", error.to_string()))?;
        for name in &names {
            let name = name
                .to_str()
                .filter(|name| !name.chars().any(char::is_control))
                .ok_or_else(|| format!("{prefix}{name:?} is no name for a file of a pack"))?;
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            let failed = |error: io::Error| at(name, error.to_string());
            let odd = || {
                at(
                    name,
                    "it is a symbolic link, or not a regular file".to_owned(),
                )
            };
            let opened = private::reading(folder, name.as_ref());
            let file = opened.map_err(|error| match is_odd(&error) {
                true => odd(),
                false => failed(error),
            })?;
            let meta = file.metadata().map_err(failed)?;
            let path = path.join(name);
            let why = private::weakness(&meta);
            let sentence = why.map(|why| format!("{} {why}", path.display()));
            self.weaknesses.extend(sentence);
            if meta.is_dir() {
                if depth == MAX_DEPTH {
                    let why = format!("folders lie more than {MAX_DEPTH} deep");
                    return Err(at(name, why));
                }
                self.collect(&file, &path, &format!("{prefix}{name}/"), depth + 1)?;
                continue;
            }
            if !meta.is_file() {
                return Err(odd());
            }
            let bytes = private::content(&file, MAX_FILE_BYTES).map_err(failed)?;
            self.total += bytes.len() as u64;
            self.files.push((format!("{prefix}{name}"), bytes));
            if self.files.len() > MAX_FILES || self.total > MAX_BYTES {
                let most = format!("at most {MAX_FILES} files and {MAX_BYTES} bytes");
                return Err(format!("a code-free pack has {most}"));
            }
        }
        Ok(())
    }
}

fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Whether what could not be opened is a symbolic link, or a socket or device.
fn is_odd(error: &io::Error) -> bool {
    is_link(error) || error.raw_os_error() == Some(libc::ENXIO)
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
    hex(&hash.finalize())
}
