//! The content-addressed store of pack files: what is mapped is a private copy named by its sha256, never the author's file.

use super::permissions;
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Largest pack file that is read.
const MAX_BYTES: u64 = 256 << 20;

/// Reads a regular file and its metadata through one descriptor, without following a symbolic link and without
/// blocking on a FIFO.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Metadata), String> {
    read_up_to(path, MAX_BYTES)
}

/// Like [`read`], with another limit.
pub(super) fn read_up_to(path: &Path, most: u64) -> Result<(Vec<u8>, Metadata), String> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => "it is a symbolic link; name the file itself".to_owned(),
            _ => error.to_string(),
        })?;
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let too_large = |len: u64| format!("it has {len} bytes; at most {most} are read");
    if meta.len() > most {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok((bytes, meta))
}

/// The sha256 of `bytes` in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `bytes` in lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Puts `bytes`, whose hash is `sha256`, into the store and answers with the absolute path of the copy.
///
/// A copy that is there already is used after its content was hashed again, so a store may be read-only. The
/// error names the path that could not be used.
pub(super) fn put(store: &Path, sha256: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let store = open(store)?;
    let path = store.join(format!("{sha256}.{}", std::env::consts::DLL_EXTENSION));
    if read(&path).is_ok_and(|(stored, _)| self::sha256(&stored) == sha256) {
        return Ok(path);
    }
    // Not forced to the disk: after a power failure a copy that is not whole does not have its hash, and is replaced.
    write(&path, bytes, 0o500, false)
        .map_err(|error| format!("writing {}: {error}", path.display()))?;
    Ok(path)
}

/// Creates the store where it is missing. Nobody but its owner may write to it: what lies in it runs in this process.
pub(super) fn open(store: &Path) -> Result<PathBuf, String> {
    let at = |error: io::Error| format!("the store {} is unusable: {error}", store.display());
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(store)
        .map_err(at)?;
    match permissions::weakness(&fs::metadata(store).map_err(at)?) {
        None => store.canonicalize().map_err(at),
        Some(why) => Err(format!(
            "the store {} {why}; make it this user's alone (chmod 700)",
            store.display()
        )),
    }
}

/// Writes a file that appears under its name complete or not at all, whoever else writes it at the same time. Where it
/// has to survive a power failure it is `durable`, which takes milliseconds.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_file_name(format!(".{}.{serial}.tmp", std::process::id()));
    let written = create(&temporary, mode).and_then(|mut file| {
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)?;
        if durable { sync_folder(path) } else { Ok(()) }
    });
    written.inspect_err(|_| {
        // Absent when it could not be created or was renamed already.
        let _ = fs::remove_file(&temporary);
    })
}

/// Makes sure that the entry of a file in its folder is on the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Creates a file that must not be there, for this process to write and for nobody to follow a link through.
pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(mode)
        .custom_flags(libc::O_NOFOLLOW);
    match options.open(path) {
        // Left behind by a process of the same id that was killed while it wrote.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}
