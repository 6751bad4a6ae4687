//! `nxv pack check`: each group of checks in a process of its own, so that a crash is a finding and not the end.

use super::file::path;
use crate::{
    asked::Asked,
    global::{Global, quoted},
    output::{Answer, Outcome, json},
    progress, spec,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use nx_vulkan_conformance::{
    session::{Session, With},
    vet::{self, Finding, GROUPS, Group, Report},
};
use nx_vulkan_registry as registry;
use parking_lot::Mutex;
use std::{
    ffi::OsString,
    fmt::Write,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Begins the lines by which a group tells what it is about to look at.
const PROGRESS: &str = "@ ";
/// How long the end of a group's output may come after the end of its process.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes of a group's output that are kept.
const MOST: u64 = 16 << 20;

/// Look for what would make the host refuse the pack or its plans.
///
/// Metadata, symbols, layout, purity and determinism of plan, hostile requests, shaders against what plans say of them.
/// Each group of checks runs in a process of its own, so that a crash is a finding.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code: 1 when a check fails.")]
pub(crate) struct Check {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// Other requests; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// This request too, as often as it is given: 'dot f16[512,512] f16[512,512]'. A kernel that plans none of the
    /// sweep's is looked at only where one is named
    #[arg(long, value_name = "REQUEST")]
    request: Vec<Asked>,

    /// Time without progress after which a group of checks is ended
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = spec::seconds)]
    timeout: Duration,

    /// The one group that runs, in this process
    #[arg(long, hide = true, value_parser = group())]
    group: Option<Group>,
}

/// Reads the name of a group.
fn group() -> impl TypedValueParser<Value = Group> {
    PossibleValuesParser::new(GROUPS.map(|row| row.0)).map(|name| {
        let row = GROUPS.into_iter().find(|row| row.0 == name);
        row.expect("one of the possible values").1
    })
}

impl Check {
    /// Runs every group in a child process, or with the option that children get, one group here.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        if let Some(group) = self.group {
            return self.one(global, group);
        }
        let (mut text, mut groups, mut holds) = (String::new(), serde_json::Map::new(), true);
        let mut refused = false;
        let bar = progress::bar(global);
        bar.set_length(GROUPS.len() as u64);
        for (name, _) in GROUPS {
            if refused {
                let _ = writeln!(text, "{name:8} not run");
                groups.insert(name.to_owned(), serde_json::Value::Null);
                continue;
            }
            bar.set_message(name);
            let report = self.child(global, name, &bar);
            bar.inc(1);
            let bad = report.findings.iter().any(|finding| finding.error);
            holds &= !bad;
            // What cannot be mapped cannot be asked either.
            refused =
                bad && matches!(name, "file" | "load") && !report.counts.contains_key("kernels");
            show(name, &report, bad, &mut text);
            groups.insert(name.to_owned(), json(&report));
        }
        drop(bar);
        if !holds {
            let file = quoted(&self.file.to_string_lossy());
            let _ = write!(text, "again: nxv pack check {file} --seed {}", self.seed);
            for asked in &self.request {
                let _ = write!(text, " --request {}", quoted(&asked.0.text));
            }
            let _ = writeln!(text, "{}", global.again());
        }
        let json = serde_json::json!({
            "file": self.file, "sha256": registry::sha256_of(&self.file).ok(), "seed": self.seed, "holds": holds,
            "groups": groups,
        });
        Ok(Outcome { text, json, holds })
    }

    /// One group in this process; its report goes to the process that asked for it.
    fn one(&self, global: &Global, group: Group) -> Answer {
        let options = |config| vet::Options {
            file: self.file.clone(),
            config,
            seed: self.seed,
            requests: self.request.iter().map(|asked| asked.0.clone()).collect(),
            progress: |what| eprintln!("{PROGRESS}{what}"),
        };
        let config = global.config();
        let report = match group {
            Group::File | Group::Load => vet::run(group, &options(config))?,
            Group::Plan | Group::Shaders => {
                let session = Session::new(&config, &self.file, With::Nobody)?;
                vet::run(group, &options(session.config.clone()))?
            }
        };
        let json = json(&report);
        Ok(Outcome::good(format!("{json:#}\n"), json))
    }

    /// Runs a group in a child process. Whatever ends the child but its report is a finding.
    fn child(&self, global: &Global, group: &'static str, bar: &ProgressBar) -> Report {
        let finding = |what: String| Report {
            findings: vec![Finding {
                error: true,
                at: group.to_owned(),
                what,
            }],
            ..Report::default()
        };
        let bar = bar.clone();
        let shown = move |place: &str| bar.set_message(format!("{group}: {place}"));
        let ended = self.spawn(global, group);
        match ended.and_then(|child| wait(child, self.timeout, shown)) {
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
                self.timeout.as_secs_f64(),
                told.place
                    .map_or(String::new(), |place| format!(" in {place}"))
            )),
            Err(error) => finding(format!("the check could not be run: {error}")),
        }
    }

    fn spawn(&self, global: &Global, group: &str) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["pack", "check", "--json", "--group", group]);
        command.arg(format!("--seed={}", self.seed));
        let requests = self.request.iter();
        command.args(requests.map(|asked| format!("--request={}", asked.0.text)));
        if let Some(device) = &global.device {
            command.arg(format!("--device={device}"));
        }
        if let Some(cache) = &global.cache {
            let mut option = OsString::from("--cache=");
            option.push(cache);
            command.arg(option);
        }
        command.arg("--").arg(&self.file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn()
    }
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

/// Waits until the child ends, or until nothing happens for longer than `limit`. `shown` is told what it looks at.
fn wait(
    mut child: Child,
    limit: Duration,
    shown: impl Fn(&str) + Send + 'static,
) -> std::io::Result<Ended> {
    let told = Arc::new(Mutex::new(Told {
        place: None,
        errors: String::new(),
        at: Instant::now(),
    }));
    let listener = child.stderr.take().map(|pipe| {
        let told = told.clone();
        std::thread::spawn(move || listen(pipe, &told, shown))
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
        if told.lock().at.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::TooLong(told.lock().clone()));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (out, listened) = (joined(reader), joined(listener).is_some());
    match status.success() && listened {
        true => Ok(Ended::Answered(out.unwrap_or_default())),
        false => Ok(Ended::Failed(status, told.lock().clone())),
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

fn listen(pipe: impl Read, told: &Mutex<Told>, shown: impl Fn(&str)) {
    let lines = BufReader::new(pipe.take(MOST)).split(b'\n');
    for line in lines.map_while(Result::ok) {
        // A pack may write here too, and must not reach the terminal with control characters.
        let line: String = String::from_utf8_lossy(&line)
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let mut told = told.lock();
        told.at = Instant::now();
        match line.strip_prefix(PROGRESS) {
            Some(place) => {
                shown(place);
                told.place = Some(place.to_owned());
            }
            None => {
                told.errors.push_str(&line);
                told.errors.push('\n');
            }
        }
    }
}

pub(super) fn show(name: &str, report: &Report, bad: bool, text: &mut String) {
    let counts: Vec<String> = report
        .counts
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    let verdict = if bad { "FAILED" } else { "ok" };
    let _ = writeln!(text, "{name:8} {verdict:6} {}", counts.join(", "));
    for finding in &report.findings {
        let kind = if finding.error { "error" } else { "warning" };
        let what = finding.what.replace('\n', "\n      ");
        let _ = writeln!(text, "  {kind}: {}: {what}", finding.at);
    }
}
