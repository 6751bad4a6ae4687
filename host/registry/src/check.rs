//! Everything there is to say about a registry file, for people who write one; it is not used to load it.

use super::{
    codes::Code,
    config::Config,
    diagnostic::{Diagnostic, Severity},
    discover::{self, Rejected},
    document,
    loaded::{LoadedPack, loaded},
    names::{self, Known},
    options::Options,
};
use std::path::{Path, PathBuf};

/// What came of a check.
#[derive(Debug, serde::Serialize)]
pub struct Checked {
    /// The file.
    pub file: PathBuf,
    /// Whether a runtime would start with it.
    pub valid: bool,
    /// What is wrong or odd, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Ids of the packs that loaded; `None` where none was looked for.
    pub packs: Option<Vec<String>>,
    /// Pack files that did not load, and why.
    pub rejected: Vec<String>,
    /// Why packs that mode "locked" requires are not there, if so.
    pub failure: Option<String>,
}

/// Checks a file. With `packs` it also loads the packs that the file allows and checks the names in its rules.
pub fn check(path: &Path, packs: Option<&Options>) -> Checked {
    let mut checked = Checked {
        file: path.to_owned(),
        valid: false,
        diagnostics: Vec::new(),
        packs: None,
        rejected: Vec::new(),
        failure: None,
    };
    match document::diagnose(path) {
        Err(found) => checked.diagnostics = found,
        Ok(config) => checked.check_names(&config, packs),
    }
    let errors = checked.count(Severity::Error);
    checked.valid = errors == 0 && checked.failure.is_none();
    checked
}

impl Checked {
    /// How many errors or warnings there are.
    pub fn count(&self, severity: Severity) -> usize {
        let found = self.diagnostics.iter();
        found.filter(|one| one.severity == severity).count()
    }

    fn check_names(&mut self, config: &Config, packs: Option<&Options>) {
        self.diagnostics.extend(config.warnings.iter().cloned());
        self.diagnostics.extend(missing_folders(config));
        // It may be on its way to where nobody else can change it.
        self.diagnostics.extend(config.exposure(Severity::Warning));
        let mut named = Vec::new();
        match packs.map(|options| discover::packs(config, options)) {
            None => named = names::check(config, None),
            Some(Err(error)) => self.failure = Some(error.to_string()),
            Some(Ok(found)) => {
                self.rejected = found.rejected.iter().map(Rejected::to_string).collect();
                let mut packs: Vec<LoadedPack> = found.packs.into_iter().map(loaded).collect();
                packs.sort_by(|a, b| a.id.cmp(&b.id));
                let known = Known {
                    packs: &packs,
                    complete: self.rejected.is_empty(),
                };
                named = names::check(config, Some(known));
                self.packs = Some(packs.into_iter().map(|pack| pack.id).collect());
            }
        }
        self.diagnostics.extend(named);
        self.diagnostics
            .sort_by_key(|found| (found.line, found.column));
    }
}

fn missing_folders(config: &Config) -> Vec<Diagnostic> {
    let missing = config.folders.iter().filter(|(path, _)| !path.is_dir());
    missing
        .map(|(path, span)| {
            let message = format!("there is no folder {}", path.display());
            let source = &config.source;
            source.diagnostic(Code::NoFolder, Severity::Warning, span.clone(), message)
        })
        .collect()
}
