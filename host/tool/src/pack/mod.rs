//! `nxv pack`: what an author of a kernel pack needs. Each verb has a file of its own.

mod bench;
mod check;
mod new;
mod pin;
mod quarantine;
mod sign;
mod test;
mod watch;

use crate::{output::Problem, verbs::verbs};
use clap::builder::{PathBufValueParser, TypedValueParser};
use nx_vulkan_host::Error;
use std::path::PathBuf;

verbs! {
    /// Write, check, test, measure, pin and sign a kernel pack.
    ///
    /// What an author of a kernel pack needs. docs/writing-a-pack.md goes through all of it.
    pub(crate) enum Verb {
        New(new::New),
        Check(check::Check),
        Test(test::Test),
        Bench(bench::Bench),
        Watch(watch::Watch),
        Pin(pin::Pin),
        Keygen(sign::Keygen),
        Sign(sign::Sign),
        Quarantine(quarantine::List),
        Release(quarantine::Release),
    }
}

/// Reads a path and makes it absolute, so that it can be named in a registry that lies elsewhere.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute)
}

/// A failure to read or write `path`.
fn trouble(path: &std::path::Path, error: &std::io::Error) -> Problem {
    let text = format!("{}: {error}", path.display());
    Problem::Failure(Error::new(nx_vulkan_host::Kind::Io, text))
}
