//! What a format of library files is, and what the checks of all formats share.

use crate::diagnostic::clean;
use object::pod::{self, Pod};

/// A format of library files. Each can be read on every host.
#[derive(Debug)]
pub(in super::super) struct Format {
    /// Begins the messages about such files.
    pub(super) name: &'static str,
    /// Where `pack!` puts the metadata: `nx_vulkan_abi::author` has the same names.
    pub(in super::super) section: &'static str,
    pub(super) is: fn(&[u8]) -> bool,
    pub(super) check: for<'a> fn(&'a [u8], arch: &str) -> Result<Checked<'a>, String>,
    pub(super) exports: fn(&[u8]) -> Result<Vec<String>, String>,
}

/// What the checks of a format find.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    pub(super) meta: &'a [u8],
    pub(super) needed: Vec<String>,
}

/// Exports that are listed of one file. A pack has one.
pub(super) const MOST_EXPORTS: usize = 10_000;

/// Libraries that one file may name. A pack needs about three.
const MOST_NEEDED: usize = 1000;

/// Bytes of a name. The search for its end stops here, so that names that overlap do not take time quadratic in the file.
const LONGEST_NAME: usize = 1024;

/// Characters of a name that a message repeats.
const MAX_QUOTED: usize = 100;

/// `offset..offset + len` of the file.
pub(super) fn range(bytes: &[u8], offset: u64, len: u64) -> Result<&[u8], String> {
    let end = offset.checked_add(len).ok_or("overflows")?;
    let content = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    let content = content.and_then(|(start, end)| bytes.get(start..end));
    content.ok_or_else(|| format!("ends at byte {end}, the file has {} bytes", bytes.len()))
}

/// A table of `count` entries of `size` bytes each, where those are `T`.
pub(super) fn table<'a, T: Pod>(
    bytes: &'a [u8],
    what: &str,
    offset: u64,
    count: u16,
    size: u16,
) -> Result<&'a [T], String> {
    let expected = size_of::<T>();
    if usize::from(size) != expected {
        return Err(format!("its {what} have {size} bytes, not {expected}"));
    }
    let bytes = range(bytes, offset, u64::from(count) * u64::from(size))
        .map_err(|why| format!("its table of {what} {why}"))?;
    pod::slice_from_all_bytes(bytes).map_err(|()| format!("its {what} are damaged"))
}

/// An error of the crate `object` about `what`, as the end of a message.
pub(super) fn damaged(what: &str) -> impl Fn(object::Error) -> String {
    move |error| format!("its {what} cannot be read: {error}")
}

/// The zero-terminated name at `at`, fit for a message.
pub(super) fn name(names: &[u8], at: u64) -> Result<String, String> {
    let name = text(names, at)?;
    Ok(clean(&String::from_utf8_lossy(name), MAX_QUOTED))
}

/// The same as it is in the file.
pub(super) fn text(names: &[u8], at: u64) -> Result<&[u8], String> {
    let rest = usize::try_from(at).ok().and_then(|at| names.get(at..));
    let rest = rest.ok_or("a name in it is out of bounds")?;
    let end = rest.iter().take(LONGEST_NAME).position(|&byte| byte == 0);
    Ok(&rest[..end.ok_or("a name in it does not end")?])
}

/// Refuses a file for another architecture; `machines` are the format's numbers for the names that Rust has.
pub(super) fn check_machine(
    format: &Format,
    machines: &[(&str, u32)],
    machine: u32,
    arch: &str,
) -> Result<(), String> {
    match machines.iter().find(|row| row.1 == machine) {
        Some((built_for, _)) if *built_for == arch => Ok(()),
        Some((built_for, _)) => Err(format!("it is built for {built_for}, this host is {arch}")),
        None => Err(format!(
            "it is built for {} machine {machine}, this host is {arch}",
            format.name
        )),
    }
}

/// Keeps the name of a library that the file needs, unless that is one that not every process has.
pub(super) fn need(
    needed: &mut Vec<String>,
    name: String,
    is_everywhere: bool,
) -> Result<(), String> {
    if !is_everywhere {
        return Err(format!(
            "it needs \"{name}\"; a pack brings its own code and needs only the C library"
        ));
    }
    if needed.len() == MOST_NEEDED {
        return Err(format!("it needs more than {MOST_NEEDED} libraries"));
    }
    needed.push(name);
    Ok(())
}

/// Refuses an entry by which code is found that was not hashed.
pub(super) fn foreign<T>(what: &str, path: &str) -> Result<T, String> {
    Err(format!(
        "it has a {what}, \"{path}\", from where code would be loaded that nobody checked"
    ))
}

/// The only section with metadata.
pub(super) fn only<'a>(format: &Format, found: &[&'a [u8]]) -> Result<&'a [u8], String> {
    let section = format.section;
    match found {
        [meta] => Ok(meta),
        [] => Err(format!(
            "it has no section {section}, so it is not a kernel pack"
        )),
        _ => Err(format!("it has {} sections {section}", found.len())),
    }
}
