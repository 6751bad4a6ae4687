//! The way of a pack's code into the process: a copy that nobody can change, mapped once and never unmapped.

use super::{
    image::{self, Image},
    layout, loader,
    loader::PackFile,
    marker::Marker,
    selftest,
};
use crate::private::{self, Folder, Sealed};
use abi_stable::{
    StableAbi as _,
    library::{
        AbiHeaderRef, LibHeader, LibraryError, ROOT_MODULE_LOADER_NAME_WITH_NUL, RootModuleError,
    },
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use nx_vulkan_abi::PackRef;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// Images mapped in this process from which on a load warns, again at every further half of it.
const MANY_IMAGES: usize = 100;

/// Images mapped in this process from which on mode dev maps no more.
const MAX_IMAGES: usize = 500;

/// What mapping each content gave. The lock also keeps dlopen calls apart: dlerror is not thread-safe everywhere.
static MAPPED: Mutex<BTreeMap<String, Result<Arc<Image>, String>>> = Mutex::new(BTreeMap::new());

/// Whether this process has mapped a content, and lives.
pub(super) fn is_mapped(sha256: &str) -> bool {
    MAPPED.lock().contains_key(sha256)
}

/// A mapped pack, and what its user should know about mapping it.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) image: Arc<Image>,
    pub(super) warnings: Vec<String>,
}

impl PackFile {
    /// A copy that nobody can change, from which it can be mapped.
    pub(super) fn seal(&self, store: Option<&Folder>) -> Result<Sealed, String> {
        let suffix = std::env::consts::DLL_EXTENSION;
        let memory = format!("nx_vulkan-{}.{suffix}", self.sha256);
        let bytes = self.bytes()?;
        let sealed = match (Sealed::in_memory(&memory, bytes), store) {
            (Ok(sealed), _) => sealed,
            (Err(_), Some(store)) => {
                let name = format!("{}.{suffix}", self.sha256);
                let writing =
                    |error| format!("store: writing {}/{name}: {error}", store.path().display());
                Sealed::stored(store, &name, bytes).map_err(writing)?
            }
            (Err(error), None) => {
                return Err(format!(
                    "map: the system gives no memory to map it from ({error}), and there is no store for a copy"
                ));
            }
        };
        self.confirm(&sealed)?;
        Ok(sealed)
    }

    /// The file itself, for a process that may end by it and that keeps nothing.
    pub(super) fn in_place(&self) -> Result<Sealed, String> {
        let opened = private::open_file(&self.path, false);
        let opened = opened.map_err(|error| format!("map: {error}"))?;
        let sealed = Sealed::of(opened.file, &self.path);
        self.confirm(&sealed)?;
        Ok(sealed)
    }

    /// Checks that what would be mapped is what was read.
    fn confirm(&self, sealed: &Sealed) -> Result<(), String> {
        match sealed.sha256(private::MAX_BYTES) {
            Ok(sha256) if sha256 == self.sha256 => Ok(()),
            Ok(sha256) => Err(format!("map: what would be mapped has the sha256 {sha256}")),
            Err(error) => Err(format!("map: {error}")),
        }
    }

    /// Maps it; a content that was mapped before gives what it gave then.
    pub(super) fn map(
        &self,
        store: Option<&Arc<Folder>>,
        is_limited: bool,
        is_second: bool,
    ) -> Result<Mapped, String> {
        let mut mapped = MAPPED.lock();
        let mut warnings = Vec::new();
        let image = match mapped.get(&self.sha256) {
            Some(image) => image.clone(),
            None if is_limited && mapped.len() >= MAX_IMAGES => {
                return Err(format!(
                    "map: {MAX_IMAGES} versions of packs are mapped, and none is ever unmapped; restart the VM"
                ));
            }
            None => {
                let sealed = self.seal(store.map(|store| &**store))?;
                let origin = self.path.display().to_string();
                let marker =
                    store.map(|store| Marker::leave(store, &self.sha256, &origin, is_second));
                let image = self.start(sealed).map(Arc::new);
                if let (Some(Err(error)), Some(store)) = (&marker, store) {
                    warnings.push(format!(
                        "{origin}: had this ended the process, the next one would not know: cannot leave a marker in {}: {error}",
                        store.path().display()
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
    pub(super) fn start(&self, sealed: Sealed) -> Result<Image, String> {
        let header = open(sealed).map_err(|why| format!("map: {why}"))?;
        let mut image = image::describe(root_module(header)?, *loader::HOST)?;
        let told = self.inspect()?;
        if (&told.id, &told.version) != (&image.id, &image.version) {
            return Err(format!(
                "describe: it calls itself `{}` {}, its metadata says {told}",
                image.id, image.version
            ));
        }
        image.warnings.extend(selftest::run(&image));
        Ok(image)
    }
}

/// Maps the copy and leaks it: the layout checker keeps pointers into every image it saw, and the dynamic loader knows the
/// image by a path that leads to this descriptor.
pub(super) fn open(sealed: Sealed) -> Result<&'static LibHeader, String> {
    let sealed: &'static Sealed = Box::leak(Box::new(sealed));
    let path = sealed.path();
    // SAFETY: the image's constructors run. Its bytes are those whose headers were checked, and nobody can change
    // them; that its code is sound is the trust that loading a pack means.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let error = error.to_string().replace(&*path.to_string_lossy(), "it");
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
