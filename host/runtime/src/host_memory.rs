//! Memory of this process, taken without ending it and read without faulting.

use crate::{Error, Kind, Result};

/// Where bytes that are read go, in their order.
pub trait Sink {
    /// Makes room for so many; whether there is some. Nothing was appended before.
    fn room(&mut self, len: u64) -> bool;

    /// Takes the next ones.
    fn append(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn room(&mut self, len: u64) -> bool {
        usize::try_from(len).is_ok_and(|len| self.try_reserve_exact(len).is_ok())
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// An empty vector with room for `len` bytes.
///
/// # Errors
/// As [`room`].
pub(crate) fn with_room(len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    room(&mut bytes, len)?;
    Ok(bytes)
}

/// Makes room for `len` bytes.
///
/// # Errors
/// [`Kind::OutOfMemory`], where collections would end the process.
pub(crate) fn room(to: &mut dyn Sink, len: u64) -> Result<()> {
    if to.room(len) {
        return Ok(());
    }
    Err(Error::new(
        Kind::OutOfMemory,
        format!("the host has no room for {len} bytes"),
    ))
}

/// Appends the `len` bytes at `address` to `bytes`.
///
/// # Errors
/// Bad input where not all of them are memory that this process can read; the system's, when it has no pipe to spare.
#[cfg(unix)]
pub(crate) fn read(address: usize, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
    use std::io::{self, ErrorKind, Read};
    use std::os::fd::AsRawFd;

    /// An empty pipe takes so much at once on every system.
    const PIECE: usize = 4096;
    let failed = |error: io::Error| Error::new(Kind::Io, format!("a pipe to read memory: {error}"));
    let (mut from, to) = io::pipe().map_err(failed)?;
    let mut done = 0;
    while done < len {
        let at = address.wrapping_add(done);
        let piece = PIECE.min(len - done);
        // SAFETY: the kernel reads the memory, and answers EFAULT where there is none to read.
        let wrote = unsafe { libc::write(to.as_raw_fd(), at as *const libc::c_void, piece) };
        let Ok(wrote) = u64::try_from(wrote) else {
            match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => continue,
                error if error.raw_os_error() == Some(libc::EFAULT) => {
                    return Err(Error::bad_input(format!(
                        "expected {len} bytes at {address:#x} that this process can read, got: none in the {piece} bytes at {at:#x}"
                    )));
                }
                error => return Err(failed(error)),
            }
        };
        done += (&mut from).take(wrote).read_to_end(bytes).map_err(failed)?;
    }
    Ok(())
}

/// Other systems have no such call that faults softly.
#[cfg(not(unix))]
pub(crate) fn read(_address: usize, _len: usize, _bytes: &mut Vec<u8>) -> Result<()> {
    Err(Error::new(
        Kind::Unsupported,
        "memory of others cannot be read safely on this system",
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_what_is_none_is_refused() {
        let given: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        let mut bytes = Vec::new();
        read(given.as_ptr() as usize, given.len(), &mut bytes).unwrap();
        assert_eq!(bytes, given);
        for address in [1, 4096, usize::MAX - 8] {
            let error = read(address, 4, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput, "{error}");
        }
    }

    #[test]
    fn reading_stops_where_memory_ends() {
        let page = 1 << 16;
        // SAFETY: fresh pages, which nobody else knows; the second one is taken away again.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), 2 * page, both, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::mprotect(start.byte_add(page), page, libc::PROT_NONE);
            start as usize
        };
        let mut bytes = Vec::new();
        read(start + page - 9, 9, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 9]);
        assert!(read(start + page - 9, 10, &mut bytes).is_err());
        // SAFETY: the pages are these tests' own.
        unsafe { libc::munmap(start as *mut libc::c_void, 2 * page) };
    }
}
