//! `nxv pack`: what an author of a kernel pack needs. Each verb has a file of its own.

mod bench;
mod check;
mod new;
mod pin;
mod quarantine;
mod session;
mod sign;
mod test;
mod watch;

use crate::{
    args::{Arguments, similar},
    output::{Outcome, Problem},
};
use nx_vulkan_host::Error;
use std::path::PathBuf;

type Run = fn(&Arguments, &str) -> Result<Outcome, Problem>;

/// Name, what it works on, the options it has, and the function.
struct Sub(&'static str, &'static str, &'static [&'static str], Run);

const SUBS: &[Sub] = &[
    Sub("new", "NAME", &["--into", "--abi"], new::run),
    Sub(
        "check",
        "FILE",
        &["--seed", "--timeout", "--group"],
        check::run,
    ),
    Sub(
        "test",
        "FILE",
        &["--op", "--seed", "--quick", "--threads"],
        test::run,
    ),
    Sub("bench", "FILE", &["--op", "--quick"], bench::run),
    Sub("watch", "FOLDER", &["--op", "--for"], watch::run),
    Sub("pin", "FILE", &[], pin::run),
    Sub("keygen", "", &["--key"], sign::keygen),
    Sub("sign", "FILE", &["--key"], sign::run),
    Sub("quarantine", "", &[], quarantine::list),
    Sub("release", "SHA256", &[], quarantine::release),
];

/// Runs the verb after `pack`.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let names = || SUBS.iter().map(|sub| sub.0);
    let (name, operands) = arguments.operands.split_first().ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        Problem::Usage(format!("pack needs one of: {}", names.join(", ")))
    })?;
    let sub = SUBS.iter().find(|sub| sub.0 == name).ok_or_else(|| {
        Problem::Usage(format!("there is no pack {name}{}", similar(name, names())))
    })?;
    if let Some(option) = arguments.given().find(|option| !sub.2.contains(option)) {
        return Err(Problem::Usage(format!(
            "pack {name} has no option {option}"
        )));
    }
    match (sub.1, operands) {
        ("", []) => (sub.3)(arguments, ""),
        ("", [word, ..]) => Err(Problem::Usage(format!(
            "pack {name} takes no operands, got: {word}"
        ))),
        (_, [operand]) => (sub.3)(arguments, operand),
        (what, given) => Err(Problem::Usage(format!(
            "pack {name} takes one {what}, got: {}",
            given.len()
        ))),
    }
}

/// The file, absolute, so that it can be named in a registry that lies elsewhere.
fn file(operand: &str) -> Result<PathBuf, Problem> {
    std::path::absolute(operand).map_err(|error| Problem::Usage(format!("{operand}: {error}")))
}

/// A failure to read or write `path`.
fn trouble(path: &std::path::Path, error: &std::io::Error) -> Problem {
    let text = format!("{}: {error}", path.display());
    Problem::Failure(Error::new(nx_vulkan_host::Kind::Io, text))
}
