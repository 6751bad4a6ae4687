//! `nxv check`.

use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
    spec,
};
use nx_vulkan_conformance::sweep;
use nx_vulkan_host::device;
use std::{
    fmt::Write,
    io::{IsTerminal, stderr},
};

/// Runs the sweep.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let filter = arguments.value("--filter");
    spec::ops(filter).map_err(Problem::Usage)?;
    let defaults = sweep::Options::default();
    let options = sweep::Options {
        seed: arguments
            .number("--seed")
            .map_err(Problem::Usage)?
            .unwrap_or(defaults.seed),
        filter: filter.map(str::to_owned),
        quick: arguments.has("--quick"),
        threads: arguments
            .number("--threads")
            .map_err(Problem::Usage)?
            .unwrap_or(defaults.threads),
        pack: None,
    };
    let shows = stderr().is_terminal();
    let report = sweep::run(&arguments.config, &options, &|done, all| {
        if shows {
            eprint!("\r{done} of {all}{}", if done == all { "\n" } else { "" });
        }
    })?;
    let validation = device::validation_messages();
    let mut text = report.to_string();
    for message in &validation {
        let _ = writeln!(text, "VALIDATION {message}");
    }
    let holds = report.holds() && validation.is_empty();
    let mut json = json(&report);
    json["validation"] = validation.into();
    Ok(Outcome { text, json, holds })
}
