//! A library that the dynamic loader maps from the very descriptor through which its bytes were hashed.
//!
//! On Linux that is sealed memory, which nobody can change, this process included. Where there is none, or nothing may be
//! run from it, it is a file in a private folder, and where there is no `/proc` either, the path of that file.

use super::{Folder, content};
use crate::spelling::hex;
use sha2::{Digest as _, Sha256};
use std::{
    fs::File,
    io::{self, Seek as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

/// A library with bytes that stay as they are.
#[derive(Debug)]
pub struct Sealed {
    file: File,
    path: PathBuf,
}

impl Sealed {
    /// A copy of `bytes` in memory, which debuggers and `/proc/self/maps` show as `name`.
    ///
    /// # Errors
    /// Where the system has no such memory, or lets nothing in it run.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn in_memory(name: &str, bytes: &[u8]) -> io::Result<Sealed> {
        use std::io::Write as _;
        let mut file = memory(name)?;
        file.write_all(bytes)?;
        let seals =
            libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
        // SAFETY: the descriptor is open; fcntl takes numbers.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
            return Err(io::Error::last_os_error());
        }
        may_run(&file)?;
        let path = descriptor_path(&file).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Sealed { file, path })
    }

    /// Other systems have none that their loader maps.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn in_memory(_name: &str, _bytes: &[u8]) -> io::Result<Sealed> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A copy of `bytes` in a private folder; one that is there already is used if it is the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn stored(folder: &Folder, name: &str, bytes: &[u8]) -> io::Result<Sealed> {
        let most = bytes.len() as u64;
        if !folder
            .read(name, most)
            .is_ok_and(|there| there.is_some_and(|there| there == bytes))
        {
            // Not forced to the disk: a copy that is not whole after a power failure is replaced.
            folder.write(name, &[bytes], false)?;
        }
        Ok(Sealed::of(folder.open(name)?, &folder.path().join(name)))
    }

    /// A file as it is, which is at `path`.
    pub fn of(file: File, path: &Path) -> Sealed {
        let path = descriptor_path(&file).unwrap_or_else(|| path.to_owned());
        Sealed { file, path }
    }

    /// The hash of what is mapped, in lower-case hex, read through the descriptor that is mapped.
    pub fn sha256(&self, most: u64) -> io::Result<String> {
        let mut file = &self.file;
        file.rewind()?;
        let bytes = content(file, most)?;
        Ok(hex(&Sha256::digest(bytes)))
    }

    /// What to give to the dynamic loader. It knows libraries by this path, so the descriptor behind it must stay open
    /// for as long as the library is mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Where the system shows an open descriptor as a file, if it does.
fn descriptor_path(file: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    path.symlink_metadata().is_ok().then_some(path)
}

/// Memory that can be written, sealed and run.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn memory(name: &str) -> io::Result<File> {
    use std::os::fd::FromRawFd as _;
    let name = std::ffi::CString::new(name)?;
    let create = |flags: libc::c_uint| {
        // SAFETY: the name ends with a zero.
        let file = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        match file {
            // SAFETY: the call made this descriptor, and nobody else has it.
            0.. => Ok(unsafe { File::from_raw_fd(file) }),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    match create(flags | libc::MFD_EXEC) {
        // Linux before 6.3 does not know that flag, and does without.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => create(flags),
        made => made,
    }
}

/// Whether code in the file may run: `vm.memfd_noexec` and security modules may forbid it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn may_run(file: &File) -> io::Result<()> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    // SAFETY: the system chooses where a fresh mapping lies, and nobody uses it before it is gone again.
    unsafe {
        let mapped = libc::mmap(std::ptr::null_mut(), 1, access, kind, file.as_raw_fd(), 0);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::munmap(mapped, 1);
    }
    Ok(())
}
