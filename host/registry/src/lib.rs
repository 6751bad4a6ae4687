//! The registry: which kernel packs are loaded and in which order their kernels are asked; it runs nothing.
//!
//! [`load`] reads `registry.toml`, loads the packs and answers with an immutable [`Table`].
//! [`Table::candidates`] gives the kernels for one request, each to be asked or skipped with its reason.

mod admission;
pub mod cache;
mod check;
pub mod child;
mod codes;
mod condition;
mod config;
mod diagnostic;
mod discover;
mod document;
mod driver;
mod expression;
pub mod folder;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod image;
mod json_schema;
mod layout;
mod library;
mod loaded;
mod loader;
mod mapping;
mod marker;
mod names;
mod origin;
pub mod private;
pub mod probe;
pub mod quarantine;
mod reader;
mod reload;
pub mod request;
mod rules;
mod schema;
mod select;
mod selftest;
mod signature;
mod store;
mod table;
mod vet;

pub use check::{Checked, check};
pub use codes::Code;
pub use config::{Dev, Fallback, OnError, Order, Require, Trust, TrustedKey};
pub use diagnostic::{Diagnostic, Severity, clean, did_you_mean};
pub use discover::PACKS_VARIABLE;
pub use image::{SourceContent, SourceFile};
pub use loaded::{EditedSource, Glsl, KernelEntry, LoadedPack};
pub use nx_vulkan_ops::{Attr, AttrValue, DType, Error, Kind, Result};
pub use origin::Origin;
pub use reload::{Change, reload};
pub use select::{Asked, Candidate, CandidateKernel, CandidateOutcome, RuleVerdict};
pub use signature::comment as signed_comment;
pub use table::{Places, Rejected, Table};
pub use vet::{Described, FileFacts, describe_twice, facts, sha256_of};

use config::{Config, Mode};
use nx_vulkan_abi::Numerics;
use std::path::{Path, PathBuf};

/// Why a spare field that is not zero is refused: what it means is unknown here, and ignoring it may be wrong.
pub const NEWER: &str =
    "it sets a field that this ABI has no meaning for; the pack needs a newer host";

/// Environment variable that names the registry file where the application names none, or one in mode dev.
pub const REGISTRY_VARIABLE: &str = "NX_VULKAN_REGISTRY";

/// Where the registry and the packs are.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The registry file that the application names; without any, built-in defaults (mode dev, fallback host).
    pub registry: Option<PathBuf>,
    /// The file that the environment names. It is read in place of `registry`, unless that is in mode locked.
    pub registry_override: Option<PathBuf>,
    /// Folders searched before those of the registry file.
    pub packs: Vec<PathBuf>,
    /// Folder for crash markers, the quarantine and notes, unless the registry file names one. Created where missing; an
    /// empty path is none.
    pub store: PathBuf,
    /// The `nxv` executable that tries new packs in a process of its own, in mode dev. Without one they are not tried.
    pub prober: Option<PathBuf>,
    /// What the environment says. Mode locked takes none of it.
    pub environment: FromEnvironment,
}

/// What the environment says about packs, in mode dev.
#[derive(Debug, Clone, Default)]
pub struct FromEnvironment {
    /// Folders searched before all others.
    pub packs: Vec<PathBuf>,
    /// Takes the place of [`Options::store`].
    pub store: Option<PathBuf>,
    /// Takes the place of [`Options::prober`].
    pub prober: Option<PathBuf>,
}

impl Options {
    /// The folder of the store where the registry file names none.
    fn store(&self, is_locked: bool) -> Option<&Path> {
        let from_environment = self.environment.store.as_deref().filter(|_| !is_locked);
        let store = from_environment.unwrap_or(&self.store);
        Some(store).filter(|store| *store != Path::new(""))
    }
}

/// Reads the registry and loads its packs. It changes nothing that another table uses, so that a caller can keep the
/// table it has when this fails.
///
/// # Errors
/// [`crate::Kind::Registry`] when the file is missing or wrong, naming every mistake, and in locked mode
/// [`crate::Kind::Pack`] when a listed pack does not load. In dev mode such a pack is in [`Table::rejected`].
pub fn load(options: &Options) -> Result<Table> {
    let (config, path) = configuration(options)?;
    let found = discover::packs(&config, options)?;
    Table::new(config, path, found)
}

/// Folder of the store, where there is one.
///
/// # Errors
/// As [`load`], for the registry file.
pub fn store(options: &Options) -> Result<Option<PathBuf>> {
    let (config, _) = configuration(options)?;
    Ok(config.store(options).map(Path::to_owned))
}

/// The configuration in force and the file it comes from.
fn configuration(options: &Options) -> Result<(Config, Option<PathBuf>)> {
    let (config, path) = chosen(options)?;
    config.check_exposure()?;
    Ok((config, path))
}

fn chosen(options: &Options) -> Result<(Config, Option<PathBuf>)> {
    let other = options.registry_override.clone();
    let Some(named) = &options.registry else {
        let config = other
            .as_deref()
            .map_or_else(|| Ok(Config::default()), Config::read)?;
        return Ok((config, other));
    };
    let mut config = Config::read(named)?;
    let Some(other) = other.filter(|other| other != named) else {
        return Ok((config, Some(named.clone())));
    };
    if config.mode == Mode::Dev {
        let config = Config::read(&other)?;
        return Ok((config, Some(other)));
    }
    let message = format!(
        "mode \"locked\" stands, so ${REGISTRY_VARIABLE} does not count; it names {}",
        other.display()
    );
    let at = config.mode_at.unwrap_or(0);
    let ignored = config
        .source
        .diagnostic(Code::Overridden, Severity::Warning, at..at, message);
    config.warnings.push(ignored);
    Ok((config, Some(named.clone())))
}

/// The JSON Schema of `registry.toml`, for editors; `docs/registry.schema.json` is a copy.
pub fn json_schema() -> String {
    format!("{:#}\n", json_schema::of_the_file())
}

/// Names of the numerics classes, strictest first.
const NUMERICS: &[(&str, Numerics)] = &[
    ("exact", Numerics::EXACT),
    ("ieee", Numerics::IEEE),
    ("relaxed", Numerics::RELAXED),
];

/// Largest rank of a kernel.
const MAX_RANK: u32 = 255;

/// The target triple whose pins count.
pub fn target() -> String {
    let environment = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () => "",
    };
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin".to_owned(),
        os => format!("unknown-{os}{environment}"),
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether `text` can be a sha256.
fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether `id` can stand in `[pack.<id>]` and before the `/` of a rule.
fn is_pack_id(id: &str) -> bool {
    let ordinary = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !id.is_empty() && id != "host" && id.bytes().all(ordinary)
}

/// Whether `name` can be an id or an op of a kernel, or name a source file.
fn is_printable(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
}
