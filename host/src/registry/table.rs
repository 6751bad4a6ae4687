//! The published table: the loaded packs and what the registry says about them, immutable once built.

use super::{
    config::{Config, Dev, Fallback, Mode, OnError},
    diagnostic::{Diagnostic, Severity},
    discover::{Found, FoundPack},
    image::{Kernel, SourceContent, SourceFile},
    names::{self, Known},
};
use crate::{Error, Kind, Result};
use nx_vulkan_abi::{DTypeSet, Features, Numerics, Reply, Request};
use semver::Version;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    path::PathBuf,
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
    /// Shaders and headers.
    pub sources: Vec<SourceFile>,
    /// Kernels, in the pack's own order.
    pub kernels: Vec<KernelEntry>,
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
    plan: extern "C" fn(u32, &Request<'_>) -> Reply,
}

impl LoadedPack {
    /// Text of the GLSL source file of that name, or `None`.
    pub fn glsl(&self, name: &str) -> Option<&str> {
        match self.source(name)? {
            SourceContent::Text(text) => Some(text),
            SourceContent::Spirv(_) => None,
        }
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
    /// Asks the pack how it would run `request`. \[thread-safe\]
    pub fn plan(&self, request: &Request<'_>) -> Reply {
        (self.plan)(self.row, request)
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
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let Found {
            packs: found,
            rejected,
            mut warnings,
        } = found;
        for pack in &found {
            let own = pack.image.warnings.iter();
            warnings.extend(own.map(|warning| format!("pack {}: {warning}", pack.image.id)));
        }
        let packs = loaded(found);
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
}

/// The packs in order of their ids.
pub(super) fn loaded(mut found: Vec<FoundPack>) -> Vec<LoadedPack> {
    found.sort_by(|a, b| a.image.id.cmp(&b.image.id));
    let numbered = found.into_iter().enumerate();
    numbered
        .map(|(index, pack)| described(index, pack))
        .collect()
}

fn described(index: usize, pack: FoundPack) -> LoadedPack {
    let FoundPack {
        path,
        sha256,
        priority,
        image,
    } = pack;
    LoadedPack {
        id: image.id.clone(),
        version: image.version.clone(),
        path,
        sha256,
        priority,
        sources: image.sources.clone(),
        kernels: image
            .kernels
            .iter()
            .map(|kernel| KernelEntry::new(index, kernel))
            .collect(),
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
