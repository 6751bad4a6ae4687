//! A loaded pack, and its sources as they are served.

use super::{
    image::{Image, SourceContent, SourceFile},
    kernel::KernelEntry,
    origin::Origin,
};
use semver::Version;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A pack that is mapped and described. It stays mapped for ever.
#[derive(Debug, Clone)]
pub struct LoadedPack {
    /// Id of the pack.
    pub id: String,
    /// Version of the pack.
    pub version: Version,
    /// The file it was found in. What is mapped is a private copy.
    pub path: PathBuf,
    /// sha256 of the file, in lower-case hex.
    pub sha256: String,
    /// Preference among kernels of equal rank; higher is asked first.
    pub priority: i64,
    /// Shaders and headers, as they are in the pack's file.
    pub sources: Vec<SourceFile>,
    /// Shaders and headers that were edited since, which are served in place of those of the same name.
    pub edited: Vec<EditedSource>,
    /// Kernels, in the pack's own order.
    pub kernels: Vec<KernelEntry>,
    retire: extern "C" fn(),
    is_vouched: bool,
    /// Text of the table of a pack without code.
    table: Option<String>,
    /// Whether it is one that was edited since the process began.
    is_edit: bool,
}

/// A loaded pack with its origin.
#[derive(Debug)]
pub(super) struct FoundPack {
    pub(super) path: PathBuf,
    pub(super) sha256: String,
    pub(super) priority: i64,
    /// Whether the registry names its content or its signer.
    pub(super) is_vouched: bool,
    pub(super) image: Arc<Image>,
}

/// A source file that was read from a watched folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EditedSource {
    /// Name of the source that it stands for.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// A GLSL file as it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glsl<'a> {
    /// Its text.
    pub text: &'a str,
    /// Where it lies on disk; `None` for one inside a library.
    pub path: Option<&'a Path>,
    /// Who wrote it.
    pub origin: Origin,
    /// Whether this library put it together, of whatever: nobody looks for errors in what such a text does not use.
    pub is_generated: bool,
}

impl<'a> Glsl<'a> {
    /// A text that is no file.
    pub fn new(text: &'a str, origin: Origin) -> Glsl<'a> {
        Glsl {
            text,
            path: None,
            origin,
            is_generated: false,
        }
    }
}

impl LoadedPack {
    /// Tells the pack that it is not asked any more: it ends its threads and drops its caches. It stays mapped, and is
    /// asked again when the same content comes back.
    pub fn retire(&self) {
        (self.retire)();
    }

    /// Whose its own shaders are. What a library holds is no less safe than its code.
    pub fn origin(&self) -> Origin {
        match (&self.table, self.is_vouched) {
            (None, _) => Origin::Library,
            (Some(_), true) => Origin::Vouched,
            (Some(_), false) => Origin::Stranger,
        }
    }

    /// The GLSL source file of that name as it is served, or `None`.
    pub fn glsl(&self, name: &str) -> Option<Glsl<'_>> {
        let edited = self.edited.iter().find(|source| source.name == name);
        let edited = edited.map(|source| Glsl {
            path: Some(&source.path),
            ..Glsl::new(&source.text, Origin::Stranger)
        });
        edited.or_else(|| self.own_glsl(name))
    }

    /// What times of its kernels are kept by. `None` where it was edited: whoever does that wants to see it serve.
    pub fn timed_as(&self) -> Option<&str> {
        (self.edited.is_empty() && !self.is_edit).then_some(&*self.sha256)
    }

    /// Notes whether it is a pack without code that somebody edits, if it comes after `old` while folders are watched.
    pub(super) fn follow(&mut self, old: &LoadedPack) {
        let is_other = self.sha256 != old.sha256;
        self.is_edit = self.table.is_some() && (old.is_edit || is_other && self.path == old.path);
    }

    /// As [`LoadedPack::glsl`], without what was edited.
    pub fn own_glsl(&self, name: &str) -> Option<Glsl<'_>> {
        let source = self.sources.iter().find(|source| source.name == name)?;
        match &source.content {
            SourceContent::Text(text) => Some(Glsl {
                path: source.path.as_deref(),
                ..Glsl::new(text, self.origin())
            }),
            SourceContent::Spirv(_) => None,
        }
    }

    /// Whether both are packs without code that differ in their shaders only.
    pub fn differs_in_shaders(&self, other: &LoadedPack) -> bool {
        self.table.is_some() && self.table == other.table && self.sha256 != other.sha256
    }

    /// Whether it makes the plans that `old` makes, of which it may be an edit.
    pub fn plans_as(&self, old: &LoadedPack) -> bool {
        self.id == old.id && (self.sha256 == old.sha256 || self.differs_in_shaders(old))
    }

    /// Whether it is `old` with a shader emptied, as many editors do before they write it.
    pub fn is_being_written(&self, old: &LoadedPack) -> bool {
        let is_emptied = |source: &SourceFile| {
            let now = self.own_glsl(&source.name).map(|glsl| glsl.text);
            let before = old.own_glsl(&source.name).map(|glsl| glsl.text);
            now.is_some_and(str::is_empty) && before.is_some_and(|text| !text.is_empty())
        };
        self.differs_in_shaders(old) && self.sources.iter().any(is_emptied)
    }

    /// Words of the SPIR-V source file of that name, or `None`.
    pub fn spirv(&self, name: &str) -> Option<&[u32]> {
        let source = self.sources.iter().find(|source| source.name == name)?;
        match &source.content {
            SourceContent::Spirv(words) => Some(words),
            SourceContent::Text(_) => None,
        }
    }
}

pub(super) fn loaded(pack: FoundPack) -> LoadedPack {
    let FoundPack {
        path,
        sha256,
        priority,
        is_vouched,
        image,
    } = pack;
    LoadedPack {
        id: image.id.clone(),
        version: image.version.clone(),
        path,
        sha256,
        priority,
        sources: image.sources.clone(),
        edited: Vec::new(),
        kernels: image.kernels.clone(),
        retire: image.retire,
        is_vouched,
        table: image.table.clone(),
        is_edit: false,
    }
}
