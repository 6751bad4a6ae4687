//! What the standard library cannot do relative to an open folder: the few system calls that `private` needs.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
};

/// How a folder is opened that is only gone through: it need not be readable.
#[cfg(any(target_os = "linux", target_os = "android"))]
const THROUGH: libc::c_int = libc::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const THROUGH: libc::c_int = libc::O_RDONLY;

/// Longest target of a symbolic link.
const MAX_LINK: usize = 4096;

/// The root of the file system.
pub(super) fn root() -> io::Result<File> {
    opened(
        libc::AT_FDCWD,
        OsStr::new("/"),
        THROUGH | libc::O_DIRECTORY,
        0,
    )
}

/// A folder in `folder`, to go through. A symbolic link is an error, as is anything else that is no folder.
pub(super) fn through(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = THROUGH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    opened(folder.as_raw_fd(), name, flags, 0)
}

/// Anything in `folder` but a symbolic link, for reading; a FIFO does not block.
pub fn reading(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    opened(folder.as_raw_fd(), name, flags, 0)
}

/// A new file in `folder`, for reading and writing; an error where there is anything of that name.
pub(super) fn new_file(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    opened(folder.as_raw_fd(), name, flags, mode)
}

/// A file in `folder` that is created where it is missing, for reading and writing.
pub(super) fn any_file(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    opened(folder.as_raw_fd(), name, flags, mode)
}

pub(super) fn make_folder(folder: &File, name: &OsStr) -> io::Result<()> {
    let name = c_string(name)?;
    // SAFETY: the descriptor is open and the name ends with a zero.
    done(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o700) })
}

pub(super) fn rename(folder: &File, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let (from, to, folder) = (c_string(from)?, c_string(to)?, folder.as_raw_fd());
    // SAFETY: the descriptor is open and the names end with a zero.
    done(unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) })
}

pub(super) fn remove(folder: &File, name: &OsStr) -> io::Result<()> {
    let name = c_string(name)?;
    // SAFETY: the descriptor is open and the name ends with a zero.
    done(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) })
}

/// Where a symbolic link in `folder` points.
pub(super) fn link(folder: &File, name: &OsStr) -> io::Result<OsString> {
    let name = c_string(name)?;
    let mut target = vec![0u8; MAX_LINK];
    // SAFETY: the descriptor is open, the name ends with a zero, and the buffer has the size that is told.
    let len = unsafe {
        let buffer = target.as_mut_ptr().cast();
        libc::readlinkat(folder.as_raw_fd(), name.as_ptr(), buffer, MAX_LINK)
    };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    target.truncate(len);
    Ok(OsString::from_vec(target))
}

/// Names of what lies in a folder, without `.` and `..`.
pub fn names(folder: &File) -> io::Result<Vec<OsString>> {
    let own = reading(folder, OsStr::new("."))?;
    // SAFETY: the descriptor is open, and belongs to the stream if there is one.
    let stream = unsafe { libc::fdopendir(own.as_raw_fd()) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    // closedir closes it.
    let _ = own.into_raw_fd();
    let mut names = Vec::new();
    loop {
        // SAFETY: the stream is open and nobody else has it; an entry lives until the next call.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            break;
        }
        // SAFETY: the name of an entry ends with a zero.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    // SAFETY: the stream is open, and not used from here on.
    unsafe { libc::closedir(stream) };
    Ok(names)
}

fn opened(folder: libc::c_int, name: &OsStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
    let name = c_string(name)?;
    loop {
        // SAFETY: the descriptor is open or stands for the working folder, and the name ends with a zero.
        let file = unsafe { libc::openat(folder, name.as_ptr(), flags | libc::O_CLOEXEC, mode) };
        if file >= 0 {
            // SAFETY: the call made this descriptor, and nobody else has it.
            return Ok(unsafe { File::from_raw_fd(file) });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn done(code: libc::c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
