//! `nxv probe FILE`: tries one pack in this process, which the pack may end. The host runs it; people run `nxv pack
//! check`, so no help names it.

use nx_vulkan_registry::probe;
use std::{ffi::OsString, path::Path, process::ExitCode};

/// The verb, which [`crate::HIDDEN`] names.
pub(crate) const VERB: &str = "probe";

/// Tries the file that `operands` name, if it has the sha256 behind it.
pub(crate) fn run(operands: &[OsString]) -> ExitCode {
    let (file, sha256) = match operands {
        [file] => (file, None),
        [file, sha256] => (file, sha256.to_str()),
        _ => {
            eprintln!("nxv: probe takes one file, got: {}", operands.len());
            return ExitCode::from(crate::USAGE);
        }
    };
    match probe::serve(Path::new(file), sha256) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
