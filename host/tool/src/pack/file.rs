//! Files that an author names: their paths as arguments, and what is said where one cannot be read or written.

use crate::output::Problem;
use clap::builder::{PathBufValueParser, TypedValueParser};
use nx_vulkan_host::{Error, Kind};
use nx_vulkan_registry as registry;
use std::{
    io,
    path::{Path, PathBuf},
};

/// A registry could not name such a file.
const NOT_UTF8: &str = "the path is not UTF-8, and a registry is";

/// Reads a path and makes it absolute, so that it can be named in a registry that lies elsewhere.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let path = std::path::absolute(path)?;
        match (path.to_str(), why_none(&path)) {
            (None, _) => Err(io::Error::other(NOT_UTF8)),
            (_, Some(why)) => Err(io::Error::other(why)),
            _ => Ok(path),
        }
    })
}

/// What makes a folder with a table something else than a pack without code.
fn why_none(path: &Path) -> Option<String> {
    if !path.join("pack.toml").exists() || registry::folder::is_pack(path) {
        return None;
    }
    let names = registry::folder::libraries(path).ok()?.join(", ");
    Some(format!(
        "it holds {names}, so it is no pack without code; name the library"
    ))
}

/// A failure to read or write `path`.
pub(super) fn trouble(path: &Path, error: &std::io::Error) -> Problem {
    let text = format!("{}: {error}", path.display());
    Problem::Failure(Error::new(Kind::Io, text))
}
