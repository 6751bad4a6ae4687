//! `nxv registry`.

use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
};
use nx_vulkan_registry::{Checked, Options, Severity, check, json_schema};
use std::{fmt::Write, path::PathBuf};

const ACTIONS: &str = "registry needs an action: check [FILE] or schema";

/// Checks a registry file, or prints the schema of such files.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let operands: Vec<&str> = arguments.operands.iter().map(String::as_str).collect();
    match operands[..] {
        ["schema"] => {
            let text = json_schema();
            let json = serde_json::from_str(&text).expect("the schema is JSON");
            let holds = true;
            Ok(Outcome { text, json, holds })
        }
        ["check"] => Ok(outcome(&checked(arguments, file(arguments)))),
        ["check", file] => Ok(outcome(&checked(arguments, file.into()))),
        _ => Err(Problem::Usage(ACTIONS.to_owned())),
    }
}

/// The file in question, where none is given: that of the command line, of the environment, of this folder.
fn file(arguments: &Arguments) -> PathBuf {
    let config = &arguments.config;
    let named = config.registry.as_ref();
    let named = named.or(config.registry_override.as_ref());
    named.map_or_else(|| PathBuf::from("registry.toml"), PathBuf::clone)
}

/// Packs are loaded only where `--packs` asks for it: `registry check` is safe on any file.
fn checked(arguments: &Arguments, file: PathBuf) -> Checked {
    let options = arguments.has("--packs").then(|| Options {
        registry: None,
        registry_override: None,
        prober: None,
        ..arguments.config.registry_options()
    });
    check(&file, options.as_ref())
}

fn outcome(checked: &Checked) -> Outcome {
    Outcome {
        text: text(checked),
        json: json(checked),
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
