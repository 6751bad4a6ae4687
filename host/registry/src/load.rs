//! From the registry file in force to the table of its packs.

use super::{
    codes::Code,
    config::{Config, Mode},
    diagnostic::Severity,
    discover, document,
    options::{Options, REGISTRY_VARIABLE},
    table::Table,
};
use nx_vulkan_ops::Result;
use std::path::{Path, PathBuf};

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
/// As [`load()`], for the registry file.
pub fn store(options: &Options) -> Result<Option<PathBuf>> {
    let (config, _) = configuration(options)?;
    Ok(config.store(options).map(Path::to_owned))
}

/// The configuration in force and the file it comes from.
pub(super) fn configuration(options: &Options) -> Result<(Config, Option<PathBuf>)> {
    let (config, path) = chosen(options)?;
    config.check_exposure()?;
    Ok((config, path))
}

fn chosen(options: &Options) -> Result<(Config, Option<PathBuf>)> {
    let other = options.registry_override.clone();
    let Some(named) = &options.registry else {
        let config = other
            .as_deref()
            .map_or_else(|| Ok(Config::default()), document::read)?;
        return Ok((config, other));
    };
    let mut config = document::read(named)?;
    let Some(other) = other.filter(|other| other != named) else {
        return Ok((config, Some(named.clone())));
    };
    if config.mode == Mode::Dev {
        let config = document::read(&other)?;
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
