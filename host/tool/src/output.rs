//! What a verb answers, and how it reaches the terminal.

use nx_vulkan_host::Error;
use std::io::Write;

/// What a verb answers.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// For people.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: serde_json::Value,
    /// Whether nxv succeeds.
    pub(crate) holds: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// The host cannot do it.
    Failure(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Failure(error)
    }
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
