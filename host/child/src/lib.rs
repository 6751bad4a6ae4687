//! What the host runs in a process of its own, because it may end the process: new packs and strangers' shaders are
//! tried here first. `nxv-child` does nothing else, and `nxv` does it too.

use nx_vulkan_host::builder;
use nx_vulkan_registry::{child, probe};
use std::{ffi::OsString, path::Path, process::ExitCode};

/// Code of a command line that makes no sense.
const USAGE: u8 = 2;

/// Runs a command line of the host's, `probe FILE [SHA256]` or `build-server SECONDS`; `None` for any other.
pub fn run(words: &[OsString]) -> Option<ExitCode> {
    let (verb, operands) = words.split_first()?;
    let run = match verb.to_str()? {
        "probe" => try_pack,
        builder::VERB => build_shaders,
        _ => return None,
    };
    child::close_inherited();
    child::tell_end();
    Some(run(operands).unwrap_or_else(|why| {
        eprintln!("nxv: {}: {why}", verb.display());
        ExitCode::from(USAGE)
    }))
}

/// Tries a pack in this process, if its file has the sha256 that is given.
fn try_pack(operands: &[OsString]) -> Result<ExitCode, String> {
    let (file, sha256) = match operands {
        [file] => (file, None),
        [file, sha256] => (file, sha256.to_str()),
        _ => return Err(format!("expected one file, got: {}", operands.len())),
    };
    Ok(match probe::serve(Path::new(file), sha256) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Compiles and builds shaders, each within the parent's limit of so many seconds and little more.
fn build_shaders(operands: &[OsString]) -> Result<ExitCode, String> {
    let seconds = match operands {
        [seconds] => seconds.to_str().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let seconds =
        seconds.ok_or_else(|| format!("expected a number of seconds, got: {operands:?}"))?;
    Ok(match builder::serve(seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nxv: {}: {error}", builder::VERB);
            ExitCode::FAILURE
        }
    })
}
