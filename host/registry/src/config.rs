//! `registry.toml` as data; how it is read stands in `document`, what is loaded and chosen by it elsewhere.

use super::{
    codes::Code,
    diagnostic::{Diagnostic, Severity, SourceText},
    options::Options,
    rules::{Denial, Rule},
};
use nx_vulkan_abi::Numerics;
use nx_vulkan_ops::{Error, Kind, Result};
use semver::VersionReq;
use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

/// What happens to a request that no pack plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The CPU kernels run it.
    Host,
    /// It is an error, except where a rule names the host.
    Error,
}

/// Which packs may be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every pack found in the search folders.
    Dev,
    /// The packs listed in the file, each with the content that it pins.
    Locked,
}

/// What a pack file must show before it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// The sha256 that the registry pins.
    Sha256,
    /// A signature by the pack's `signer`.
    Signature,
    /// Both.
    Both,
    /// Nothing; only in mode dev.
    None,
}

/// A key whose signatures count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// What `signer` calls it.
    pub name: String,
    /// A minisign public key, as minisign prints it.
    pub key: String,
}

/// `[trust]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// What every pack must show. Without it: a sha256 in mode locked, nothing in mode dev.
    pub require: Require,
    /// The keys that `signer` may name.
    pub keys: Vec<TrustedKey>,
}

/// One criterion of the order in which kernels are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The position in the rule's `use`.
    Rule,
    /// The measured time, shortest first; kernels without one come after those with one.
    Measured,
    /// The kernel's rank, highest first.
    Rank,
    /// The pack's priority, highest first.
    Priority,
    /// The ids of pack and kernel.
    Name,
}

/// Where a runtime times kernels for [`Order::Measured`] by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// On a driver that runs on the CPU, where the CPU kernels may well be the faster ones.
    Cpu,
    /// Nowhere.
    Never,
}

/// What happens when a kernel that was picked fails while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The CPU kernel runs the request.
    RetryHost,
    /// The caller gets the error.
    Error,
}

/// `[dev]`: live reload, in mode dev only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dev {
    /// Folders that are watched; none: nothing is watched.
    pub watch: Vec<PathBuf>,
    /// How long a folder must be quiet before it is read, in milliseconds.
    pub settle_ms: u64,
    /// How often folders are compared where the system reports no changes, in milliseconds; 0: never.
    pub poll_ms: u64,
    /// Whether a pack is tried in a process of its own before it is loaded.
    pub probe: bool,
    /// How many versions of a pack can be gone back to.
    pub keep_versions: usize,
}

impl Default for Dev {
    fn default() -> Dev {
        Dev {
            watch: Vec::new(),
            settle_ms: 150,
            poll_ms: 0,
            probe: true,
            keep_versions: 3,
        }
    }
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) source: SourceText,
    pub(super) mode: Mode,
    /// Where `mode` is set, for messages.
    pub(super) mode_at: Option<usize>,
    pub(super) paths: Vec<PathBuf>,
    pub(super) store: Option<PathBuf>,
    pub(super) fallback: Fallback,
    /// Where `fallback` is set, for messages.
    pub(super) fallback_at: Option<usize>,
    pub(super) numerics: Numerics,
    pub(super) numerics_at: Option<usize>,
    pub(super) trust: Trust,
    pub(super) order: Vec<Order>,
    pub(super) measure: Measure,
    pub(super) on_error: OnError,
    /// Failures after which a kernel is no longer asked.
    pub(super) quarantine_after: u32,
    pub(super) dev: Dev,
    pub(super) packs: BTreeMap<String, PackEntry>,
    pub(super) rules: Vec<Rule>,
    pub(super) denials: Vec<Denial>,
    /// Folders that the file names, with their places in it.
    pub(super) folders: Vec<(PathBuf, Range<usize>)>,
    /// What is odd about the file and stops nothing.
    pub(super) warnings: Vec<Diagnostic>,
    /// Who else could have changed the file, each a sentence.
    pub(super) weaknesses: Vec<String>,
}

/// One `[pack.<id>]`.
#[derive(Debug, Clone)]
pub(super) struct PackEntry {
    pub(super) at: Range<usize>,
    pub(super) version: Option<VersionReq>,
    /// A bare file name, looked for in the search folders, or a path.
    pub(super) file: Option<PathBuf>,
    /// Name of the key in `[trust]` that signs it.
    pub(super) signer: Option<String>,
    pub(super) priority: i64,
    /// sha256 of the file for this target, in lower-case hex.
    pub(super) pin: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            source: SourceText::new(Path::new(""), String::new()),
            mode: Mode::Dev,
            mode_at: None,
            paths: Vec::new(),
            store: None,
            fallback: Fallback::Host,
            fallback_at: None,
            numerics: Numerics::IEEE,
            numerics_at: None,
            trust: Trust {
                require: Require::None,
                keys: Vec::new(),
            },
            order: vec![
                Order::Rule,
                Order::Measured,
                Order::Rank,
                Order::Priority,
                Order::Name,
            ],
            measure: Measure::Cpu,
            on_error: OnError::RetryHost,
            quarantine_after: 3,
            dev: Dev::default(),
            packs: BTreeMap::new(),
            rules: Vec::new(),
            denials: Vec::new(),
            folders: Vec::new(),
            warnings: Vec::new(),
            weaknesses: Vec::new(),
        }
    }
}

impl Config {
    /// The folder of the store.
    pub(super) fn store<'a>(&'a self, options: &'a Options) -> Option<&'a Path> {
        let named = self.store.as_deref();
        named.or_else(|| options.store(self.mode == Mode::Locked))
    }

    /// Refuses a file in mode locked that others could have changed: it says what is trusted.
    pub(super) fn check_exposure(&self) -> Result<()> {
        match self.exposure(Severity::Error) {
            None => Ok(()),
            Some(refused) => Err(Error::new(Kind::Registry, refused.to_string())),
        }
    }

    /// Who else could have changed a file in mode locked.
    pub(super) fn exposure(&self, severity: Severity) -> Option<Diagnostic> {
        if self.mode == Mode::Dev || self.weaknesses.is_empty() {
            return None;
        }
        let at = self.mode_at.unwrap_or(0);
        let message = format!(
            "mode \"locked\" needs a file that nobody else can change: {}",
            self.weaknesses.join("; ")
        );
        let source = &self.source;
        Some(source.diagnostic(Code::Exposed, severity, at..at, message))
    }
}
