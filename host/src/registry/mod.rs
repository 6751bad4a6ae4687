//! The registry: which kernel packs are loaded and in which order their kernels are asked; it runs nothing.
//!
//! [`load`] reads `registry.toml`, loads the packs and answers with an immutable [`Table`].
//! [`Table::candidates`] gives the kernels for one request, each to be asked or skipped with its reason.

mod config;
mod diagnostic;
mod discover;
mod elf;
pub mod folder;
mod image;
mod layout;
mod loader;
mod ops;
mod reader;
mod select;
mod store;
mod table;

pub use config::Fallback;
pub use image::{SourceContent, SourceFile};
pub use select::{Candidate, CandidateKernel, CandidateOutcome};
pub use table::{KernelEntry, LoadedPack, Rejected, Table};

use crate::Result;
use config::Config;
use nx_vulkan_abi::Numerics;
use std::path::PathBuf;

/// Environment variable that names the registry file when the caller does not.
pub const REGISTRY_VARIABLE: &str = "NX_VULKAN_REGISTRY";

/// Where the registry and the packs are.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The registry file; else `$NX_VULKAN_REGISTRY`; else built-in defaults (mode dev, fallback host).
    pub registry: Option<PathBuf>,
    /// Folders searched before those of the registry file.
    pub packs: Vec<PathBuf>,
    /// Folder for private copies of pack files, unless the registry file names one. Created where missing.
    pub store: PathBuf,
}

/// Reads the registry and loads its packs.
///
/// Fails with [`crate::Kind::Registry`] when the file is missing or wrong, naming every mistake, and in locked mode
/// with [`crate::Kind::Pack`] when a listed pack does not load. In dev mode such a pack is in [`Table::rejected`].
pub fn load(options: &Options) -> Result<Table> {
    let named = options.registry.clone().or_else(|| {
        std::env::var_os(REGISTRY_VARIABLE)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    });
    let config = match &named {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let found = discover::packs(&config, options)?;
    Table::new(config, named, found)
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
fn target() -> String {
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

/// Whether `id` can stand in `[pack.<id>]` and before the `/` of a rule.
fn is_pack_id(id: &str) -> bool {
    let ordinary = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !id.is_empty() && id != "host" && id.bytes().all(ordinary)
}

/// Whether `name` can be an id or an op of a kernel, or name a source file.
fn is_printable(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
}
