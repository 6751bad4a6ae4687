//! A loaded pack: its kernels, and its sources as they are served. In which order kernels are asked is the table's.

use super::{
    discover::FoundPack,
    image::{Planner, SourceContent, SourceFile},
    origin::Origin,
};
use nx_vulkan_abi::{DType, DTypeSet, Features, Numerics, Reply, Request};
use semver::Version;
use std::path::{Path, PathBuf};

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
}

/// A source file that was read from a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// Largest rank of a kernel.
pub(super) const MAX_RANK: u32 = 255;

/// A kernel of a loaded pack.
#[derive(Debug, Clone)]
pub struct KernelEntry {
    /// Index of its pack in [`crate::Table::packs`], once there is a table.
    pub pack: usize,
    /// Id, unique in the pack.
    pub id: String,
    /// Op that it runs.
    pub op: String,
    /// The pack's own number for it.
    pub row: u32,
    /// Element types that every input must be of.
    pub inputs: DTypeSet,
    /// Element types that every output must be of.
    pub outputs: DTypeSet,
    /// Device capabilities without which it is not asked.
    pub needs: Features,
    /// Promise about rounding.
    pub numerics: Numerics,
    /// Preference, 0 to 255; higher is asked first.
    pub rank: u32,
    pub(super) plan: Planner,
}

impl<'a> Glsl<'a> {
    /// A text that is no file.
    pub fn new(text: &'a str, origin: Origin) -> Glsl<'a> {
        Glsl {
            text,
            path: None,
            origin,
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
            text: &source.text,
            path: Some(&source.path),
            origin: Origin::Stranger,
        });
        edited.or_else(|| self.own_glsl(name))
    }

    /// As [`LoadedPack::glsl`], without what was edited.
    pub fn own_glsl(&self, name: &str) -> Option<Glsl<'_>> {
        let source = self.sources.iter().find(|source| source.name == name)?;
        match &source.content {
            SourceContent::Text(text) => Some(Glsl {
                text,
                path: source.path.as_deref(),
                origin: self.origin(),
            }),
            SourceContent::Spirv(_) => None,
        }
    }

    /// Whether both are packs without code that differ in their shaders only.
    pub fn differs_in_shaders(&self, other: &LoadedPack) -> bool {
        self.table.is_some() && self.table == other.table && self.sha256 != other.sha256
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

impl KernelEntry {
    /// Whether it is for operands and results of these types on a device of these capabilities, else why not.
    ///
    /// # Errors
    /// What it does not take, as text.
    pub fn takes(
        &self,
        inputs: &[DType],
        outputs: &[DType],
        device: Features,
    ) -> std::result::Result<(), String> {
        if let Some(dtype) = inputs.iter().find(|dtype| !self.inputs.has(**dtype)) {
            return Err(format!("it does not take {dtype}"));
        }
        if let Some(dtype) = outputs.iter().find(|dtype| !self.outputs.has(**dtype)) {
            return Err(format!("it does not give {dtype}"));
        }
        match device.has(self.needs) {
            true => Ok(()),
            false => Err("the device lacks what it needs".to_owned()),
        }
    }

    /// Asks the pack, or its table, how it would run `request`. \[thread-safe\]
    pub fn plan(&self, request: &Request<'_>) -> Reply {
        self.plan.plan(self.row, request)
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
    }
}
