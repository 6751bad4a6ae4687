//! `nxv pack test`: the conformance sweep with the kernels of one pack.

use super::file::path;
use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, json},
    spec::Filter,
    sweep::Sweep,
};
use nx_vulkan_conformance::session::{Session, With};
use nx_vulkan_host::device;
use std::{fmt::Write, path::PathBuf};

/// Compare the pack's kernels with the CPU kernels.
///
/// Runs every kernel of the pack on every request of its op that it plans: three runs on reused buffers, with guards
/// around results.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code: 1 when a test fails.")]
pub(crate) struct Test {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long)]
    op: Option<Filter>,

    #[command(flatten)]
    sweep: Sweep,
}

impl Test {
    /// Sweeps with the kernels of the pack.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let session = Session::new(&global.config(), &self.file, With::Nobody)?;
        let facts = &session.facts;
        let unknown = unknown(&session)?;
        let (config, op) = (&session.config, self.op.as_ref());
        let report = self.sweep.run(global, config, op, Some(&facts.id))?;
        let validation = device::validation_messages();
        let declined: u64 = report.declined.values().sum();
        let run = report.cases - declined;
        let mut text = report.to_string();
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
                "again: nxv pack test {} --op {} --seed {}{}",
                self.file.display(),
                failure.op,
                report.seed,
                self.sweep.option()
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
