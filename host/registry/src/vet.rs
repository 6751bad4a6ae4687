//! What a pack file says about itself, for the author and for tools that pin and sign it; it decides nothing about loading.

use super::{
    elf, image,
    image::Image,
    loader::{self, PackFile},
    mapping,
};
use crate::{Error, Kind, Result};
use nx_vulkan_abi::meta::Meta;
use std::path::Path;

const NEEDED: u64 = 1;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;
/// Bytes of an entry of `.dynsym` and of `.dynamic` in a 64-bit file.
const SYMBOL: usize = 24;
const DYNAMIC: usize = 16;

/// What a file says about itself. Nothing in it was run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileFacts {
    /// Id of the pack.
    pub id: String,
    /// Version of the pack.
    pub version: String,
    /// Version of the contract it was built against.
    pub abi: String,
    /// `unwind` or `abort`; `none` for a pack without code.
    pub panic: String,
    /// sha256 of the file, in lower-case hex.
    pub sha256: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Symbols that other images can see.
    pub exports: Vec<String>,
    /// Libraries that the dynamic loader looks for.
    pub needed: Vec<String>,
    /// Folders that the file adds to the dynamic loader's search.
    pub runpath: Vec<String>,
}

/// Reads the file and its headers, without mapping it.
///
/// # Errors
/// [`Kind::Pack`] when the host would refuse the file, with the step that fails.
pub fn facts(path: &Path) -> Result<FileFacts> {
    read(path).map_err(|why| Error::new(Kind::Pack, format!("{}: {why}", path.display())))
}

/// The sha256 of a pack without code, or of a regular file, in lower-case hex.
///
/// # Errors
/// [`Kind::Io`] when it cannot be read.
pub fn sha256_of(path: &Path) -> Result<String> {
    let file = PackFile::read(path);
    file.map(|file| file.sha256)
        .map_err(|why| Error::new(Kind::Io, format!("{}: {why}", path.display())))
}

fn read(path: &Path) -> std::result::Result<FileFacts, String> {
    let file = PackFile::read(path)?;
    let identity = file.inspect()?;
    if let (Some(folder), Some(identity)) = (file.without_code(), identity) {
        return Ok(FileFacts {
            id: identity.id,
            version: identity.version.to_string(),
            abi: identity.abi,
            panic: "none".to_owned(),
            bytes: folder.bytes(),
            sha256: file.sha256,
            exports: Vec::new(),
            needed: Vec::new(),
            runpath: Vec::new(),
        });
    }
    let bytes = &file.bytes;
    let section = |name| {
        elf::section(bytes, std::env::consts::ARCH, name).map_err(|why| format!("ELF: {why}"))
    };
    let meta = Meta::parse(section(".nxv.meta")?).ok_or("metadata: it is damaged")?;
    let strings = section(".dynstr")?;
    let dynamic = |tag: u64| {
        let entries = section(".dynamic")?.chunks_exact(DYNAMIC);
        let names = entries
            .filter(|e| word(e, 0) == tag)
            .map(|e| text(strings, word(e, 8)));
        Ok::<Vec<String>, String>(names.collect())
    };
    let symbols = section(".dynsym")?.chunks_exact(SYMBOL);
    let exports = symbols.filter(|s| is_exported(s));
    let mut exports: Vec<String> = exports
        .map(|s| text(strings, word(s, 0) & u64::from(u32::MAX)))
        .collect();
    exports.sort();
    Ok(FileFacts {
        id: meta.id,
        version: meta.version,
        abi: meta.abi,
        panic: meta.panic,
        sha256: file.sha256,
        bytes: bytes.len() as u64,
        exports,
        needed: dynamic(NEEDED)?,
        runpath: [dynamic(RPATH)?, dynamic(RUNPATH)?].concat(),
    })
}

/// Whether a symbol is defined, global or weak, and visible.
fn is_exported(symbol: &[u8]) -> bool {
    let (info, other) = (symbol[4], symbol[5]);
    let section = u16::from_le_bytes([symbol[6], symbol[7]]);
    section != 0 && matches!(info >> 4, 1 | 2) && matches!(other & 3, 0 | 3)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The zero-terminated text at `at`, fit for a message.
fn text(strings: &[u8], at: u64) -> String {
    let bytes = usize::try_from(at).ok().and_then(|at| strings.get(at..));
    let bytes = bytes.unwrap_or_default();
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    super::diagnostic::clean(&String::from_utf8_lossy(&bytes[..end]), 200)
}

/// What `describe` says about one kernel and the sources, as comparable text.
fn told(image: &Image) -> Vec<String> {
    let kernels = image.kernels.iter().map(|kernel| {
        let image::Kernel {
            id,
            op,
            row,
            inputs,
            outputs,
            needs,
            numerics,
            rank,
            plan: _,
        } = kernel;
        format!("kernel {id}: {op} {row} {inputs:?} {outputs:?} {needs:?} {numerics:?} {rank}")
    });
    let sources = image
        .sources
        .iter()
        .map(|s| format!("source {}: {:?}", s.name, s.content));
    kernels.chain(sources).collect()
}

/// What came of loading a file and asking it twice to describe itself.
#[derive(Debug, Clone, Default)]
pub struct Described {
    /// Number of kernels.
    pub kernels: usize,
    /// Number of source files.
    pub sources: usize,
    /// Ops that the host does not know, and other oddities.
    pub warnings: Vec<String>,
    /// What the second `init` and `describe` say differently.
    pub differences: Vec<String>,
}

/// Maps the file into this process, checks its layout, and initialises and describes it twice.
///
/// # Errors
/// [`Kind::Pack`] with the step that fails.
pub fn describe_twice(path: &Path) -> Result<Described> {
    let failed = |why: String| Error::new(Kind::Pack, why);
    let file = PackFile::read(path).map_err(failed)?;
    if let Some(folder) = file.without_code() {
        let (first, second) = (folder.describe(), folder.describe());
        let (first, second) = (first.map_err(failed)?, second.map_err(failed)?);
        return Ok(compared(first, &second));
    }
    let sealed = file.seal(None).or_else(|_| file.in_place());
    let module = mapping::open(sealed.map_err(failed)?)
        .map_err(|why| failed(format!("map: {why}")))
        .and_then(|header| mapping::root_module(header).map_err(failed))?;
    let first = image::describe(module, *loader::HOST).map_err(failed)?;
    let second = image::describe(module, *loader::HOST)
        .map_err(|why| failed(format!("the second time, {why}")))?;
    Ok(compared(first, &second))
}

fn compared(first: Image, second: &Image) -> Described {
    let (before, after) = (told(&first), told(second));
    let mut differences: Vec<String> = before
        .iter()
        .filter(|line| !after.contains(line))
        .map(|line| line.chars().take(120).collect())
        .collect();
    if differences.is_empty() && before != after {
        differences.push(format!("{} entries, then {}", before.len(), after.len()));
    }
    Described {
        kernels: first.kernels.len(),
        sources: first.sources.len(),
        warnings: first.warnings,
        differences,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_pack_is_refused_with_its_name() {
        let own = std::env::current_exe().unwrap();
        let error = facts(&own).unwrap_err().to_string();
        assert!(error.starts_with(&own.display().to_string()), "{error}");
        assert!(error.contains("ELF: "), "{error}");
        assert_eq!(sha256_of(&own).unwrap().len(), 64);
    }

    #[test]
    fn names_end_at_their_zero_and_never_beyond_the_table() {
        assert_eq!(text(b"\0libc.so.6\0libm", 1), "libc.so.6");
        assert_eq!(text(b"\0libc.so.6\0libm", 11), "libm");
        assert_eq!(text(b"ab", 7), "");
        assert_eq!(text(b"ab", u64::MAX), "");
    }
}
