//! `nxv build-server SECONDS`: compiles and builds shaders that may end this process. The host runs it, so no help names
//! it.

use nx_vulkan_host::builder;
use std::{ffi::OsString, process::ExitCode};

/// Answers requests, each of which takes the parent's limit of so many seconds and little more.
pub(crate) fn run(operands: &[OsString]) -> ExitCode {
    let seconds = match operands {
        [seconds] => seconds.to_str().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let Some(seconds) = seconds else {
        eprintln!("nxv: {} takes a number of seconds", builder::VERB);
        return ExitCode::from(crate::USAGE);
    };
    match builder::serve(seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nxv: {}: {error}", builder::VERB);
            ExitCode::FAILURE
        }
    }
}
