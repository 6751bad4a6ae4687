//! The published table: the loaded packs and what the registry says about them, immutable once built.

use super::{
    config::{Config, Fallback, Mode, Use},
    diagnostic::did_you_mean,
    discover::{Found, FoundPack},
    image::{Kernel, Planner, SourceContent, SourceFile},
    select::glob,
};
use crate::{Error, Kind, Result};
use nx_vulkan_abi::{DTypeSet, Features, Numerics, Reply, Request};
use semver::Version;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    ops::Range,
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
    plan: Planner,
}

impl LoadedPack {
    /// Text of the GLSL source file of that name, or `None`.
    pub fn glsl(&self, name: &str) -> Option<&str> {
        match self.source(name)? {
            SourceContent::Text(text) => Some(text),
            SourceContent::Spirv(_) => None,
        }
    }

    /// Where the source file of that name lies on disk; `None` for one inside a library.
    pub fn path_of(&self, name: &str) -> Option<&Path> {
        let source = self.sources.iter().find(|source| source.name == name)?;
        source.path.as_deref()
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
    /// Asks the pack, or its table, how it would run `request`. \[thread-safe\]
    pub fn plan(&self, request: &Request<'_>) -> Reply {
        match &self.plan {
            Planner::Code(plan) => plan(self.row, request),
            Planner::Table(table) => table.plan(request),
        }
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
    pub(super) fn new(config: Config, config_path: Option<PathBuf>, found: Found) -> Result<Table> {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let Found {
            packs: mut found,
            rejected,
            mut warnings,
        } = found;
        found.sort_by(|a, b| a.image.id.cmp(&b.image.id));
        for pack in &found {
            let own = pack.image.warnings.iter();
            warnings.extend(own.map(|warning| format!("pack {}: {warning}", pack.image.id)));
        }
        let packs: Vec<LoadedPack> = found
            .into_iter()
            .enumerate()
            .map(|(index, pack)| loaded(index, pack))
            .collect();
        let mut table = Table {
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            by_op: index(&packs),
            packs,
            rejected,
            warnings,
            fallback: config.fallback,
            config_path,
            config,
        };
        table.check_rules()?;
        Ok(table)
    }

    /// Rules that name what is not there, or that no request reaches.
    fn check_rules(&mut self) -> Result<()> {
        let mut unknown = Vec::new();
        for (entry, span) in self.config.rules.iter().flat_map(|rule| &rule.uses) {
            unknown.extend(self.unknown(entry).map(|why| (span.clone(), why)));
        }
        let ids = self.packs.iter().map(|pack| pack.id.as_str());
        let listed = self.config.packs.keys().map(String::as_str);
        for denial in &self.config.denials {
            if !ids
                .clone()
                .chain(listed.clone())
                .any(|id| id == denial.pack)
            {
                let hint = did_you_mean(&denial.pack, ids.clone().chain(listed.clone()));
                let why = format!(
                    "no pack `{}` is loaded, so this denies nothing{hint}",
                    denial.pack
                );
                self.warnings.push(format!(
                    "{}: {why}",
                    self.config.source.line(denial.at.start)
                ));
            }
        }
        for (earlier, later) in shadowed(&self.config) {
            let (earlier, later) = (
                self.config.source.line(earlier),
                self.config.source.line(later),
            );
            self.warnings.push(format!(
                "{later}: the rule is never reached, {earlier} matches first"
            ));
        }
        if self.config.mode == Mode::Locked && !unknown.is_empty() {
            let reports = unknown
                .into_iter()
                .map(|(span, why)| self.config.source.report(span, &why));
            return Err(Error::new(
                Kind::Registry,
                reports.collect::<Vec<_>>().join("\n"),
            ));
        }
        let warnings = unknown
            .into_iter()
            .map(|(span, why): (Range<usize>, String)| {
                format!("{}: {why}", self.config.source.line(span.start))
            });
        self.warnings.extend(warnings);
        Ok(())
    }

    fn unknown(&self, entry: &Use) -> Option<String> {
        let (Use::Kernel(id, _) | Use::Pack(id)) = entry else {
            return None;
        };
        let Some(pack) = self.packs.iter().find(|pack| pack.id == *id) else {
            let hint = did_you_mean(id, self.packs.iter().map(|pack| pack.id.as_str()));
            return Some(format!("no pack `{id}` is loaded{hint}"));
        };
        let Use::Kernel(_, kernel) = entry else {
            return None;
        };
        let ids = pack.kernels.iter().map(|k| k.id.as_str());
        if ids.clone().any(|id| id == kernel) {
            return None;
        }
        Some(format!(
            "pack `{id}` has no kernel `{kernel}`{}",
            did_you_mean(kernel, ids)
        ))
    }
}

fn loaded(index: usize, pack: FoundPack) -> LoadedPack {
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

/// Pairs of rules of which the first takes every request of the second.
fn shadowed(config: &Config) -> impl Iterator<Item = (usize, usize)> {
    config
        .rules
        .iter()
        .enumerate()
        .filter_map(|(index, later)| {
            let covers = |earlier: &&super::config::Rule| {
                earlier
                    .dtypes
                    .is_none_or(|types| later.dtypes.is_some_and(|own| own.0 & !types.0 == 0))
                    && glob(&earlier.name, &later.name)
            };
            let earlier = config.rules[..index].iter().find(covers)?;
            Some((earlier.at.start, later.at.start))
        })
}
