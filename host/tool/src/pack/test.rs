//! `nxv pack test`: the conformance sweep with the kernels of one pack, in a process of its own, since a shader may end it.

use super::file::path;
use crate::{
    global::{Global, quoted},
    output::{Answer, Outcome, Problem, json},
    spec::Filter,
    sweep::Sweep,
};
use nx_vulkan_conformance::{
    session::{Session, With},
    sweep,
};
use nx_vulkan_host::{Error, Kind, device};
use nx_vulkan_registry::private::Temporary;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt::Write,
    io,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

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

    /// The file for what runs; with it the sweep is in this process
    #[arg(long, value_name = "FILE", hide = true)]
    running: Option<PathBuf>,
}

impl Test {
    /// Sweeps in a child process, which answers itself unless something ends it.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        if self.running.is_some() {
            return self.sweep(global);
        }
        let folder = Temporary::new()?;
        let file = folder.write("running", b"")?;
        let failed = |error: io::Error| Error::new(Kind::Io, error.to_string());
        let mut option = OsString::from("--running=");
        option.push(&file);
        let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let end = words.iter().position(|word| word == "--");
        words.insert(end.unwrap_or(words.len()), option);
        let own = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(own);
        let child = command.args(words).stdin(Stdio::piped()).spawn();
        let mut child = child.map_err(failed)?;
        // Open for as long as this process is there: its end is the child's.
        let lifeline = child.stdin.take();
        let status = child.wait().map_err(failed)?;
        drop(lifeline);
        match status.code() {
            Some(code) => Err(Problem::Told(code.try_into().unwrap_or(u8::MAX))),
            None => Ok(self.ended(global, &status.to_string(), &sweep::running(&file))),
        }
    }

    /// The outcome where something has ended the process in which these cases ran.
    fn ended(&self, global: &Global, status: &str, cases: &[String]) -> Outcome {
        let mut text = format!("FAILED: the process with the pack ended: {status}\n");
        if cases.is_empty() {
            text.push_str("  no case was running\n");
        }
        for case in cases {
            let _ = writeln!(text, "  it ran {case}");
        }
        let (file, global) = (quoted(&self.file.to_string_lossy()), global.again());
        let (seed, extent) = (self.sweep.seed, self.sweep.option());
        let op = self.op.as_ref();
        let op = op.map_or(String::new(), |op| format!(" --op '{op}'"));
        let _ = writeln!(
            text,
            "one at a time: nxv pack test {file} --threads 1{op} --seed {seed}{extent}{global}"
        );
        Outcome {
            text,
            json: serde_json::json!({ "ended": status, "running": cases }),
            holds: false,
        }
    }

    fn sweep(&self, global: &Global) -> Answer {
        thread::spawn(end_with_parent);
        let session = Session::new(&global.config(), &self.file, With::Nobody)?;
        let facts = &session.facts;
        let unknown = unknown(&session)?;
        let (config, op) = (&session.config, self.op.as_ref());
        let report =
            self.sweep
                .run(global, config, op, Some(&facts.id), self.running.as_deref())?;
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
        let failed: BTreeSet<&str> = report.failures.iter().map(|f| f.op.as_ref()).collect();
        for op in failed {
            let _ = writeln!(
                text,
                "again: nxv pack test {} --op {op} --seed {}{}{}",
                quoted(&self.file.to_string_lossy()),
                report.seed,
                self.sweep.option(),
                global.again()
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

/// Ends this process when the one that waits for it is gone, which holds the other end of its input.
fn end_with_parent() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(1);
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
