//! The child process of a probe, from both sides: what it does, and how its parent waits for it.

use crate::{
    child::{self, Limits, Output},
    diagnostic::{NEXT_LINE, clean, clean_lines},
    image::Image,
    loader::PackFile,
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Characters of what a child said last that a message repeats.
const MAX_QUOTED: usize = 160;

/// Ids and warnings in a report; it stays small whatever the pack says.
const MAX_LISTED: usize = 1000;

/// Memory that a child may reserve.
const MAX_MEMORY: u64 = 4 << 30;

/// Bytes of a file that a child may write.
const MAX_FILE: u64 = 1 << 20;

/// Seconds after which a child ends even when nobody waits for it.
const MAX_SECONDS: u32 = 120;

/// Variables that a child needs to start.
const VARIABLES: &[&str] = &["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// What a pack that was tried says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Probed {
    /// Id of the pack.
    pub id: String,
    /// Version of the pack.
    pub version: String,
    /// Ids of its kernels.
    pub kernels: Vec<String>,
    /// What stops nothing and its author should know.
    pub warnings: Vec<String>,
}

/// Why a pack that was tried is not to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `step: reason`, in one line.
    pub reason: String,
    /// Whether it may go better another time: it did not finish, or it is not the pack's fault.
    pub may_pass: bool,
}

/// A line of the child. Packs may print too, and theirs do not begin with this key.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    nxv_probe: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pack: Option<Probed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether the error says nothing about the content that was to be tried.
    #[serde(default)]
    may_pass: bool,
}

const KEY: &str = "{\"nxv_probe\":";

/// What `nxv-child probe FILE [SHA256]` does: limits this process, tries the pack in it if it has that hash, and prints the
/// outcome. Answers whether the pack may be loaded; ends the process in the ways that the pack finds.
pub fn serve(file: &Path, sha256: Option<&str>) -> bool {
    // It does not stay when the parent is gone.
    child::end_after(MAX_SECONDS);
    say(None, None);
    match attempt(file, sha256) {
        Ok(pack) => {
            say(Some(pack), None);
            true
        }
        Err(error) => {
            say(None, Some(error));
            false
        }
    }
}

fn attempt(file: &Path, sha256: Option<&str>) -> Result<Probed, Failure> {
    let other_content = |reason: String| Failure {
        reason,
        may_pass: sha256.is_some(),
    };
    let read = PackFile::read(file).map_err(other_content)?;
    if sha256.is_some_and(|sha256| sha256 != read.sha256) {
        let reason = "probe: the file changed while it was tried".to_owned();
        return Err(other_content(reason));
    }
    let start = || {
        read.inspect()?;
        let sealed = read.seal(None).or_else(|_| read.in_place())?;
        // Before any of its code runs, and after the copy is made, which is larger than what the pack may write.
        child::limit(Limits {
            file: MAX_FILE,
            memory: Some(MAX_MEMORY),
        });
        read.start(sealed)
    };
    let image = start().map_err(|reason| Failure {
        reason,
        may_pass: false,
    })?;
    (image.retire)();
    Ok(probed(image))
}

fn probed(image: Image) -> Probed {
    let short = |list: Vec<String>| list.into_iter().take(MAX_LISTED).collect();
    Probed {
        id: image.id,
        version: image.version.to_string(),
        kernels: short(image.kernels.into_iter().map(|kernel| kernel.id).collect()),
        warnings: short([image.warnings, image.notes].concat()),
    }
}

fn say(pack: Option<Probed>, failure: Option<Failure>) {
    let line = Line {
        nxv_probe: VERSION.to_owned(),
        pack,
        may_pass: failure.as_ref().is_some_and(|failure| failure.may_pass),
        error: failure.map(|failure| failure.reason),
    };
    let text = serde_json::to_string(&line).expect("plain data has a form in JSON");
    let mut out = io::stdout().lock();
    // On a line of its own, whatever the pack printed before. A parent that went away is no reason to fail.
    let _ = writeln!(out, "\n{text}").and_then(|()| out.flush());
}

/// A child on its way.
#[derive(Debug)]
pub(super) struct Run {
    child: Child,
    program: String,
    out: Output,
    err: Output,
}

impl Run {
    pub(super) fn start(program: &Path, file: &Path, sha256: Option<&str>) -> Result<Run, Failure> {
        let unusable = |error: io::Error| Failure {
            reason: format!(
                "probe: the prober {} does not start: {error}",
                program.display()
            ),
            may_pass: true,
        };
        let (out, out_end) = Output::new().map_err(unusable)?;
        let (err, err_end) = Output::new().map_err(unusable)?;
        let kept = |name: &&str| Some((OsString::from(name), std::env::var_os(name)?));
        let mut command = Command::new(program);
        command
            .arg("probe")
            .arg(file)
            .args(sha256)
            .env_clear()
            .envs(VARIABLES.iter().filter_map(kept))
            .stdin(Stdio::null())
            .stdout(out_end)
            .stderr(err_end)
            // A group of its own, so that what it starts can be ended with it.
            .process_group(0);
        Ok(Run {
            child: command.spawn().map_err(unusable)?,
            program: program.display().to_string(),
            out,
            err,
        })
    }

    /// Waits, at most for `timeout`, and judges.
    pub(super) fn finish(mut self, timeout: Duration) -> Result<Probed, Failure> {
        let until = Instant::now() + timeout;
        let mut pause = Duration::from_micros(500);
        let in_time = loop {
            self.out.drain();
            self.err.drain();
            let ended = child::has_ended(&self.child);
            if ended || Instant::now() >= until {
                break ended;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        let status = child::end(&mut self.child, &mut self.out);
        self.err.drain();
        match in_time {
            true => self.judge(status),
            false => Err(self.late(timeout)),
        }
    }

    fn late(&self, timeout: Duration) -> Failure {
        let limit = timeout.as_secs_f32();
        Failure {
            reason: format!(
                "probe: it did not finish within {limit} s in a process of its own{}",
                self.last_words()
            ),
            may_pass: true,
        }
    }

    fn judge(&self, status: Option<ExitStatus>) -> Result<Probed, Failure> {
        let text = self.out.text();
        let ours = text.lines().filter(|line| line.starts_with(KEY));
        let mut lines = ours.filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let failure = |reason: String| {
            Err(Failure {
                reason,
                may_pass: false,
            })
        };
        let how = child::how_it_ended(status);
        match (lines.next(), lines.next()) {
            (None, _) => Err(Failure {
                reason: format!(
                    "probe: {} is not an nxv-child that can try packs; it ended {how}{}",
                    self.program,
                    self.last_words()
                ),
                may_pass: true,
            }),
            (Some(Line { nxv_probe, .. }), _) if nxv_probe != VERSION => Err(Failure {
                reason: format!(
                    "probe: {} is nxv-child {}, this host is {VERSION}",
                    self.program,
                    clean(&nxv_probe, 40)
                ),
                may_pass: true,
            }),
            (
                _,
                Some(Line {
                    error: Some(error),
                    may_pass,
                    ..
                }),
            ) => Err(Failure {
                reason: clean_lines(&error, NEXT_LINE, 1000),
                may_pass,
            }),
            (
                _,
                Some(Line {
                    pack: Some(pack), ..
                }),
            ) if status.is_some_and(|s| s.success()) => Ok(pack),
            (_, reported) => {
                let when = match reported {
                    None => "",
                    Some(_) => " when that was about to end well",
                };
                failure(format!(
                    "probe: it ended its process {how}{when}{}",
                    self.last_words()
                ))
            }
        }
    }

    /// What the child said last, as an end of a sentence.
    fn last_words(&self) -> String {
        match self.err.last_words() {
            Some(words) => format!("; it said: {}", clean(&words, MAX_QUOTED)),
            None => String::new(),
        }
    }
}
