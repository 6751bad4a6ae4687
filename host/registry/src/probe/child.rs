//! The child process of a probe, from both sides: what it does, and how its parent waits for it.

use super::{Failure, Probed};
use crate::{diagnostic::clean, image::Image, loader::PackFile};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    ffi::OsString,
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt as _, ExitStatusExt as _},
        },
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of the child's output that are kept.
const MAX_OUTPUT: usize = 1 << 20;

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

/// A line of the child. Packs may print too, and theirs do not begin with this key.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    nxv_probe: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pack: Option<Probed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

const KEY: &str = "{\"nxv_probe\":";

/// What `nxv probe FILE` does: limits this process, tries the pack in it and prints the outcome. Answers whether the
/// pack may be loaded; ends the process in the ways that the pack finds.
pub fn serve(file: &Path) -> bool {
    limit();
    say(None, None);
    match attempt(file) {
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

fn attempt(file: &Path) -> Result<Probed, String> {
    let read = PackFile::read(file)?;
    read.inspect()?;
    let image = read.start(file)?;
    (image.retire)();
    Ok(probed(image))
}

fn probed(image: Image) -> Probed {
    let short = |list: Vec<String>| list.into_iter().take(MAX_LISTED).collect();
    Probed {
        id: image.id,
        version: image.version.to_string(),
        kernels: short(image.kernels.into_iter().map(|kernel| kernel.id).collect()),
        warnings: short(image.warnings),
    }
}

fn say(pack: Option<Probed>, error: Option<String>) {
    let line = Line {
        nxv_probe: VERSION.to_owned(),
        pack,
        error,
    };
    let text = serde_json::to_string(&line).expect("plain data has a form in JSON");
    let mut out = io::stdout().lock();
    // On a line of its own, whatever the pack printed before. A parent that went away is no reason to fail.
    let _ = writeln!(out, "\n{text}").and_then(|()| out.flush());
}

/// A broken pack leaves no core file, fills neither memory nor disk, and does not stay when the parent is gone.
fn limit() {
    let set = |what, value: u64| {
        let limit = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        // SAFETY: setrlimit reads one struct. Where it fails the child runs without that limit.
        unsafe { libc::setrlimit(what, &limit) };
    };
    set(libc::RLIMIT_CORE, 0);
    set(libc::RLIMIT_FSIZE, MAX_FILE);
    set(libc::RLIMIT_AS, MAX_MEMORY);
    // SAFETY: alarm takes a number; its signal ends this process, which is what is wanted.
    unsafe { libc::alarm(MAX_SECONDS) };
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
    pub(super) fn start(program: &Path, file: &Path) -> Result<Run, Failure> {
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
            // Where this process does not hear of its children, the end of their output has to do.
            let ended = has_ended(&self.child).unwrap_or(self.out.is_closed);
            if ended || Instant::now() >= until {
                break ended;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        let status = self.end();
        self.out.drain();
        self.err.drain();
        match in_time {
            true => self.judge(status),
            false => Err(self.late(timeout)),
        }
    }

    /// Ends what still runs of the child and all it started.
    fn end(&mut self) -> Option<ExitStatus> {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // SAFETY: kill takes two numbers. The group is the child's own, and its number is not given to another
            // one before the child is waited for, which comes after.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        self.child.wait().ok()
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
        let how = status.map_or("in an unknown way".to_owned(), how_it_ended);
        match (lines.next(), lines.next()) {
            (None, _) => Err(Failure {
                reason: format!(
                    "probe: {} is not an nxv that can try packs; it ended {how}{}",
                    self.program,
                    self.last_words()
                ),
                may_pass: true,
            }),
            (Some(Line { nxv_probe, .. }), _) if nxv_probe != VERSION => Err(Failure {
                reason: format!(
                    "probe: {} is nxv {}, this host is {VERSION}",
                    self.program,
                    clean(&nxv_probe, 40)
                ),
                may_pass: true,
            }),
            (
                _,
                Some(Line {
                    error: Some(error), ..
                }),
            ) => failure(clean(&error, 1000)),
            (
                _,
                Some(Line {
                    pack: Some(pack), ..
                }),
            ) if status.is_none_or(|s| s.success()) => Ok(pack),
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

    /// The panic that the child reported, else the last line it wrote on standard error, as an end of a sentence.
    fn last_words(&self) -> String {
        let text = self.err.text();
        let panic = text.split_once(" panicked at ").map(|(_, rest)| {
            let lines: Vec<&str> = rest.lines().take(2).collect();
            format!("panicked at {}", lines.join(" "))
        });
        let mut lines = text.lines().rev();
        let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
        let last = || lines.find(says).map(str::to_owned);
        match panic.or_else(last) {
            Some(words) => format!("; it said: {}", clean(&words, MAX_QUOTED)),
            None => String::new(),
        }
    }
}

/// Whether the child has ended; it stays to be waited for.
fn has_ended(child: &Child) -> io::Result<bool> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable and valid when zeroed; waitid fills it, or leaves it when nothing has ended.
    let (answer, pid) = unsafe {
        let answer = libc::waitid(libc::P_PID, child.id(), info.as_mut_ptr(), options);
        (answer, info.assume_init().si_pid())
    };
    match answer {
        0 => Ok(pid != 0),
        _ => Err(io::Error::last_os_error()),
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    const SIGNALS: &[(i32, &str)] = &[
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGSYS, "SIGSYS"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGXFSZ, "SIGXFSZ"),
    ];
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = SIGNALS.iter().find(|row| row.0 == signal);
            name.map_or(format!("by signal {signal}"), |row| format!("by {}", row.1))
        }
        (_, Some(code)) => format!("with exit status {code}"),
        _ => "in an unknown way".to_owned(),
    }
}

/// One output of the child, read without ever waiting: what the child started may hold the other end for ever.
#[derive(Debug)]
struct Output {
    stream: UnixStream,
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Output {
    fn new() -> io::Result<(Output, OwnedFd)> {
        let (stream, end) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let output = Output {
            stream,
            bytes: Vec::new(),
            is_closed: false,
        };
        Ok((output, end.into()))
    }

    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Reads what there is, within reason; beyond the limit it is thrown away, so that the child can go on.
    fn drain(&mut self) {
        let mut chunk = [0; 1 << 14];
        for _ in 0..64 {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    self.is_closed = true;
                    return;
                }
                Ok(count) if self.bytes.len() < MAX_OUTPUT => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
