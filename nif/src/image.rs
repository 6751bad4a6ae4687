//! This library as it is mapped, next to a file that may hold another build of it.

use std::path::Path;

/// Whether the file holds the build that runs: what of it is mapped read-only is the same byte for byte.
///
/// A loader that knows a library by its path gives what is mapped already, whatever lies there now.
#[cfg(all(
    target_pointer_width = "64",
    any(target_os = "linux", target_os = "freebsd")
))]
pub(crate) fn is_in(file: &Path) -> bool {
    let Ok(bytes) = std::fs::read(file) else {
        return false;
    };
    let segments = segments();
    !segments.is_empty()
        && segments.iter().all(|(offset, mapped)| {
            let there = bytes.get(*offset..).and_then(|b| b.get(..mapped.len()));
            there == Some(*mapped)
        })
}

/// Other systems say themselves whether it is the same.
#[cfg(not(all(
    target_pointer_width = "64",
    any(target_os = "linux", target_os = "freebsd")
)))]
pub(crate) fn is_in(_file: &Path) -> bool {
    true
}

/// Offset in the file, and content, of each segment of this library that nobody may write.
#[cfg(all(
    target_pointer_width = "64",
    any(target_os = "linux", target_os = "freebsd")
))]
fn segments() -> Vec<(usize, &'static [u8])> {
    use libc::{PT_LOAD, c_int, c_void, dl_phdr_info, size_t};

    /// `PF_W` of `elf.h`, which `libc` does not have on every system.
    const WRITABLE: u32 = 2;

    unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: size_t, found: *mut c_void) -> c_int {
        // SAFETY: the loader gives a live description, whose headers it counts; `found` is the vector below.
        let (info, headers, found) = unsafe {
            let info = &*info;
            (
                info,
                std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
                &mut *found.cast::<Vec<(usize, &'static [u8])>>(),
            )
        };
        let here = visit as *const () as u64;
        let start = |header: &libc::Elf64_Phdr| info.dlpi_addr + header.p_vaddr;
        let mut loaded = headers.iter().filter(|header| header.p_type == PT_LOAD);
        if !loaded.any(|h| (start(h)..start(h) + h.p_memsz).contains(&here)) {
            return 0;
        }
        let read_only = |h: &&libc::Elf64_Phdr| h.p_type == PT_LOAD && h.p_flags & WRITABLE == 0;
        for header in headers.iter().filter(read_only) {
            // SAFETY: the segment is mapped and stays so, because this library is never unmapped, and nobody writes there.
            let mapped = unsafe {
                let first = start(header) as *const u8;
                std::slice::from_raw_parts(first, header.p_filesz as usize)
            };
            found.push((header.p_offset as usize, mapped));
        }
        1
    }

    let mut found = Vec::new();
    // SAFETY: `visit` gets the vector, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}
