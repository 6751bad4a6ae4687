//! What a verb answers, and how it reaches the terminal.

use nx_vulkan_host::Error;
use std::{io::Write, path::Path, process::ExitCode};

/// Exit code for a command line that makes no sense, which is that of clap.
pub(crate) const USAGE: u8 = 2;

/// What comes of a verb.
pub(crate) type Answer = Result<Outcome, Problem>;

/// What a verb answers.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// For people.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: serde_json::Value,
    /// Whether nxv succeeds.
    pub(crate) holds: bool,
}

impl Outcome {
    /// The outcome of what either succeeds or is a [`Problem`].
    pub(crate) fn good(text: String, json: serde_json::Value) -> Outcome {
        let holds = true;
        Outcome { text, json, holds }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// The host cannot do it.
    Failure(Error),
    /// Another process has answered, or has told why there is no answer, and ended with this code.
    Told(u8),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Failure(error)
    }
}

/// Tells the answer, as JSON where that is wanted.
pub(crate) fn finish(answer: Answer, as_json: bool) -> ExitCode {
    match answer {
        Ok(outcome) => {
            match as_json {
                true => print(&format!("{:#}\n", outcome.json)),
                false => print(&outcome.text),
            }
            match outcome.holds {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(Problem::Usage(message)) => {
            eprintln!("nxv: {message}\n\nFor more information, try '--help'.");
            ExitCode::from(USAGE)
        }
        Err(Problem::Told(code)) => ExitCode::from(code),
        Err(Problem::Failure(error)) => {
            eprintln!("nxv: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A path as text. JSON has no other form for one that is not UTF-8.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The value as JSON. All types here are plain data, which always has a form in JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("plain data has a form in JSON")
}

/// Writes to stdout; a reader that went away is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// As [`print`], to the standard error: what is shown while JSON is made.
pub(crate) fn print_aside(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
