//! Doors for the fuzz targets to the parsers of this folder.

use super::{Diagnostic, config::Config, loader};
use std::path::Path;

/// Everything that is looked at in a pack file before it is mapped; its id and version, or the refusal.
pub fn pack_file(bytes: &[u8]) -> Result<Option<String>, String> {
    let identity = loader::inspect(bytes)?;
    Ok(identity.map(|identity| identity.to_string()))
}

/// `registry.toml`; the refusal names every mistake.
pub fn registry(text: &str) -> Result<(), String> {
    let parsed = Config::parse(Path::new("registry.toml"), text.to_owned());
    let report = |found: Vec<Diagnostic>| {
        let reports: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        reports.join("\n")
    };
    parsed.map(drop).map_err(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_refused_registry_is_reported_with_its_place() {
        let report = super::registry("schema = 1\nmode = 3\n[search]\npaths = 4").unwrap_err();
        assert!(report.starts_with("registry.toml:2:"), "{report}");
        assert!(report.contains("\nregistry.toml:4:"), "{report}");
    }
}
