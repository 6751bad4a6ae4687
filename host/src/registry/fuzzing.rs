//! Doors for the fuzz targets to the parsers of this folder.

use super::{config::Config, loader};
use std::path::Path;

/// Everything that is looked at in a pack file before it is mapped; its id and version, or the refusal.
pub fn pack_file(bytes: &[u8]) -> Result<Option<String>, String> {
    let identity = loader::inspect(bytes)?;
    Ok(identity.map(|identity| identity.to_string()))
}

/// `registry.toml`; the refusal names every mistake.
pub fn registry(text: &str) -> Result<(), String> {
    let parsed = Config::parse(Path::new("registry.toml"), text.to_owned());
    parsed
        .map(drop)
        .map_err(|found| format!("{} mistakes", found.len()))
}
