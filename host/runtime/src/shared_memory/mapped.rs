//! What segments hold, by way of mappings.

use std::{fs::File, io, os::fd::AsRawFd};

pub(super) fn first_mode(permissions: u32) -> u32 {
    permissions
}

pub(super) fn write(file: File, bytes: &[u8], _permissions: u32) -> io::Result<()> {
    // A segment without a byte has that size as it is.
    if bytes.is_empty() {
        return Ok(());
    }
    file.set_len(bytes.len() as u64)?;
    let mapping = Mapping::new(&file, bytes.len(), libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: the mapping has as many bytes, may be written, and is not that of `bytes`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapping.start, bytes.len()) };
    Ok(())
}

/// Appends the first `len` bytes of a segment that is no shorter.
pub(super) fn read(file: File, bytes: &mut Vec<u8>, len: u64) -> io::Result<()> {
    let count = usize::try_from(len).map_err(io::Error::other)?;
    if count == 0 {
        return Ok(());
    }
    let mapping = Mapping::new(&file, count, libc::PROT_READ)?;
    bytes.reserve_exact(count);
    // SAFETY: the mapping has as many bytes and may be read; so many are reserved, and written when their number is set. Whoever
    // writes to the segment meanwhile has some of the bytes be old and others new.
    unsafe {
        let end = bytes.as_mut_ptr().add(bytes.len());
        std::ptr::copy_nonoverlapping(mapping.start, end, count);
        bytes.set_len(bytes.len() + count);
    }
    Ok(())
}

#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    len: usize,
}

impl Mapping {
    fn new(file: &File, len: usize, access: libc::c_int) -> io::Result<Mapping> {
        // SAFETY: the system chooses where it lies, and nobody else has it.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match start == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Mapping {
                start: start.cast(),
                len,
            }),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    #[test]
    fn what_is_written_by_a_mapping_is_read_by_one() {
        let bytes: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
        let (segment, file) = Segment::create(0o400).unwrap();
        write(file, &bytes, 0o400).unwrap();
        let file = || open(&segment.0, libc::O_RDONLY).unwrap();
        let mut found = vec![7];
        super::read(file(), &mut found, 10_000).unwrap();
        assert_eq!((found[0], &found[1..]), (7, &bytes[..]));
        super::read(file(), &mut found, 0).unwrap();
        assert_eq!(found.len(), 10_001);
        assert_eq!(super::super::read(segment.name(), 10_000).unwrap(), bytes);
        assert_eq!(first_mode(0o440), 0o440);
    }
}
