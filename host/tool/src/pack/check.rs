//! `nxv pack check`: each group of checks in a process of its own, so that a crash is a finding and not the end.

use super::{
    file,
    session::{Session, With},
};
use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
};
use nx_vulkan_conformance::vet::{self, Finding, GROUPS, Group, Report};
use nx_vulkan_registry as registry;
use std::{
    fmt::Write,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Seconds without progress after which a group is ended.
const TIMEOUT: u64 = 60;
/// Begins the lines by which a group tells what it is about to look at.
const PROGRESS: &str = "@ ";
const LONGEST: u64 = 86_400;
/// How long the end of a group's output may come after the end of its process.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes of a group's output that are kept.
const MOST: u64 = 16 << 20;

/// Runs every group in a child process, or with the option that children get, one group here.
pub(crate) fn run(arguments: &Arguments, operand: &str) -> Result<Outcome, Problem> {
    let path = file(operand)?;
    let seed = arguments
        .number("--seed")
        .map_err(Problem::Usage)?
        .unwrap_or(1u64);
    if let Some(name) = arguments.value("--group") {
        let group = GROUPS.iter().find(|row| row.0 == name);
        let group = group
            .ok_or_else(|| Problem::Usage(format!("there is no group {name}")))?
            .1;
        return one(arguments, &path, group, seed);
    }
    let seconds = arguments
        .number("--timeout")
        .map_err(Problem::Usage)?
        .unwrap_or(TIMEOUT);
    if !(1..=LONGEST).contains(&seconds) {
        return Err(Problem::Usage(format!(
            "--timeout: expected seconds, up to {LONGEST}, got: {seconds}"
        )));
    }
    let (mut text, mut groups, mut holds) = (String::new(), serde_json::Map::new(), true);
    let mut refused = false;
    for (name, _) in GROUPS {
        if refused {
            let _ = writeln!(text, "{name:8} not run");
            groups.insert(name.to_owned(), serde_json::Value::Null);
            continue;
        }
        let report = child(arguments, &path, name, seed, Duration::from_secs(seconds));
        let bad = report.findings.iter().any(|finding| finding.error);
        holds &= !bad;
        // What cannot be mapped cannot be asked either.
        refused = bad && matches!(name, "file" | "load") && !report.counts.contains_key("kernels");
        show(name, &report, bad, &mut text);
        groups.insert(name.to_owned(), json(&report));
    }
    if !holds {
        let _ = writeln!(text, "again: nxv pack check {operand} --seed {seed}");
    }
    let json = serde_json::json!({
        "file": path, "sha256": registry::sha256_of(&path).ok(), "seed": seed, "holds": holds, "groups": groups,
    });
    Ok(Outcome { text, json, holds })
}

/// One group in this process; its report goes to the process that asked for it.
fn one(arguments: &Arguments, path: &Path, group: Group, seed: u64) -> Result<Outcome, Problem> {
    let options = |config| vet::Options {
        file: path.to_owned(),
        config,
        seed,
        progress: |what| eprintln!("{PROGRESS}{what}"),
    };
    let report = match group {
        Group::File | Group::Load => vet::run(group, &options(arguments.config.clone()))?,
        Group::Plan | Group::Shaders => {
            let session = Session::new(&arguments.config, path, With::Nobody)?;
            vet::run(group, &options(session.config.clone()))?
        }
    };
    Ok(Outcome {
        text: format!("{:#}\n", json(&report)),
        json: json(&report),
        holds: true,
    })
}

/// Runs a group in a child process. Whatever ends the child but its report is a finding.
fn child(arguments: &Arguments, path: &Path, group: &str, seed: u64, limit: Duration) -> Report {
    let finding = |what: String| Report {
        findings: vec![Finding {
            error: true,
            at: group.to_owned(),
            what,
        }],
        ..Report::default()
    };
    match spawn(arguments, path, group, seed).and_then(|child| wait(child, limit)) {
        Ok(Ended::Answered(out)) => serde_json::from_slice(&out).unwrap_or_else(|_| {
            finding("the pack ended the process, or wrote to its output".to_owned())
        }),
        Ok(Ended::Failed(status, told)) => finding(match (told.errors.trim(), told.place) {
            // nxv itself gave up, and says why.
            (errors, _) if errors.lines().any(|line| line.starts_with("nxv: ")) => {
                errors.trim_start_matches("nxv: ").to_owned()
            }
            (errors, None) if !errors.is_empty() => format!("{status}: {errors}"),
            (errors, Some(place)) => {
                format!("the pack ended the process in {place}: {status} {errors}")
            }
            (_, None) => format!("the pack ended the process: {status}"),
        }),
        Ok(Ended::TooLong(told)) => finding(format!(
            "nothing happened for {} s{}",
            limit.as_secs(),
            told.place
                .map_or(String::new(), |place| format!(" in {place}"))
        )),
        Err(error) => finding(format!("the check could not be run: {error}")),
    }
}

fn spawn(arguments: &Arguments, path: &Path, group: &str, seed: u64) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "pack",
        "check",
        "--json",
        "--group",
        group,
        "--seed",
        &seed.to_string(),
    ]);
    for option in ["--device", "--cache"] {
        if let Some(value) = arguments.value(option) {
            command.arg(format!("{option}={value}"));
        }
    }
    command.arg("--").arg(path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn()
}

enum Ended {
    Answered(Vec<u8>),
    Failed(ExitStatus, Told),
    TooLong(Told),
}

/// What a group wrote to its standard error.
#[derive(Debug, Clone)]
struct Told {
    /// What it looked at last.
    place: Option<String>,
    errors: String,
    at: Instant,
}

/// Waits until the child ends, or until nothing happens for longer than `limit`.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Ended> {
    let told = Arc::new(Mutex::new(Told {
        place: None,
        errors: String::new(),
        at: Instant::now(),
    }));
    let listener = child.stderr.take().map(|pipe| {
        let told = told.clone();
        std::thread::spawn(move || listen(pipe, &told))
    });
    let reader = child.stdout.take().map(|pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A pipe that breaks ends the output; the exit status tells the rest.
            drop(pipe.take(MOST).read_to_end(&mut bytes));
            bytes
        })
    });
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if lock(&told).at.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::TooLong(lock(&told).clone()));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (out, listened) = (joined(reader), joined(listener).is_some());
    match status.success() && listened {
        true => Ok(Ended::Answered(out.unwrap_or_default())),
        false => Ok(Ended::Failed(status, lock(&told).clone())),
    }
}

/// What a thread answers, unless a process that the pack left behind keeps its pipe open.
fn joined<T>(thread: Option<JoinHandle<T>>) -> Option<T> {
    let (thread, start) = (thread?, Instant::now());
    while !thread.is_finished() {
        if start.elapsed() > GRACE {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    thread.join().ok()
}

fn listen(pipe: impl Read, told: &Mutex<Told>) {
    let lines = BufReader::new(pipe.take(MOST)).split(b'\n');
    for line in lines.map_while(Result::ok) {
        // A pack may write here too, and must not reach the terminal with control characters.
        let line: String = String::from_utf8_lossy(&line)
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let mut told = lock(told);
        told.at = Instant::now();
        match line.strip_prefix(PROGRESS) {
            Some(place) => told.place = Some(place.to_owned()),
            None => {
                told.errors.push_str(&line);
                told.errors.push('\n');
            }
        }
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show(name: &str, report: &Report, bad: bool, text: &mut String) {
    let counts: Vec<String> = report
        .counts
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    let verdict = if bad { "FAILED" } else { "ok" };
    let _ = writeln!(text, "{name:8} {verdict:6} {}", counts.join(", "));
    for finding in &report.findings {
        let kind = if finding.error { "error" } else { "warning" };
        let _ = writeln!(text, "  {kind}: {}: {}", finding.at, finding.what);
    }
}
