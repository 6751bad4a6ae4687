//! `nxv-child`: see the library beside it.

use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    nx_vulkan_host::stderr::install();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    nx_vulkan_child::run(&words).unwrap_or_else(|| {
        eprintln!("nxv-child: the host of nx_vulkan runs it; people run nxv");
        ExitCode::from(2)
    })
}
