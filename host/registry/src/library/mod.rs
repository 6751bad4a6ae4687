//! Library files of three formats, checked on their bytes before anything maps them: bounds, architecture, what they
//! want loaded beside them, and where their metadata is; it does not look at code.
//!
//! `dlopen` of a file that ends inside a segment kills the process with SIGBUS, so every range that the dynamic loader
//! or we ourselves follow is checked here. No input makes these functions panic, or take much longer than reading it.

mod dynamic;
mod elf;
mod macho;
mod pe;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use super::{diagnostic::clean, target::Target};
use object::pod::{self, Pod};

/// A format of library files. Each can be read on every host.
#[derive(Debug)]
pub(super) struct Format {
    /// Begins the messages about such files.
    name: &'static str,
    /// Where `pack!` puts the metadata: `nx_vulkan_abi::author` has the same names.
    pub(super) section: &'static str,
    is: fn(&[u8]) -> bool,
    check: for<'a> fn(&'a [u8], arch: &str) -> Result<Checked<'a>, String>,
    exports: fn(&[u8]) -> Result<Vec<String>, String>,
}

static FORMATS: [&Format; 3] = [&elf::FORMAT, &macho::FORMAT, &pe::FORMAT];

impl Target {
    fn format(self) -> &'static Format {
        match self.os {
            "macos" | "ios" | "tvos" | "visionos" | "watchos" => &macho::FORMAT,
            "windows" => &pe::FORMAT,
            _ => &elf::FORMAT,
        }
    }
}

/// What the checks of a format find.
#[derive(Debug)]
struct Checked<'a> {
    meta: &'a [u8],
    needed: Vec<String>,
}

/// A library that passed the checks.
#[derive(Debug)]
pub(super) struct Library<'a> {
    pub(super) format: &'static Format,
    /// Content of the section with the metadata.
    pub(super) meta: &'a [u8],
    /// Libraries that the dynamic loader looks for. Every process has them anyway.
    pub(super) needed: Vec<String>,
    bytes: &'a [u8],
}

impl<'a> Library<'a> {
    /// Checks a library for `target`; the refusal begins with the format.
    pub(super) fn read(bytes: &'a [u8], target: Target) -> Result<Library<'a>, String> {
        let format = FORMATS.into_iter().find(|format| (format.is)(bytes));
        let format = format.ok_or("format: it is not an ELF, Mach-O or PE file")?;
        let named = |why: String| format!("{}: {why}", format.name);
        if format.name != target.format().name {
            let (Target { arch, os }, loaded) = (target, target.format().name);
            return Err(named(format!(
                "this host is {arch} {os}, which loads {loaded} files"
            )));
        }
        let checked = (format.check)(bytes, target.arch).map_err(named)?;
        Ok(Library {
            format,
            meta: checked.meta,
            needed: checked.needed,
            bytes,
        })
    }

    /// Symbols that other images can see, in alphabetical order, at most [`MOST_EXPORTS`].
    pub(super) fn exports(&self) -> Result<Vec<String>, String> {
        let exports = (self.format.exports)(self.bytes);
        let mut exports = exports.map_err(|why| format!("{}: {why}", self.format.name))?;
        exports.sort();
        Ok(exports)
    }
}

/// Exports that are listed of one file. A pack has one.
const MOST_EXPORTS: usize = 10_000;

/// Libraries that one file may name. A pack needs about three.
const MOST_NEEDED: usize = 1000;

/// Bytes of a name. The search for its end stops here, so that names that overlap do not take time quadratic in the file.
const LONGEST_NAME: usize = 1024;

/// Characters of a name that a message repeats.
const MAX_QUOTED: usize = 100;

/// `offset..offset + len` of the file.
fn range(bytes: &[u8], offset: u64, len: u64) -> Result<&[u8], String> {
    let end = offset.checked_add(len).ok_or("overflows")?;
    let content = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    let content = content.and_then(|(start, end)| bytes.get(start..end));
    content.ok_or_else(|| format!("ends at byte {end}, the file has {} bytes", bytes.len()))
}

/// A table of `count` entries of `size` bytes each, where those are `T`.
fn table<'a, T: Pod>(
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
fn damaged(what: &str) -> impl Fn(object::Error) -> String {
    move |error| format!("its {what} cannot be read: {error}")
}

/// The zero-terminated name at `at`, fit for a message.
fn name(names: &[u8], at: u64) -> Result<String, String> {
    let rest = usize::try_from(at).ok().and_then(|at| names.get(at..));
    let rest = rest.ok_or("a name in it is out of bounds")?;
    let end = rest.iter().take(LONGEST_NAME).position(|&byte| byte == 0);
    let name = &rest[..end.ok_or("a name in it does not end")?];
    Ok(clean(&String::from_utf8_lossy(name), MAX_QUOTED))
}

/// Refuses a file for another architecture; `machines` are the format's numbers for the names that Rust has.
fn check_machine(
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
fn need(needed: &mut Vec<String>, name: String, is_everywhere: bool) -> Result<(), String> {
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
fn foreign<T>(what: &str, path: &str) -> Result<T, String> {
    Err(format!(
        "it has a {what}, \"{path}\", from where code would be loaded that nobody checked"
    ))
}

/// The only section with metadata.
fn only<'a>(format: &Format, found: &[&'a [u8]]) -> Result<&'a [u8], String> {
    let section = format.section;
    match found {
        [meta] => Ok(meta),
        [] => Err(format!(
            "it has no section {section}, so it is not a kernel pack"
        )),
        _ => Err(format!("it has {} sections {section}", found.len())),
    }
}
