//! Segments of POSIX shared memory: copies of tensors' elements that other processes open by name.

use crate::{Error, Kind, Result};
use nx_vulkan_registry::private::random;
use std::{
    ffi::CString,
    fs::File,
    io::{self, ErrorKind},
    os::{fd::FromRawFd, unix::fs::FileTypeExt},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

/// Opening a queue that lies among the segments must not wait for its other end. Elsewhere none lies there.
const AT_ONCE: libc::c_int = if cfg!(target_os = "linux") {
    libc::O_NONBLOCK
} else {
    0
};

/// A mode as `shm_open` takes it, which has a list of any arguments on macOS.
#[cfg(target_os = "macos")]
type Mode = libc::c_uint;
#[cfg(not(target_os = "macos"))]
type Mode = libc::mode_t;

/// The segments of this process. A lock of the standard library, since exit handlers take it.
static SEGMENTS: Mutex<Segments> = Mutex::new(Segments {
    names: Vec::new(),
    ended: false,
});

/// What the names begin with of processes that see each other, where that is known.
static PREFIX: OnceLock<Option<String>> = OnceLock::new();

#[derive(Debug)]
struct Segments {
    names: Vec<CString>,
    /// Whether the process ends: nobody would take the names of further ones away.
    ended: bool,
}

/// A named segment of this process. Dropping it takes the name away; who has opened it keeps the memory.
#[derive(Debug)]
pub struct Segment(CString);

impl Segment {
    /// A segment that holds `bytes`, which those may open whom `permissions`, a file's mode, lets.
    ///
    /// # Errors
    /// [`Kind::Io`] where the system has no room for it, or no such memory.
    pub fn new(bytes: &[u8], permissions: u32) -> Result<Segment> {
        let failed = |error| {
            let len = bytes.len();
            Error::new(Kind::Io, format!("shared memory for {len} bytes: {error}"))
        };
        let (segment, file) = Segment::create(permissions).map_err(failed)?;
        content::write(file, bytes, permissions).map_err(failed)?;
        Ok(segment)
    }

    /// What others open it by.
    pub fn name(&self) -> &str {
        self.0.to_str().unwrap_or_default().trim_start_matches('/')
    }

    /// Takes the name away. The memory is freed when what comes back is dropped, which takes the system a while; it is freed already where
    /// nothing comes back.
    pub fn unnamed(self) -> Option<File> {
        open(&self.0, libc::O_RDONLY).ok()
    }

    fn create(permissions: u32) -> io::Result<(Segment, File)> {
        let own = std::process::id();
        let prefix = PREFIX.get_or_init(|| {
            let space = left_behind::space()?;
            left_behind::unlink(&space, own);
            Some(space)
        });
        let prefix = prefix.as_deref().unwrap_or_default();
        let mut segments = lock();
        if segments.ended {
            return Err(io::Error::other("the process ends"));
        }
        loop {
            let name = format!("/nxv-{prefix}{own:x}-{:016x}", random());
            let name = CString::new(name)?;
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
            match create(&name, flags, content::first_mode(permissions)) {
                Ok(file) => {
                    segments.names.push(name.clone());
                    return Ok((Segment(name), file));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Without the lock, since the system frees its pages now, which takes a while. Nobody else takes such a name, so that it does
        // no harm if the process ends meanwhile and takes it away once more.
        unlink(&self.0);
        lock().names.retain(|name| *name != self.0);
    }
}

/// The first `len` bytes of the segment of that name, whoever made it.
///
/// # Errors
/// Bad input where there is none that this process may read, or it is shorter; [`Kind::OutOfMemory`].
pub fn read(name: &str, len: u64) -> Result<Vec<u8>> {
    let refused = |why: &dyn std::fmt::Display| {
        Error::bad_input(format!(
            "expected the name of {len} bytes of shared memory, got: {name:?}: {why}"
        ))
    };
    let path = CString::new(format!("/{}", name.trim_start_matches('/')))
        .map_err(|error| refused(&error))?;
    let file = open(&path, libc::O_RDONLY | AT_ONCE).map_err(|error| refused(&error))?;
    let found = file.metadata().map_err(|error| refused(&error))?;
    let kind = found.file_type();
    if kind.is_dir() || kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
        return Err(refused(&"that is no memory"));
    }
    if found.len() < len {
        return Err(refused(&format!("it has {} bytes", found.len())));
    }
    let mut bytes = crate::host_memory::with_room(len)?;
    content::read(file, &mut bytes, len).map_err(|error| refused(&error))?;
    if (bytes.len() as u64) < len {
        return Err(refused(&format!("it ended after {} bytes", bytes.len())));
    }
    Ok(bytes)
}

/// Takes the names of all segments away, since the process ends. No more are made.
pub(crate) fn unlink_all() {
    let mut segments = lock();
    segments.ended = true;
    segments.names.drain(..).for_each(|name| unlink(&name));
}

fn open(name: &CString, flags: libc::c_int) -> io::Result<File> {
    create(name, flags, 0)
}

fn create(name: &CString, flags: libc::c_int, mode: u32) -> io::Result<File> {
    // SAFETY: the name is a C string; the descriptor that comes back is nobody else's.
    unsafe {
        match libc::shm_open(name.as_ptr(), flags, mode as Mode) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}

fn unlink(name: &CString) {
    // SAFETY: the name is a C string.
    unsafe { libc::shm_unlink(name.as_ptr()) };
}

fn lock() -> MutexGuard<'static, Segments> {
    SEGMENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What segments hold, where they are files, which tell before a page is touched that there is no room for it.
#[cfg(not(target_os = "macos"))]
mod content {
    use std::{
        fs::{File, Permissions},
        io::{self, Read, Write},
        os::unix::fs::PermissionsExt,
    };

    /// Nobody else opens a segment before all is in it.
    pub(super) fn first_mode(_permissions: u32) -> u32 {
        0o600
    }

    pub(super) fn write(mut file: File, bytes: &[u8], permissions: u32) -> io::Result<()> {
        file.set_len(bytes.len() as u64)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(permissions))
    }

    pub(super) fn read(file: File, bytes: &mut Vec<u8>, len: u64) -> io::Result<()> {
        file.take(len).read_to_end(bytes).map(drop)
    }
}

/// What segments hold on a system that maps them and neither reads nor writes them: they get their size once, and their mode as they
/// are made.
#[cfg(target_os = "macos")]
use mapped as content;

#[cfg(any(target_os = "macos", test))]
mod mapped;

/// Segments of processes that were killed, or ended without their exit handlers.
#[cfg(target_os = "linux")]
mod left_behind {
    use std::{ffi::CString, fs, os::unix::fs::MetadataExt};

    /// Where Linux has them.
    const FOLDER: &str = "/dev/shm";

    /// The namespace of process numbers: others may share the memory and not the numbers.
    pub(super) fn space() -> Option<String> {
        let space = fs::metadata("/proc/self/ns/pid").ok()?;
        Some(format!("{:x}-", space.ino()))
    }

    /// Takes away the names of this user's segments whose processes are gone.
    pub(super) fn unlink(space: &str, own: u32) {
        // SAFETY: it reads a number of the process.
        let user = unsafe { libc::geteuid() };
        for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_prefix("nxv-")?.strip_prefix(space))
                .and_then(|rest| u32::from_str_radix(rest.split_once('-')?.0, 16).ok());
            let is_ours = || entry.metadata().is_ok_and(|file| file.uid() == user);
            if number.is_some_and(|number| number != own && is_gone(number)) && is_ours() {
                let name = CString::new([b"/", name.as_encoded_bytes()].concat());
                drop(name.map(|name| super::unlink(&name)));
            }
        }
    }

    fn is_gone(process: u32) -> bool {
        let Ok(process) = libc::pid_t::try_from(process) else {
            return false;
        };
        // SAFETY: signal 0 is none: it only asks whether there is such a process.
        let asked = unsafe { libc::kill(process, 0) };
        asked == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

#[cfg(not(target_os = "linux"))]
mod left_behind {
    pub(super) fn space() -> Option<String> {
        None
    }

    pub(super) fn unlink(_space: &str, _own: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_segment_is_read_by_name_until_it_is_dropped() {
        let segment = Segment::new(&[1, 2, 3], 0o400).unwrap();
        let name = segment.name().to_owned();
        assert_eq!(read(&name, 3).unwrap(), [1, 2, 3]);
        assert_eq!(read(&format!("/{name}"), 2).unwrap(), [1, 2]);
        let error = read(&name, 4).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains("it has 3 bytes"), "{error}");
        drop(segment);
        assert_eq!(read(&name, 3).unwrap_err().kind(), Kind::BadInput);
    }

    #[test]
    fn a_segment_without_its_name_keeps_its_memory() {
        let segment = Segment::new(&[1, 2, 3], 0o400).unwrap();
        let name = segment.name().to_owned();
        let mut memory = segment.unnamed().unwrap();
        assert_eq!(read(&name, 3).unwrap_err().kind(), Kind::BadInput);
        let mut bytes = Vec::new();
        memory.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
    }

    #[test]
    fn names_of_nothing_are_refused() {
        for name in ["", "/", "nobody", "../etc/passwd", "a\0b", &"x".repeat(300)] {
            let error = read(name, 1).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput, "{name:?}: {error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_processes_left_behind_goes_once_they_are_gone() {
        let (space, own) = (left_behind::space().unwrap(), std::process::id());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let of = |space: &str, process: u32| {
            let path = format!("/dev/shm/nxv-{space}{process:x}-test");
            std::fs::write(&path, [1]).unwrap();
            path
        };
        let left = of(&space, gone);
        let kept = [of("0-", gone), of(&space, 1), of(&space, own)];
        left_behind::unlink(&space, own);
        assert!(!std::fs::exists(left).unwrap());
        for path in kept {
            assert!(std::fs::exists(&path).unwrap(), "{path}");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_queue_among_the_segments_keeps_nobody_waiting() {
        let path = format!("/dev/shm/nxv-test-{}", std::process::id());
        let name = CString::new(path.as_str()).unwrap();
        // One that was killed may have had the same number.
        let _ = std::fs::remove_file(&path);
        // SAFETY: the name is a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let error = read(path.trim_start_matches("/dev/shm/"), 0).unwrap_err();
        std::fs::remove_file(path).unwrap();
        assert!(error.to_string().contains("no memory"), "{error}");
    }
}
