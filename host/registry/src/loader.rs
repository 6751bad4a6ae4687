//! What is known of a pack file before any of its code runs: its content, its hash, what it says about itself. Whether it
//! may be loaded is decided elsewhere, and so is how it is mapped.
//!
//! Every error is `step: reason`.

use super::{
    config::PackEntry,
    folder::{self, FolderPack},
    identity::{self, Identity},
    private,
    spelling::hex,
};
use abi_stable::prefix_type::PrefixTypeTrait as _;
use nx_vulkan_abi::{ABI_VERSION, HostApi, HostApiRef, Level, RStr};
use semver::Version;
use sha2::{Digest as _, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// A pack file as it was read.
#[derive(Debug)]
pub(super) struct PackFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
    /// Who else could have changed it, each a sentence.
    pub(super) weaknesses: Vec<String>,
    /// The pack, where it is a folder without a library.
    folder: Option<FolderPack>,
}

impl PackFile {
    /// Reads what is at `path`, without following a symbolic link at its end.
    pub(super) fn read(path: &Path) -> Result<PackFile, String> {
        if folder::is_pack(path) {
            let folder = FolderPack::read(path)?;
            return Ok(PackFile {
                path: path.to_owned(),
                // What a signature is of.
                bytes: folder.sha256.clone().into_bytes(),
                sha256: folder.sha256.clone(),
                weaknesses: folder.weaknesses().to_vec(),
                folder: Some(folder),
            });
        }
        let (bytes, weaknesses) = read(path, private::MAX_BYTES)?;
        Ok(PackFile {
            path: path.to_owned(),
            sha256: sha256(&bytes),
            bytes,
            weaknesses,
            folder: None,
        })
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
        match &self.folder {
            Some(folder) => folder.identity(),
            None => identity::read(&self.bytes),
        }
    }

    /// The pack itself, where it is a folder: nothing of it has to be mapped or tried.
    pub(super) fn without_code(&self) -> Option<&FolderPack> {
        self.folder.as_ref()
    }
}

/// The content of a regular file, without following a symbolic link at the end of its path, and who else could have
/// changed it. The error starts with the step that failed.
pub(super) fn read(path: &Path, most: u64) -> Result<(Vec<u8>, Vec<String>), String> {
    let read = || {
        let opened = private::open_file(path, false)?;
        let bytes = private::content(&opened.file, most)?;
        Ok((bytes, opened.weaknesses))
    };
    read().map_err(|error: std::io::Error| match error.raw_os_error() {
        Some(libc::ELOOP) => "read: it is a symbolic link; name the file itself".to_owned(),
        _ => format!("read: {error}"),
    })
}

/// The sha256 of `bytes` in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// What packs may call. It lives as long as the process, as they do.
pub(super) static HOST: LazyLock<HostApiRef> = LazyLock::new(|| {
    let abi_minor = Version::parse(ABI_VERSION).map_or(0, |version| version.minor);
    HostApi {
        abi_minor: u32::try_from(abi_minor).unwrap_or(u32::MAX),
        log,
    }
    .leak_into_prefix()
});

/// Lines of packs up to this level are written: `$NX_VULKAN_PACK_LOG`, a number from 0 to 5, else warnings.
static LOGGED: LazyLock<Level> = LazyLock::new(|| {
    let named = std::env::var("NX_VULKAN_PACK_LOG").ok();
    named
        .and_then(|level| level.parse().ok())
        .map_or(Level::WARN, Level)
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
