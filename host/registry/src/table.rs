//! The published table: the loaded packs and what the registry says about them, immutable once built.

use super::{
    Options,
    config::{Config, Dev, Fallback, Mode, OnError},
    diagnostic::{Diagnostic, Severity},
    discover::{Found, FoundPack},
    image::{Kernel, Planner, SourceContent, SourceFile},
    names::{self, Known},
};
use crate::{Error, Kind, Origin, Result};
use nx_vulkan_abi::{DType, DTypeSet, Features, Numerics, Reply, Request};
use semver::Version;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The packs of one load, in order of their ids, and the order in which their kernels are asked.
#[derive(Debug)]
pub struct Table {
    /// Number of this table in this process; every load has a higher one.
    pub generation: u64,
    /// Loaded packs, in order of their ids.
    pub packs: Vec<LoadedPack>,
    /// Files that were found and not loaded.
    pub rejected: Vec<Rejected>,
    /// What a user should know and what stops nothing.
    pub warnings: Vec<String>,
    /// What happens to requests that no pack plans.
    pub fallback: Fallback,
    /// The registry file, unless the built-in defaults hold.
    pub config_path: Option<PathBuf>,
    pub(super) config: Config,
    /// `(pack, kernel)` of every kernel of an op, by rank, priority, pack id and kernel id.
    pub(super) by_op: BTreeMap<String, Vec<(usize, usize)>>,
}

/// Where the files lie that make a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The registry file.
    pub registry: Option<PathBuf>,
    /// Folders with packs.
    pub search: Vec<PathBuf>,
    /// Packs that the registry names by their path.
    pub named: Vec<PathBuf>,
    /// Folders with shaders that stand in for those inside packs.
    pub watched: Vec<PathBuf>,
}

/// A file that was found and not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// The step that failed, and why.
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

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

/// A kernel of a loaded pack.
#[derive(Debug, Clone)]
pub struct KernelEntry {
    /// Index of its pack in [`Table::packs`].
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
    plan: Planner,
}

impl LoadedPack {
    /// Tells the pack that it is not asked any more: it ends its threads and drops its caches. It stays mapped, and is
    /// asked again when the same content comes back.
    pub fn retire(&self) {
        (self.retire)();
    }

    /// Whose its shaders are, as they are served.
    pub fn origin(&self) -> Origin {
        match self.edited.is_empty() {
            true => self.own_origin(),
            false => Origin::Stranger,
        }
    }

    /// As [`LoadedPack::origin`], without what was edited. What a library holds is no less safe than its code.
    pub fn own_origin(&self) -> Origin {
        match (&self.table, self.is_vouched) {
            (None, _) => Origin::Library,
            (Some(_), true) => Origin::Vouched,
            (Some(_), false) => Origin::Stranger,
        }
    }

    /// Text of the GLSL source file of that name, or `None`.
    pub fn glsl(&self, name: &str) -> Option<&str> {
        match self.edited.iter().find(|source| source.name == name) {
            Some(edited) => Some(&edited.text),
            None => self.own_glsl(name),
        }
    }

    /// As [`LoadedPack::glsl`], without what was edited.
    pub fn own_glsl(&self, name: &str) -> Option<&str> {
        match self.source(name)? {
            SourceContent::Text(text) => Some(text),
            SourceContent::Spirv(_) => None,
        }
    }

    /// Where the text that [`LoadedPack::glsl`] gives lies on disk; `None` for one inside a library.
    pub fn path_of(&self, name: &str) -> Option<&Path> {
        match self.edited.iter().find(|source| source.name == name) {
            Some(edited) => Some(&edited.path),
            None => self.own_path_of(name),
        }
    }

    /// As [`LoadedPack::path_of`], without what was edited.
    pub fn own_path_of(&self, name: &str) -> Option<&Path> {
        let source = self.sources.iter().find(|source| source.name == name)?;
        source.path.as_deref()
    }

    /// Whether both are packs without code that differ in their shaders only.
    pub fn differs_in_shaders(&self, other: &LoadedPack) -> bool {
        self.table.is_some() && self.table == other.table && self.sha256 != other.sha256
    }

    /// Words of the SPIR-V source file of that name, or `None`.
    pub fn spirv(&self, name: &str) -> Option<&[u32]> {
        match self.source(name)? {
            SourceContent::Spirv(words) => Some(words),
            SourceContent::Text(_) => None,
        }
    }

    fn source(&self, name: &str) -> Option<&SourceContent> {
        self.sources
            .iter()
            .find(|source| source.name == name)
            .map(|source| &source.content)
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

    pub(super) fn new(pack: usize, kernel: &Kernel) -> KernelEntry {
        let Kernel {
            id,
            op,
            row,
            inputs,
            outputs,
            needs,
            numerics,
            rank,
            plan,
        } = kernel.clone();
        KernelEntry {
            pack,
            id,
            op,
            row,
            inputs,
            outputs,
            needs,
            numerics,
            rank,
            plan,
        }
    }
}

impl Table {
    /// What is watched, and how; nothing in mode locked.
    pub fn dev(&self) -> &Dev {
        &self.config.dev
    }

    /// Whether only listed and pinned packs are loaded.
    pub fn is_locked(&self) -> bool {
        self.config.mode == Mode::Locked
    }

    /// What happens when a picked kernel fails.
    pub fn on_error(&self) -> OnError {
        self.config.on_error
    }

    /// Failures after which a kernel is no longer asked.
    pub fn quarantine_after(&self) -> u32 {
        self.config.quarantine_after
    }

    pub(super) fn new(config: Config, config_path: Option<PathBuf>, found: Found) -> Result<Table> {
        let mut found = found;
        let packs = found.take_packs();
        Table::assemble(config, config_path, packs, found)
    }

    /// A table of packs that are loaded already. Of `found` all but the packs counts.
    pub(super) fn assemble(
        config: Config,
        config_path: Option<PathBuf>,
        mut packs: Vec<LoadedPack>,
        found: Found,
    ) -> Result<Table> {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let Found {
            rejected,
            mut warnings,
            ..
        } = found;
        packs.sort_by(|a, b| a.id.cmp(&b.id));
        for (index, pack) in packs.iter_mut().enumerate() {
            pack.kernels
                .iter_mut()
                .for_each(|kernel| kernel.pack = index);
        }
        let known = Known {
            packs: &packs,
            complete: rejected.is_empty(),
        };
        let (errors, odd): (Vec<_>, Vec<_>) = names::check(&config, Some(known))
            .into_iter()
            .partition(|found| found.severity == Severity::Error);
        if !errors.is_empty() {
            let reports: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
            return Err(Error::new(Kind::Registry, reports.join("\n")));
        }
        warnings.extend(config.warnings.iter().chain(&odd).map(Diagnostic::line));
        Ok(Table {
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            by_op: index(&packs),
            packs,
            rejected,
            warnings,
            fallback: config.fallback,
            config_path,
            config,
        })
    }

    /// The same rules over other packs.
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn with_packs(&self, packs: Vec<LoadedPack>) -> Result<Table> {
        let (config, path) = (self.config.clone(), self.config_path.clone());
        let found = Found {
            rejected: self.rejected.clone(),
            ..Found::default()
        };
        Table::assemble(config, path, packs, found)
    }

    /// Folder of the crash markers and of the quarantine, where there is one.
    pub fn store<'a>(&'a self, options: &'a Options) -> Option<&'a Path> {
        self.config.store(options)
    }

    /// Where the files lie that make this table.
    pub fn places(&self, options: &Options) -> Places {
        let from_environment = options.environment.packs.iter();
        let search = from_environment
            .filter(|_| !self.is_locked())
            .chain(&options.packs)
            .chain(&self.config.paths);
        let files = self.config.packs.values();
        let files = files.filter_map(|entry| entry.file.as_ref());
        let is_path = |file: &Path| file.file_name() != Some(file.as_os_str());
        Places {
            registry: self.config_path.clone(),
            search: search.cloned().collect(),
            named: files.filter(|file| is_path(file)).cloned().collect(),
            watched: self.config.dev.watch.clone(),
        }
    }
}

impl Found {
    /// The packs, with what they had to say among the warnings.
    pub(super) fn take_packs(&mut self) -> Vec<LoadedPack> {
        let packs = std::mem::take(&mut self.packs);
        for pack in &packs {
            let own = pack.image.warnings.iter();
            let own = own.map(|warning| format!("pack {}: {warning}", pack.image.id));
            self.warnings.extend(own);
        }
        packs.into_iter().map(loaded).collect()
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
        kernels: image
            .kernels
            .iter()
            .map(|kernel| KernelEntry::new(0, kernel))
            .collect(),
        retire: image.retire,
        is_vouched,
        table: image.table.clone(),
    }
}

pub(super) fn index(packs: &[LoadedPack]) -> BTreeMap<String, Vec<(usize, usize)>> {
    let mut by_op: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (p, pack) in packs.iter().enumerate() {
        for (k, kernel) in pack.kernels.iter().enumerate() {
            by_op.entry(kernel.op.clone()).or_default().push((p, k));
        }
    }
    for kernels in by_op.values_mut() {
        kernels.sort_by_key(|&(p, k)| {
            let (pack, kernel) = (&packs[p], &packs[p].kernels[k]);
            (
                Reverse(kernel.rank),
                Reverse(pack.priority),
                &pack.id,
                &kernel.id,
            )
        });
    }
    by_op
}
