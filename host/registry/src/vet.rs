//! What a pack file says about itself, for the author and for tools that pin and sign it; it decides nothing about loading.

use super::{
    identity, image,
    image::Image,
    kernel::KernelEntry,
    library::Library,
    loader::{self, PackFile},
    mapping,
    target::HOST,
};
use nx_vulkan_ops::{Error, Kind, Result};
use std::path::Path;

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
    let facts = FileFacts {
        id: identity.id,
        version: identity.version.to_string(),
        abi: identity.abi,
        panic: "none".to_owned(),
        sha256: file.sha256.clone(),
        bytes: file.bytes()?.len() as u64,
        exports: Vec::new(),
        needed: Vec::new(),
    };
    if let Some(folder) = file.without_code() {
        return Ok(FileFacts {
            bytes: folder.bytes(),
            ..facts
        });
    }
    let library = Library::read(file.bytes()?, HOST)?;
    Ok(FileFacts {
        panic: identity::metadata(&library)?.panic,
        exports: library.exports()?,
        needed: library.needed,
        ..facts
    })
}

/// What `describe` says about one kernel and the sources, as comparable text.
fn told(image: &Image) -> Vec<String> {
    let kernels = image.kernels.iter().map(|kernel| {
        let KernelEntry {
            pack: _,
            id,
            op,
            row,
            inputs,
            outputs,
            needs,
            numerics,
            rank,
            offers,
            plan: _,
        } = kernel;
        format!("kernel {id}: {op} {row} {inputs:?} {outputs:?} {needs:?} {numerics:?} {rank} {offers:?}")
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
        warnings: [first.warnings, first.notes].concat(),
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
}
