//! What is checked, and how.

use nx_vulkan_host::{Config, Error, Kind, Result, Runtime};
use nx_vulkan_registry as registry;
use std::{path::PathBuf, sync::Arc};

/// What to check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The pack's file.
    pub file: PathBuf,
    /// A configuration that loads this pack and no other.
    pub config: Config,
    /// Seed of the requests.
    pub seed: u64,
    /// Called with what is about to be looked at.
    pub progress: fn(&str),
}

impl Options {
    /// A runtime with the pack, and the pack's place in its table.
    pub(super) fn open(&self) -> Result<(Arc<Runtime>, usize)> {
        let sha256 = registry::sha256_of(&self.file)?;
        let runtime = Runtime::open(&self.config)?;
        let table = runtime.table();
        match table.packs.iter().position(|pack| pack.sha256 == sha256) {
            Some(place) => Ok((runtime, place)),
            None => {
                let why: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
                Err(Error::new(
                    Kind::Pack,
                    format!("the pack does not load: {}", why.join("; ")),
                ))
            }
        }
    }
}
