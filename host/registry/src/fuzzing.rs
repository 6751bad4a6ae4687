//! Doors for the fuzz targets to the parsers of this folder.

use super::{
    diagnostic::Diagnostic,
    document, identity,
    library::Library,
    marker, probe, quarantine as set_aside,
    target::{HOST, Target},
};
use std::path::Path;

/// Everything that is looked at in a pack file before it is mapped, by a host of each format; what it exports and needs,
/// or the refusal.
pub fn pack_file(bytes: &[u8]) -> [Result<String, String>; 3] {
    ["linux", "macos", "windows"].map(|os| {
        let target = Target { os, ..HOST };
        let library = Library::read(bytes, target)?;
        let identity = identity::of(&library, target)?;
        let (exports, needed) = (library.exports()?.join(" "), library.needed.join(" "));
        Ok(format!("{identity} gives {exports}, needs {needed}"))
    })
}

/// `registry.toml`; the refusal names every mistake.
pub fn registry(text: &str) -> Result<(), String> {
    let parsed = document::parse(Path::new("registry.toml"), text.to_owned());
    let report = |found: Vec<Diagnostic>| {
        let reports: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        reports.join("\n")
    };
    parsed.map(drop).map_err(report)
}

/// `quarantine.toml`: hash and reason of each entry, or why the file is not understood.
pub fn quarantine(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let entries = set_aside::parsed(bytes)?;
    let shown = entries.into_iter().map(set_aside::shown);
    Ok(shown.map(|one| (one.sha256, one.reason)).collect())
}

/// The hash in the name of a crash marker.
pub fn marker(name: &str) -> Option<&str> {
    marker::sha256_in(name)
}

/// Whether a note says that the content with that hash went well.
pub fn probe_note(bytes: &[u8], sha256: &str) -> bool {
    probe::says_sound(bytes, sha256)
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
