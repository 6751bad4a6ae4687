//! The way of one pack file into the process: read, hash, inspect, store, map once and never unmap. Whether it may go
//! that way is decided elsewhere.
//!
//! Every error is `step: reason`. No step before `map` runs code of the pack.

use super::{
    config::PackEntry,
    elf,
    folder::{self, FolderPack},
    image,
    image::Image,
    layout,
    marker::Marker,
    permissions, selftest, store,
};
use abi_stable::{
    StableAbi as _,
    library::{
        AbiHeaderRef, LibHeader, LibraryError, ROOT_MODULE_LOADER_NAME_WITH_NUL, RootModuleError,
    },
    prefix_type::PrefixTypeTrait as _,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use nx_vulkan_abi::{ABI_VERSION, HostApi, HostApiRef, Level, PackRef, RStr, meta::Meta};
use semver::Version;
use std::{
    collections::BTreeMap,
    fmt,
    fs::Metadata,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// Images mapped in this process from which on a load warns, again at every further half of it.
const MANY_IMAGES: usize = 100;

/// Images mapped in this process from which on mode dev maps no more.
const MAX_IMAGES: usize = 500;

/// A pack file as it was read.
#[derive(Debug)]
pub(super) struct PackFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
    meta: Metadata,
    /// The pack, where it is a folder without a library.
    folder: Option<FolderPack>,
}

/// What a file says about itself before it is mapped.
#[derive(Debug, PartialEq)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) version: Version,
    /// Version of the contract it was built against.
    pub(super) abi: String,
}

/// A mapped pack, and what its user should know about mapping it.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) image: Arc<Image>,
    pub(super) warnings: Vec<String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.id, self.version)
    }
}

impl PackFile {
    pub(super) fn read(path: &Path) -> Result<PackFile, String> {
        if folder::is_pack(path) {
            let folder = FolderPack::read(path)?;
            let meta = path.symlink_metadata();
            return Ok(PackFile {
                path: path.to_owned(),
                // What a signature is of.
                bytes: folder.sha256.clone().into_bytes(),
                sha256: folder.sha256.clone(),
                meta: meta.map_err(|error| format!("read: {error}"))?,
                folder: Some(folder),
            });
        }
        let (bytes, meta) = store::read(path).map_err(|why| format!("read: {why}"))?;
        Ok(PackFile {
            path: path.to_owned(),
            sha256: store::sha256(&bytes),
            bytes,
            meta,
            folder: None,
        })
    }

    /// Who else could have changed it.
    pub(super) fn weaknesses(&self) -> Vec<String> {
        let mut weak = permissions::weaknesses(&self.path, &self.meta);
        weak.extend(self.folder.iter().flat_map(FolderPack::weaknesses));
        weak
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

    /// Checks the file's format and metadata; `None` on platforms whose files are not ELF.
    pub(super) fn inspect(&self) -> Result<Option<Identity>, String> {
        match &self.folder {
            Some(folder) => folder.identity().map(Some),
            None => inspect(&self.bytes),
        }
    }

    /// The pack itself, where it is a folder: nothing of it has to be mapped or tried.
    pub(super) fn without_code(&self) -> Option<&FolderPack> {
        self.folder.as_ref()
    }

    /// Puts a private copy into the store, from where it can be mapped.
    pub(super) fn keep(&self, store: &Path) -> Result<PathBuf, String> {
        store::put(store, &self.sha256, &self.bytes).map_err(|why| format!("store: {why}"))
    }

    /// Maps the private copy at `stored`; a content that was mapped before gives what it gave then.
    pub(super) fn map(&self, stored: &Path, is_limited: bool) -> Result<Mapped, String> {
        // The lock also keeps dlopen calls apart: dlerror is not thread-safe everywhere.
        static MAPPED: Mutex<BTreeMap<String, Result<Arc<Image>, String>>> =
            Mutex::new(BTreeMap::new());
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warnings = Vec::new();
        let image = match mapped.get(&self.sha256) {
            Some(image) => image.clone(),
            None if is_limited && mapped.len() >= MAX_IMAGES => {
                return Err(format!(
                    "map: {MAX_IMAGES} versions of packs are mapped, and none is ever unmapped; restart the VM"
                ));
            }
            None => {
                let folder = stored.parent().unwrap_or(Path::new("/"));
                let origin = self.path.display().to_string();
                let marker = Marker::leave(folder, &self.sha256, &origin);
                let image = self.start(stored).map(Arc::new);
                if let Err(error) = marker {
                    warnings.push(format!(
                        "{origin}: had this ended the process, the next one would not know: cannot leave a marker in {}: {error}",
                        folder.display()
                    ));
                }
                mapped.insert(self.sha256.clone(), image.clone());
                if mapped.len() >= MANY_IMAGES && mapped.len().is_multiple_of(MANY_IMAGES / 2) {
                    warnings.push(format!(
                        "{} versions of packs are mapped, and none is ever unmapped; mode dev stops at {MAX_IMAGES}, restart the VM before",
                        mapped.len()
                    ));
                }
                image
            }
        };
        image.map(|image| Mapped { image, warnings })
    }

    /// Maps the copy, initialises the pack, and tries its kernels.
    pub(super) fn start(&self, stored: &Path) -> Result<Image, String> {
        let header = open(stored).map_err(|why| format!("map: {why}"))?;
        let mut image = image::describe(root_module(header)?, *HOST)?;
        let told = self.inspect()?;
        if let Some(told) =
            told.filter(|told| (&told.id, &told.version) != (&image.id, &image.version))
        {
            return Err(format!(
                "describe: it calls itself `{}` {}, its metadata says {told}",
                image.id, image.version
            ));
        }
        image.warnings.extend(selftest::run(&image));
        Ok(image)
    }
}

/// As [`PackFile::inspect`], for bytes without a file.
pub(super) fn inspect(bytes: &[u8]) -> Result<Option<Identity>, String> {
    if cfg!(target_vendor = "apple") {
        return Ok(None);
    }
    let section = elf::section(bytes, std::env::consts::ARCH, ".nxv.meta")
        .map_err(|why| format!("ELF: {why}"))?;
    let meta = Meta::parse(section).ok_or("metadata: section .nxv.meta is damaged")?;
    check_meta(&meta)
        .map(Some)
        .map_err(|why| format!("metadata: {why}"))
}

fn check_meta(meta: &Meta) -> Result<Identity, String> {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    if (meta.arch.as_str(), meta.os.as_str()) != (arch, os) {
        return Err(format!(
            "it is built for {} {}, this host is {arch} {os}",
            meta.arch, meta.os
        ));
    }
    let version = |text: &str| {
        Version::parse(text).map_err(|_| format!("`{text}` is not a semantic version"))
    };
    if version(&meta.abi)?.major != version(ABI_VERSION)?.major {
        return Err(format!(
            "it is built for ABI {}, this host has ABI {ABI_VERSION}",
            meta.abi
        ));
    }
    if meta.panic != "unwind" {
        return Err(format!(
            "it is built with panic = \"{}\"; a panic in it would end the process, build it with \"unwind\"",
            meta.panic
        ));
    }
    if !super::is_pack_id(&meta.id) {
        return Err(format!("`{}` is not an id", meta.id));
    }
    Ok(Identity {
        id: meta.id.clone(),
        version: version(&meta.version)?,
        abi: meta.abi.clone(),
    })
}

/// Maps the stored copy at `path` and leaks it: the layout checker keeps pointers into every image it saw.
pub(super) fn open(path: &Path) -> Result<&'static LibHeader, String> {
    // SAFETY: the image's constructors run. Its bytes are those whose headers were checked, in a private
    // store; that its code is sound is the trust that loading a pack means.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let error = error.to_string();
        let mount = " (is the store on a noexec mount?)";
        let hint = if error.contains("failed to map segment") {
            mount
        } else {
            ""
        };
        format!("{error}{hint}")
    })?;
    // SAFETY: the symbol is a static `LibHeader`, whose address is what an `AbiHeaderRef` holds; its first
    // bytes are checked by `upgrade` before anything else is read.
    let symbol =
        unsafe { library.get::<Option<AbiHeaderRef>>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    let header = symbol.map(|symbol| *symbol);
    std::mem::forget(library);
    let header = header.ok().flatten().ok_or("it exports no root module")?;
    header.upgrade().map_err(|error| match error {
        LibraryError::InvalidAbiHeader(found) => {
            format!(
                "it uses abi_stable {}.{}, another one than this host",
                found.abi_major, found.abi_minor
            )
        }
        _ => "it is compiled for another C ABI".to_owned(),
    })
}

pub(super) fn root_module(header: &'static LibHeader) -> Result<PackRef, String> {
    let pack = header
        .layout()
        .ok_or("layout: the pack opted out of the layout check")?;
    layout::check(PackRef::LAYOUT, pack).map_err(|why| format!("layout: {why}"))?;
    // SAFETY: one direction of the layout check passed, and every field beyond the first version of a prefix
    // type is an `Option`, so neither side reads what the other does not have.
    let module = unsafe { header.init_root_module_with_unchecked_layout::<PackRef>() };
    module.map_err(|error| match error {
        LibraryError::RootModule {
            err: RootModuleError::Unwound,
            ..
        } => "init: the pack panicked while it was set up".to_owned(),
        _ => "init: the pack gives no root module".to_owned(),
    })
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

/// Lines of packs go to standard error. It must not panic: a panic cannot cross `extern "C"`.
extern "C" fn log(level: Level, pack: RStr<'_>, message: RStr<'_>) {
    if level.min(Level::TRACE) <= *LOGGED {
        let clean = |text: RStr<'_>| {
            super::diagnostic::clean(&String::from_utf8_lossy(text.as_rslice().as_slice()), 1000)
        };
        let _ = writeln!(
            std::io::stderr(),
            "nx_vulkan pack {}: {}",
            clean(pack),
            clean(message)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Meta {
        Meta {
            id: "demo".into(),
            version: "1.2.3".into(),
            abi: ABI_VERSION.into(),
            arch: std::env::consts::ARCH.into(),
            os: std::env::consts::OS.into(),
            panic: "unwind".into(),
        }
    }

    #[test]
    fn metadata_of_this_host_passes_and_each_other_is_named() {
        let identity = Identity {
            id: "demo".into(),
            version: Version::new(1, 2, 3),
            abi: ABI_VERSION.into(),
        };
        assert_eq!(check_meta(&own()), Ok(identity));
        let cases = [
            (
                Meta {
                    arch: "z80".into(),
                    ..own()
                },
                "it is built for z80 ",
            ),
            (
                Meta {
                    os: "plan9".into(),
                    ..own()
                },
                "plan9, this host is",
            ),
            (
                Meta {
                    abi: "99.0.0".into(),
                    ..own()
                },
                "it is built for ABI 99.0.0, this host has",
            ),
            (
                Meta {
                    abi: "one".into(),
                    ..own()
                },
                "`one` is not a semantic version",
            ),
            (
                Meta {
                    version: "1".into(),
                    ..own()
                },
                "`1` is not a semantic version",
            ),
            (
                Meta {
                    panic: "abort".into(),
                    ..own()
                },
                "it is built with panic = \"abort\"",
            ),
            (
                Meta {
                    id: "host".into(),
                    ..own()
                },
                "`host` is not an id",
            ),
        ];
        for (meta, expected) in cases {
            let error = check_meta(&meta).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_newer_minor_of_the_abi_is_left_to_the_layout_check() {
        assert!(
            check_meta(&Meta {
                abi: "1.99.0".into(),
                ..own()
            })
            .is_ok()
        );
    }
}
