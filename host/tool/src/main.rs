//! `nxv`: what is on this machine, who runs what, is it right, how fast is it. It only calls the host runtime.

mod args;
mod bench;
mod build_server;
mod check;
mod contest;
mod devices;
mod explain;
mod help;
mod ops;
mod output;
mod pack;
mod probe;
mod registry;
mod spec;
mod timing;
mod tune;
mod workloads;

use args::{Parsed, Verb};
use nx_vulkan_host::builder;
use output::{Outcome, print};
use std::{ffi::OsString, process::ExitCode};

/// Exit code for a command line that makes no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|verb| verb == probe::VERB) {
        return probe::run(&words[1..]);
    }
    if words.first().is_some_and(|verb| verb == builder::VERB) {
        return build_server::run(&words[1..]);
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let arguments = match args::parse(&words) {
        Ok(Parsed::Run(arguments)) => arguments,
        Ok(Parsed::Help(topic)) => {
            print(help::text(topic));
            return ExitCode::SUCCESS;
        }
        Ok(Parsed::Version) => {
            print(&format!("nxv {}\n", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("nxv: {message}\nTry: nxv --help");
            return ExitCode::from(USAGE);
        }
    };
    let result: Result<Outcome, output::Problem> = match arguments.verb {
        Verb::Devices => devices::run(),
        Verb::Ops => ops::run(&arguments),
        Verb::Explain => explain::run(&arguments),
        Verb::Bench => bench::run(&arguments),
        Verb::Check => check::run(&arguments),
        Verb::Pack => pack::run(&arguments),
        Verb::Tune => tune::run(&arguments),
        Verb::Registry => registry::run(&arguments),
    };
    match result {
        Ok(outcome) => {
            match arguments.json {
                true => print(&format!("{:#}\n", outcome.json)),
                false => print(&outcome.text),
            }
            if outcome.holds {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(output::Problem::Usage(message)) => {
            eprintln!("nxv: {message}\nTry: nxv help {}", arguments.verb.name());
            ExitCode::from(USAGE)
        }
        Err(output::Problem::Failure(error)) => {
            eprintln!("nxv: {error}");
            ExitCode::FAILURE
        }
    }
}
