//! One child of a builder, as its parent sees it: started, asked, watched while it works, and judged when it ends.

use super::message::{self, Job, Reply, VERSION};
use nx_vulkan_registry::{
    self as registry,
    child::{self, Output},
};
use std::{
    ffi::OsString,
    io::{self, ErrorKind, Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt as _},
    path::Path,
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The verb of the child.
pub const VERB: &str = "build-server";

/// How often a child that works is looked at.
const TICK: Duration = Duration::from_millis(10);

/// How long a child whose stream has ended may take to end, and to tell how.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Characters of what a child said last that a message repeats.
const MAX_QUOTED: usize = 160;

/// Variables that the Vulkan loader and drivers find themselves and their caches by, and by the start of their names
/// those that change what drivers compile. Layers are left out: they are for the process that computes.
const VARIABLES: &[&str] = &["HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];
const PREFIXES: &[&str] = &[
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_",
    "VK_LOADER_LAYERS_DISABLE",
    "XDG_",
    "MESA_",
    "LP_",
    "GALLIVM_",
    "RADV_",
    "ANV_",
    "__GL_",
    "NVIDIA_",
];

/// What a child may take for one job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) time: Duration,
    /// Bytes of memory in use.
    pub(super) memory: u64,
}

/// A child that waits for jobs.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    /// The process that works: the child, or one that the child waits for.
    process: u32,
    /// It has ended, and was waited for.
    is_over: bool,
    stream: UnixStream,
    out: Output,
    err: Output,
    is_greeted: bool,
    is_told: bool,
    pub(super) idle_since: Instant,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It ended by itself before it was asked.
    Before,
    /// It ended: how, and what it said last.
    Died(String),
    /// It was ended when the time was over.
    Late,
    /// It was ended when it used that many bytes.
    Memory(u64),
    /// It was ended because nobody wants the answer any more.
    Stopped,
    /// It is no program that builds shaders, or another version.
    Unusable(String),
}

impl Worker {
    pub(super) fn start(program: &Path, limits: Limits) -> io::Result<Worker> {
        let (stream, end) = UnixStream::pair()?;
        let (out, out_end) = Output::new()?;
        let (err, err_end) = Output::new()?;
        let wanted = |name: &OsString| {
            let name = name.to_string_lossy();
            VARIABLES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut command = Command::new(program);
        command
            .arg(VERB)
            .arg(limits.time.as_secs().saturating_add(1).to_string())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| wanted(name)))
            .stdin(OwnedFd::from(end))
            .stdout(out_end)
            .stderr(err_end)
            .process_group(0);
        let child = command.spawn()?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(Worker {
            process: child.id(),
            is_over: false,
            child,
            stream,
            out,
            err,
            is_greeted: false,
            is_told: false,
            idle_since: Instant::now(),
        })
    }

    /// Whether it still waits for jobs.
    pub(super) fn is_alive(&mut self) -> bool {
        if child::has_ended(&self.child) {
            // Where children are ignored its number may be another one's by now.
            self.is_over = true;
            drop(self.child.wait());
        }
        !self.is_over
    }

    /// Says once for which device it builds.
    pub(super) fn tell(&mut self, device: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            // What is wrong with it is seen when it is asked.
            drop(
                self.stream
                    .write_all(&Job::Open(device.to_owned()).encode()),
            );
        }
    }

    /// Asks, and waits for the answer as long as the limits allow or until `stop` is set. Anything but an answer is
    /// the end of the child.
    pub(super) fn ask(
        &mut self,
        job: &Job,
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<Reply, Ended> {
        let watch = Watch {
            until: Instant::now() + limits.time,
            memory: limits.memory,
            stop,
        };
        self.out.clear();
        self.err.clear();
        if !self.is_greeted {
            let hello = self.receive(&watch);
            match hello {
                Ok(Reply::Hello(version, process)) if version == VERSION => {
                    self.is_greeted = true;
                    self.process = process.unwrap_or(self.process);
                }
                Ok(Reply::Hello(version, _)) => {
                    let version = registry::clean(&version, 40);
                    return Err(Ended::Unusable(format!(
                        "is nxv-child {version}, this host is {VERSION}"
                    )));
                }
                Ok(_) => return Err(Ended::Unusable("does not say what it is".to_owned())),
                Err(Ended::Before) => return Err(Ended::Unusable(self.none_of_ours("at once"))),
                Err(Ended::Died(how)) => return Err(Ended::Unusable(self.none_of_ours(&how))),
                Err(ended) => return Err(ended),
            }
        }
        self.send(&job.encode(), &watch)?;
        self.receive(&watch)
    }

    fn none_of_ours(&self, how: &str) -> String {
        format!("is not an nxv-child that builds shaders; it ended {how}")
    }

    fn send(&mut self, mut bytes: &[u8], watch: &Watch<'_>) -> Result<(), Ended> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => self.interrupted(&error, watch)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, watch: &Watch<'_>) -> Result<Reply, Ended> {
        let mut frame = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(self.ended(frame.is_empty())),
                Ok(count) => frame.extend_from_slice(&chunk[..count]),
                Err(error) => self.interrupted(&error, watch)?,
            }
            let nonsense = || Ended::Died("after it answered with something else".to_owned());
            match message::frame_len(&frame).map_err(|_| nonsense())? {
                Some(len) if frame.len() == len => {
                    return Reply::decode(&frame[4..]).ok_or_else(nonsense);
                }
                Some(len) if frame.len() > len => return Err(nonsense()),
                _ => {}
            }
        }
    }

    /// What to do when nothing could be sent or received: go on, or not.
    fn interrupted(&mut self, error: &io::Error, watch: &Watch<'_>) -> Result<(), Ended> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
            _ => return Err(self.ended(true)),
        }
        self.out.drain();
        self.err.drain();
        if watch.stop.load(Ordering::Acquire) {
            return Err(Ended::Stopped);
        }
        if Instant::now() >= watch.until {
            return Err(Ended::Late);
        }
        match resident(self.process) {
            Some(bytes) if bytes > watch.memory => Err(Ended::Memory(bytes)),
            _ => Ok(()),
        }
    }

    /// How it ended, with `in_silence` when it gave no part of an answer.
    fn ended(&mut self, in_silence: bool) -> Ended {
        let until = Instant::now() + LAST_MOMENT;
        while !child::has_ended(&self.child) && Instant::now() < until {
            // A child whose output nobody reads waits for that.
            self.out.drain();
            self.err.drain();
            thread::sleep(Duration::from_millis(1));
        }
        let status = child::end(&mut self.child, &mut self.out);
        self.is_over = true;
        self.err.drain();
        if in_silence && status.is_some_and(|status| status.success()) {
            return Ended::Before;
        }
        let how = child::how_it_ended(status);
        let words = self.err.last_words();
        let words =
            words.map(|words| format!("; it said: {}", registry::clean(&words, MAX_QUOTED)));
        Ended::Died(how + &words.unwrap_or_default())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_over {
            child::end(&mut self.child, &mut self.out);
        }
    }
}

/// When to give up on an answer.
struct Watch<'a> {
    until: Instant,
    memory: u64,
    stop: &'a AtomicBool,
}

/// Bytes of memory that a process uses, where the system says so. Address space does not count: drivers reserve far
/// more than they use.
fn resident(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}
