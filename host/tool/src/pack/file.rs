//! Files that an author names: their paths as arguments, and what is said where one cannot be read or written.

use crate::output::Problem;
use clap::builder::{PathBufValueParser, TypedValueParser};
use nx_vulkan_host::{Error, Kind};
use std::path::{Path, PathBuf};

/// Reads a path and makes it absolute, so that it can be named in a registry that lies elsewhere.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute)
}

/// A failure to read or write `path`.
pub(super) fn trouble(path: &Path, error: &std::io::Error) -> Problem {
    let text = format!("{}: {error}", path.display());
    Problem::Failure(Error::new(Kind::Io, text))
}
