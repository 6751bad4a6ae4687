//! `nxv pack test`: the conformance sweep with the kernels of one pack.

use super::{
    file,
    session::{Session, With},
};
use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
};
use nx_vulkan_conformance::sweep;
use nx_vulkan_host::device;
use std::{
    fmt::Write,
    io::{IsTerminal, stderr},
};

/// Runs every kernel of the pack on every request of its op that it plans.
pub(crate) fn run(arguments: &Arguments, operand: &str) -> Result<Outcome, Problem> {
    let session = Session::new(&arguments.config, &file(operand)?, With::Nobody)?;
    let defaults = sweep::Options::default();
    let options = sweep::Options {
        seed: arguments
            .number("--seed")
            .map_err(Problem::Usage)?
            .unwrap_or(defaults.seed),
        filter: arguments.value("--op").map(str::to_owned),
        quick: arguments.has("--quick"),
        threads: arguments
            .number("--threads")
            .map_err(Problem::Usage)?
            .unwrap_or(defaults.threads),
        pack: Some(session.facts.id.clone()),
    };
    let unknown = unknown(&session)?;
    let shows = stderr().is_terminal();
    let report = sweep::run(&session.config, &options, &|done, all| {
        if shows {
            eprint!("\r{done} of {all}{}", if done == all { "\n" } else { "" });
        }
    })?;
    let validation = device::validation_messages();
    let declined: u64 = report.declined.values().sum();
    let run = report.cases - declined;
    let mut text = report.to_string();
    let facts = &session.facts;
    let _ = writeln!(
        text,
        "{} {} ran {run} requests and declined {declined}",
        facts.id, facts.version
    );
    for op in &unknown {
        let _ = writeln!(
            text,
            "NOT TESTED {op}: there is no CPU kernel to compare it with"
        );
    }
    for message in &validation {
        let _ = writeln!(text, "VALIDATION {message}");
    }
    if run == 0 {
        let _ = writeln!(
            text,
            "FAILED: the pack planned none of the requests on this device"
        );
    }
    for failure in &report.failures {
        let _ = writeln!(
            text,
            "again: nxv pack test {operand} --op {} --seed {}{}",
            failure.op,
            report.seed,
            if options.quick { " --quick" } else { "" }
        );
    }
    let holds = report.failed.is_empty() && validation.is_empty() && run > 0;
    let mut json = json(&report);
    json["pack"] = facts.id.as_str().into();
    json["version"] = facts.version.as_str().into();
    json["ran"] = run.into();
    json["not_tested"] = unknown.into();
    json["validation"] = validation.into();
    Ok(Outcome { text, json, holds })
}

/// Ops of the pack that the host does not run.
fn unknown(session: &Session) -> Result<Vec<String>, Problem> {
    let runtime = session.runtime()?;
    let table = runtime.table();
    let ops = table
        .packs
        .iter()
        .flat_map(|pack| pack.kernels.iter().map(|kernel| kernel.op.clone()));
    let mut ops: Vec<String> = ops
        .filter(|op| nx_vulkan_ops::ops().all(|known| known.name != op))
        .collect();
    ops.sort();
    ops.dedup();
    Ok(ops)
}
