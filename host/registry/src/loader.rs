//! What is known of a pack file before any of its code runs: its content, its hash, what it says about itself. Whether it
//! may be loaded is decided elsewhere, and so is how it is mapped.
//!
//! Every error is `step: reason`.

use super::{
    config::PackEntry,
    folder::{self, FolderPack},
    identity::{self, Identity},
    private::{self, Opened},
    spelling::hex,
    stamp::Stamp,
};
use abi_stable::prefix_type::PrefixTypeTrait as _;
use nx_vulkan_abi::{ABI_VERSION, HostApi, HostApiRef, Level, RStr};
use parking_lot::Mutex;
use semver::Version;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{LazyLock, OnceLock},
    time::{Duration, SystemTime},
};

/// A library that changed this lately may change again and look the same: some file systems count in two seconds.
const TICK: Duration = Duration::from_secs(3);

/// A pack file as it was read.
#[derive(Debug)]
pub(super) struct PackFile {
    pub(super) path: PathBuf,
    pub(super) sha256: String,
    /// Who else could have changed it, each a sentence.
    pub(super) weaknesses: Vec<String>,
    what: What,
    identity: OnceLock<Result<Identity, String>>,
}

#[derive(Debug)]
enum What {
    Folder(FolderPack),
    Library {
        file: File,
        bytes: OnceLock<Vec<u8>>,
    },
}

/// What a library was when it was read last.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    sha256: String,
    identity: Result<Identity, String>,
}

impl PackFile {
    /// Reads what is at `path`, without following a symbolic link at its end.
    pub(super) fn read(path: &Path) -> Result<PackFile, String> {
        if folder::is_pack(path) {
            let folder = FolderPack::read(path)?;
            let (sha256, weaknesses) = (folder.sha256.clone(), folder.weaknesses().to_vec());
            return Ok(PackFile::of(path, sha256, weaknesses, What::Folder(folder)));
        }
        let opened = private::open_file(path, false).map_err(|error| unread(&error))?;
        PackFile::library(path, opened)
    }

    /// As [`PackFile::read`], but a library that did not change since it was read is not read again.
    pub(super) fn look(path: &Path) -> Result<PackFile, String> {
        match folder::is_pack(path) {
            true => PackFile::read(path),
            false => PackFile::look_at(path, SystemTime::now()),
        }
    }

    fn look_at(path: &Path, now: SystemTime) -> Result<PackFile, String> {
        static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());
        let opened = private::open_file(path, false).map_err(|error| unread(&error))?;
        let meta = opened.file.metadata().map_err(|error| unread(&error))?;
        let stamp = Stamp::of(&meta);
        if let Some(known) = KNOWN.lock().get(path).filter(|known| known.stamp == stamp) {
            let what = What::Library {
                file: opened.file,
                bytes: OnceLock::new(),
            };
            let file = PackFile::of(path, known.sha256.clone(), opened.weaknesses, what);
            return Ok(PackFile {
                identity: known.identity.clone().into(),
                ..file
            });
        }
        let file = PackFile::library(path, opened)?;
        let mut known = KNOWN.lock();
        match stamp.is_settled(now, TICK) {
            true => known.insert(
                path.to_owned(),
                Known {
                    stamp,
                    sha256: file.sha256.clone(),
                    identity: file.inspect(),
                },
            ),
            false => known.remove(path),
        };
        Ok(file)
    }

    fn library(path: &Path, opened: Opened) -> Result<PackFile, String> {
        let bytes = private::content(&opened.file, private::MAX_BYTES);
        let bytes = bytes.map_err(|error| unread(&error))?;
        let sha256 = sha256(&bytes);
        let what = What::Library {
            file: opened.file,
            bytes: bytes.into(),
        };
        Ok(PackFile::of(path, sha256, opened.weaknesses, what))
    }

    fn of(path: &Path, sha256: String, weaknesses: Vec<String>, what: What) -> PackFile {
        PackFile {
            path: path.to_owned(),
            sha256,
            weaknesses,
            what,
            identity: OnceLock::new(),
        }
    }

    /// Its bytes, or of a folder what a signature is of.
    ///
    /// # Errors
    /// Where they cannot be read, or are others than those that were hashed.
    pub(super) fn bytes(&self) -> Result<&[u8], String> {
        let (file, bytes) = match &self.what {
            What::Folder(folder) => return Ok(folder.sha256.as_bytes()),
            What::Library { file, bytes } => (file, bytes),
        };
        if let Some(bytes) = bytes.get() {
            return Ok(bytes);
        }
        let read = private::content(file, private::MAX_BYTES).map_err(|error| unread(&error))?;
        if sha256(&read) != self.sha256 {
            return Err("read: it changed while it was looked at".to_owned());
        }
        Ok(bytes.get_or_init(|| read))
    }

    pub(super) fn check_pin(&self, entry: Option<&PackEntry>) -> Result<(), String> {
        match entry.and_then(|entry| entry.pin.as_ref()) {
            Some(pin) if *pin != self.sha256 => Err(format!(
                "sha256: the file has {}, the registry pins {pin}",
                self.sha256
            )),
            _ => Ok(()),
        }
    }

    /// Checks the file's format and metadata.
    pub(super) fn inspect(&self) -> Result<Identity, String> {
        let identity = self.identity.get_or_init(|| match &self.what {
            What::Folder(folder) => folder.identity(),
            What::Library { .. } => identity::read(self.bytes()?),
        });
        identity.clone()
    }

    /// The pack itself, where it is a folder: nothing of it has to be mapped or tried.
    pub(super) fn without_code(&self) -> Option<&FolderPack> {
        match &self.what {
            What::Folder(folder) => Some(folder),
            What::Library { .. } => None,
        }
    }
}

/// The content of a regular file, without following a symbolic link at the end of its path, and who else could have
/// changed it. The error starts with the step that failed.
pub(super) fn read(path: &Path, most: u64) -> Result<(Vec<u8>, Vec<String>), String> {
    let opened = private::open_file(path, false).map_err(|error| unread(&error))?;
    let bytes = private::content(&opened.file, most).map_err(|error| unread(&error))?;
    Ok((bytes, opened.weaknesses))
}

fn unread(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "read: it is a symbolic link; name the file itself".to_owned(),
        _ => format!("read: {error}"),
    }
}

/// The sha256 of `bytes` in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// What packs may call. It lives as long as the process, as they do.
pub(super) static HOST: LazyLock<HostApiRef> = LazyLock::new(|| {
    // A wrong level is told even where no pack logs.
    LazyLock::force(&LOGGED);
    let abi_minor = Version::parse(ABI_VERSION).map_or(0, |version| version.minor);
    HostApi {
        abi_minor: u32::try_from(abi_minor).unwrap_or(u32::MAX),
        log,
    }
    .leak_into_prefix()
});

/// Lines of packs up to this level are written: `$NX_VULKAN_PACK_LOG`, a number from 0 to 5, else warnings.
static LOGGED: LazyLock<Level> = LazyLock::new(|| {
    let Some(named) = std::env::var_os("NX_VULKAN_PACK_LOG").filter(|named| !named.is_empty())
    else {
        return Level::WARN;
    };
    let level = named.to_str().and_then(|level| level.parse().ok());
    level.map(Level).filter(|level| *level <= Level::TRACE).unwrap_or_else(|| {
        log::warn!("expected $NX_VULKAN_PACK_LOG to be a number from 0 to 5, got: {named:?}; packs log errors and warnings");
        Level::WARN
    })
});

/// Lines of packs go to the log. It must not panic: a panic cannot cross `extern "C"`.
extern "C" fn log(level: Level, pack: RStr<'_>, message: RStr<'_>) {
    if level.min(Level::TRACE) <= *LOGGED {
        let clean = |text: RStr<'_>| {
            super::diagnostic::clean(&String::from_utf8_lossy(text.as_rslice().as_slice()), 1000)
        };
        let level = match level {
            Level::ERROR => log::Level::Error,
            Level::WARN => log::Level::Warn,
            Level::INFO => log::Level::Info,
            Level::DEBUG => log::Level::Debug,
            _ => log::Level::Trace,
        };
        log::log!(target: &clean(pack), level, "{}", clean(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_library_is_read_again_only_when_it_may_have_changed() {
        let folder = private::Temporary::new().unwrap();
        let path = folder.write("pack.so", b"one").unwrap();
        let was_read = |file: &PackFile| match &file.what {
            What::Library { bytes, .. } => bytes.get().is_some(),
            What::Folder(_) => unreachable!("it is a file"),
        };
        let later = SystemTime::now() + Duration::from_secs(60);
        let look = |now: SystemTime| PackFile::look_at(&path, now).unwrap();
        let soon = SystemTime::now();
        for now in [soon, soon, later] {
            assert!(was_read(&look(now)), "a change may look like this one");
        }
        let known = look(later);
        assert!(!was_read(&known));
        assert_eq!(known.sha256, sha256(b"one"));
        assert_eq!(known.inspect(), identity::read(b"one"));
        assert_eq!(known.bytes(), Ok(&b"one"[..]));
        let known = look(later);
        std::fs::write(&path, b"two").unwrap();
        let error = known.bytes().unwrap_err();
        assert_eq!(error, "read: it changed while it was looked at");
        let other = look(later);
        assert!(was_read(&other));
        assert_eq!(other.sha256, sha256(b"two"));
    }

    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

    struct Ear;

    impl log::Log for Ear {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            let line = format!("{} {} {}", record.level(), record.target(), record.args());
            SAID.lock().unwrap().push(line);
        }

        fn flush(&self) {}
    }

    #[test]
    fn lines_of_packs_are_logged_under_their_ids() {
        log::set_logger(&Ear).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        for level in [Level::ERROR, Level::WARN, Level::INFO, Level(9)] {
            log(level, RStr::from_str("swish"), RStr::from_str("two\nlines"));
        }
        let said = SAID.lock().unwrap();
        let of_swish: Vec<&String> = said.iter().filter(|line| line.contains("swish")).collect();
        assert_eq!(of_swish.len(), 2, "{said:?}");
        assert!(of_swish[0].starts_with("ERROR swish two"), "{said:?}");
        assert!(of_swish[1].starts_with("WARN swish two"), "{said:?}");
    }
}
