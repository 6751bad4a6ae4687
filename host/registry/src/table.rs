//! The published table: the loaded packs and what the registry says about them, immutable once built.

use super::{
    config::{Config, Dev, Fallback, Measure, Mode, OnError, Order},
    diagnostic::{Diagnostic, Severity},
    discover::{Found, Rejected},
    loaded::LoadedPack,
    names::{self, Known},
    options::Options,
};
use nx_vulkan_abi::DeviceKind;
use nx_vulkan_ops::{Error, Kind, Result};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
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
    /// What is as it may be, such as an op that only a pack knows.
    pub notes: Vec<String>,
    /// What happens to requests that no pack plans.
    pub fallback: Fallback,
    /// The registry file, unless the built-in defaults hold.
    pub config_path: Option<PathBuf>,
    pub(super) config: Config,
    /// `(pack, kernel)` of every kernel of an op, by rank, priority, pack id and kernel id.
    pub(super) by_op: BTreeMap<String, Vec<(usize, usize)>>,
}

/// Where the files lie that make a [`Table`] and are watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl Table {
    /// Notes which packs somebody edits, where folders are watched and it comes after `old`.
    pub fn follow(&mut self, old: &Table) {
        if self.dev().watch.is_empty() {
            return;
        }
        for pack in &mut self.packs {
            if let Some(old) = old.packs.iter().find(|old| old.id == pack.id) {
                pack.follow(old);
            }
        }
    }

    /// What is watched, and how; nothing in mode locked.
    pub fn dev(&self) -> &Dev {
        &self.config.dev
    }

    /// Whether only listed and pinned packs are loaded.
    pub fn is_locked(&self) -> bool {
        self.config.mode == Mode::Locked
    }

    /// Whether a kernel of a pack is for that op.
    pub fn has_op(&self, op: &str) -> bool {
        self.by_op.contains_key(op)
    }

    /// Whether kernels are to be timed on a device of this kind: only where it would decide anything.
    pub fn measures(&self, device: DeviceKind) -> bool {
        self.config.measure == Measure::Cpu
            && device == DeviceKind::CPU
            && self.config.order.contains(&Order::Measured)
            && self.fallback == Fallback::Host
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
            notes,
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
            notes,
            fallback: config.fallback,
            config_path,
            config,
        })
    }

    /// The same rules over other packs.
    ///
    /// # Errors
    /// As [`super::load()`].
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
        let watched = &self.config.dev.watch;
        let is_path = |file: &Path| file.file_name() != Some(file.as_os_str());
        let all = Places {
            registry: self.config_path.clone(),
            search: search.cloned().collect(),
            named: files.filter(|file| is_path(file)).cloned().collect(),
            watched: watched.clone(),
        };
        match watched.is_empty() {
            false => all,
            // Only whoever names folders again is waited for.
            true => Places {
                registry: all.registry,
                ..Places::default()
            },
        }
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
