//! Library files of three formats, checked on their bytes before anything maps them: bounds, architecture, what they
//! want loaded beside them, and where their metadata is; it does not look at code.
//!
//! `dlopen` of a file that ends inside a segment kills the process with SIGBUS, so every range that the dynamic loader
//! or we ourselves follow is checked here. No input makes these functions panic, or take much longer than reading it.

mod dynamic;
mod elf;
mod format;
mod macho;
mod pe;
mod relocations;
#[cfg(test)]
mod samples;
mod segments;
mod symbols;
#[cfg(test)]
mod tests;

use super::target::Target;
use format::Format;

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

    /// Symbols that other images can see, in alphabetical order, at most [`format::MOST_EXPORTS`].
    pub(super) fn exports(&self) -> Result<Vec<String>, String> {
        let exports = (self.format.exports)(self.bytes);
        let mut exports = exports.map_err(|why| format!("{}: {why}", self.format.name))?;
        exports.sort();
        Ok(exports)
    }
}
