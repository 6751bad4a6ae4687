//! `nxv registry`.

use crate::{
    global::Global,
    output::{Answer, Outcome, json, shown},
    verbs::verbs,
};
use nx_vulkan_registry::{Checked, Options, Severity, check, json_schema};
use std::{collections::HashSet, fmt::Write, path::PathBuf};

verbs! {
    /// Check a registry file before it is used.
    pub(crate) enum Verb {
        Check(Check),
        Schema(Schema),
    }
}

/// Every mistake in a registry file, with its place and its code.
///
/// docs/registry.md says what to do about each. Without --packs no pack is loaded, whatever the file names; with it,
/// those of its folders and of the file are, and the names in the rules are checked against them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: {file, valid, diagnostics: [{code, severity, file, line, column, message, excerpt}], packs, rejected, failure}.
Exit code: 1 when the file is not valid.")]
pub(crate) struct Check {
    /// The file; without it that of --registry, of $NX_VULKAN_REGISTRY, or registry.toml here
    file: Option<PathBuf>,
}

impl Check {
    fn run(&self, global: &Global) -> Answer {
        let config = global.config();
        let named = self.file.clone().or(config.registry.clone());
        let named = named.or(config.registry_override.clone());
        let file = named.unwrap_or_else(|| PathBuf::from("registry.toml"));
        // Packs are loaded only where `--packs` asks for it: this is safe on any file.
        let options = (!global.packs.is_empty()).then(|| Options {
            registry: None,
            registry_override: None,
            ..config.registry_options()
        });
        Ok(outcome(check(&file, options.as_ref())))
    }
}

/// The JSON Schema of the file, for editors.
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {}

impl Schema {
    fn run(&self, _: &Global) -> Answer {
        let text = json_schema();
        let json = serde_json::from_str(&text).expect("the schema is JSON");
        Ok(Outcome::good(text, json))
    }
}

fn outcome(mut checked: Checked) -> Outcome {
    for diagnostic in &mut checked.diagnostics {
        diagnostic.file = shown(&diagnostic.file).into();
    }
    checked.file = shown(&checked.file).into();
    // A folder may be named by the file and by --packs.
    let mut told = HashSet::new();
    checked.rejected.retain(|why| told.insert(why.clone()));
    Outcome {
        text: text(&checked),
        json: json(&checked),
        holds: checked.valid,
    }
}

fn text(checked: &Checked) -> String {
    let mut text = String::new();
    for diagnostic in &checked.diagnostics {
        let _ = writeln!(text, "{diagnostic}");
    }
    for rejected in &checked.rejected {
        let _ = writeln!(text, "rejected: {rejected}");
    }
    if let Some(failure) = &checked.failure {
        let _ = writeln!(text, "{failure}");
    }
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let errors = plural(checked.count(Severity::Error), "error");
    let warnings = plural(checked.count(Severity::Warning), "warning");
    let verdict = if checked.valid { "valid" } else { "not valid" };
    let file = checked.file.display();
    let _ = write!(text, "{file}: {verdict}, {errors}, {warnings}");
    if let Some(packs) = &checked.packs {
        let _ = write!(text, "; packs: {}", packs.join(", "));
    }
    text.push('\n');
    text
}
