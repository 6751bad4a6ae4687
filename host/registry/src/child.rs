//! Child processes in which things are tried that may end a process: their limits, how their parent watches them, and
//! how they ended. What is tried is told elsewhere.

use std::{
    borrow::Cow,
    io::{self, Read as _},
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    process::{Child, ExitStatus},
};

/// Bytes of a child's output that are kept.
const MAX_OUTPUT: usize = 1 << 20;

/// What a child may take at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a file that it writes.
    pub file: u64,
    /// Bytes of address space; `None` where drivers reserve more than they use.
    pub memory: Option<u64>,
}

/// Limits this process, which leaves no core file either.
pub fn limit(limits: Limits) {
    let set = |what, value: u64| {
        let limit = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        // SAFETY: setrlimit reads one struct. Where it fails the child runs without that limit.
        unsafe { libc::setrlimit(what, &limit) };
    };
    set(libc::RLIMIT_CORE, 0);
    set(libc::RLIMIT_FSIZE, limits.file);
    if let Some(memory) = limits.memory {
        set(libc::RLIMIT_AS, memory);
    }
}

/// Ends this process after so many seconds even when nobody waits for it; 0: never.
pub fn end_after(seconds: u32) {
    // SAFETY: alarm takes a number; its signal ends this process, which is what is wanted.
    unsafe { libc::alarm(seconds) };
}

/// Whether the child has ended; it stays to be waited for.
pub fn has_ended(child: &Child) -> io::Result<bool> {
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

/// Ends what still runs of a child that leads a group of its own, and all it started.
pub fn end(child: &mut Child) -> Option<ExitStatus> {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: kill takes two numbers. The group is the child's own, and its number is not given to another
        // one before the child is waited for, which comes after.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    child.wait().ok()
}

/// `by SIGSEGV`, `with exit status 1`.
pub fn how_it_ended(status: Option<ExitStatus>) -> String {
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
    match status.map(|status| (status.signal(), status.code())) {
        Some((Some(signal), _)) => {
            let name = SIGNALS.iter().find(|row| row.0 == signal);
            name.map_or(format!("by signal {signal}"), |row| format!("by {}", row.1))
        }
        Some((_, Some(code))) => format!("with exit status {code}"),
        _ => "in an unknown way".to_owned(),
    }
}

/// One output of the child, read without ever waiting: what the child started may hold the other end for ever.
#[derive(Debug)]
pub struct Output {
    stream: UnixStream,
    bytes: Vec<u8>,
    /// Whether nobody has the other end any more.
    pub is_closed: bool,
}

impl Output {
    /// The parent's side, and the end for the child.
    pub fn new() -> io::Result<(Output, OwnedFd)> {
        let (stream, end) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let output = Output {
            stream,
            bytes: Vec::new(),
            is_closed: false,
        };
        Ok((output, end.into()))
    }

    /// What was read.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Forgets what was read.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Reads what there is, within reason; beyond the limit it is thrown away, so that the child can go on.
    pub fn drain(&mut self) {
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

    /// The panic that the child reported, else the last line it wrote.
    pub fn last_words(&self) -> Option<String> {
        let text = self.text();
        let panic = text.split_once(" panicked at ").map(|(_, rest)| {
            let lines: Vec<&str> = rest.lines().take(2).collect();
            format!("panicked at {}", lines.join(" "))
        });
        let mut lines = text.lines().rev();
        let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
        panic.or_else(|| lines.find(says).map(str::to_owned))
    }
}
