//! Child processes in which things are tried that may end a process: their limits, how their parent watches them, and
//! how they ended. What is tried is told elsewhere.

use std::{
    borrow::Cow,
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    process::{Child, ExitStatus},
};

/// Bytes of a child's output that are kept.
const MAX_OUTPUT: usize = 1 << 20;

/// Bytes of what comes after those that are kept: the last ones.
const MAX_TAIL: usize = 64;

/// How the line begins that [`tell_end`] writes; the status as wait gives it follows.
const ENDED: &str = "nxv-child ended: ";

/// What a child may take at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a file that it writes.
    pub file: u64,
    /// Bytes of address space; `None` where drivers reserve more than they use.
    pub memory: Option<u64>,
}

/// Closes what this process inherited beside its standard streams. The BEAM leaves its sockets and files open for whoever it starts:
/// a child would keep ports and connections open that the VM has closed, and code that is tried in it would hold them.
///
/// To be called before anything else is opened, by a program that relies on nothing it inherits.
pub fn close_inherited() {
    close_from(libc::STDERR_FILENO + 1);
}

/// Its `/dev/fd` lists no more than the standard streams where no file system of descriptors is mounted.
#[cfg(target_os = "freebsd")]
fn close_from(first: libc::c_int) {
    // SAFETY: the call takes a number and closes what nobody here knows of.
    unsafe { libc::closefrom(first) };
}

#[cfg(not(target_os = "freebsd"))]
fn close_from(first: libc::c_int) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes three numbers and closes what nobody here knows of.
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
        if done == 0 {
            return;
        }
    }
    let Ok(open) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let numbers = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers: Vec<libc::c_int> = numbers.filter(|number| *number >= first).collect();
    for number in numbers {
        // SAFETY: as above. The number of the listing itself is closed already, which is no more than an error.
        unsafe { libc::close(number) };
    }
}

/// Limits this process, which leaves no core file either.
pub fn limit(limits: Limits) {
    let set = |what, value: u64| {
        // A signed number on some systems.
        let value = value.min(i64::MAX as u64) as libc::rlim_t;
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

/// Has the parent hear how this process ends where it ignores its children, as the BEAM does: no wait tells it then. This
/// process becomes two. The second goes on, and the first waits for it and writes the end to standard output.
///
/// To be called before there is a second thread.
pub fn tell_end() {
    let mut parents = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: sigaction fills `parents`, which is valid when zeroed, and changes nothing. This process inherited it.
    let ignores = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), parents.as_mut_ptr());
        parents.assume_init().sa_sigaction == libc::SIG_IGN
    };
    if !ignores {
        return;
    }
    // SAFETY: signal takes two numbers and is about this process alone, and fork has no other thread to lose.
    let second = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::fork()
    };
    if second <= 0 {
        return;
    }
    let mut status = 0;
    // SAFETY: close takes a number, and nothing here uses those files: they end for the parent when the second process
    // ends. waitpid fills `status`.
    let ended = unsafe {
        libc::close(libc::STDIN_FILENO);
        libc::close(libc::STDERR_FILENO);
        loop {
            match libc::waitpid(second, &mut status, 0) {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                waited => break waited == second,
            }
        }
    };
    if !ended {
        std::process::exit(1);
    }
    let mut out = io::stdout();
    // A parent that went away is no reason to fail.
    let _ = write!(out, "\n{ENDED}{status}\n").and_then(|()| out.flush());
    // As shells do, for a parent that waits after all.
    let status = ExitStatus::from_raw(status);
    let signal = || 128 + status.signal().unwrap_or(0);
    std::process::exit(status.code().unwrap_or_else(signal));
}

/// Has waits tell how children end, whatever this process inherited. Not for libraries: it is about all of the process.
pub fn hear_children() {
    // SAFETY: signal takes two numbers, and the default does nothing when a child ends.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Whether the child has ended; it stays to be waited for.
pub fn has_ended(child: &Child) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable and valid when zeroed; waitid fills it, or leaves it when nothing has ended.
    let (answer, pid) = unsafe {
        let answer = libc::waitid(
            libc::P_PID,
            child.id() as libc::id_t,
            info.as_mut_ptr(),
            options,
        );
        (answer, info.assume_init().si_pid())
    };
    // None is left to wait for where this process ignores its children.
    answer != 0 || pid != 0
}

/// Ends what still runs of a child that leads a group of its own, and all it started. Where no wait tells how the child
/// ended, its output may.
pub fn end(child: &mut Child, out: &mut Output) -> Option<ExitStatus> {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: kill takes two numbers. The group is the child's own, and its number is not given to another one before the
        // child is waited for, which comes after. Where children are ignored it is free once the child has ended; callers come
        // here before the numbers have gone round.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let waited = child.wait();
    out.drain();
    waited.ok().or_else(|| out.told_end())
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
    tail: Vec<u8>,
}

impl Output {
    /// The parent's side, and the end for the child.
    pub fn new() -> io::Result<(Output, OwnedFd)> {
        let (stream, end) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let output = Output {
            stream,
            bytes: Vec::new(),
            tail: Vec::new(),
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
        self.tail.clear();
    }

    /// Reads what there is, within reason; beyond the limit all but the last is thrown away, so that the child can go on.
    pub fn drain(&mut self) {
        let mut chunk = [0; 1 << 14];
        for _ in 0..64 {
            match self.stream.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) if self.bytes.len() < MAX_OUTPUT => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                }
                Ok(count) => {
                    self.tail.extend_from_slice(&chunk[..count]);
                    let rest = self.tail.len().saturating_sub(MAX_TAIL);
                    self.tail.drain(..rest);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// What [`tell_end`] wrote last of all.
    fn told_end(&self) -> Option<ExitStatus> {
        let from = self.bytes.len().saturating_sub(MAX_TAIL);
        let last = [&self.bytes[from..], &self.tail].concat();
        let text = String::from_utf8_lossy(&last);
        let told = text.lines().next_back()?.strip_prefix(ENDED)?;
        told.parse().ok().map(ExitStatus::from_raw)
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
