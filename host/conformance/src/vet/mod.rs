//! What `nxv pack check` looks at: everything for which a host would refuse a pack or one of its plans. It runs no kernel.
//!
//! The groups are independent, so that a caller can run each in a process of its own: what a pack crashes is then that
//! process.

mod hostile;
mod plans;
mod shaders;

use nx_vulkan_host::{Config, Error, Kind, Result, Runtime};
use nx_vulkan_registry as registry;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// A group of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The bytes of the file: metadata, symbols, what it needs.
    File,
    /// Mapping it, its layout, what it says of itself, twice.
    Load,
    /// Its answers to requests, proper ones and hostile ones.
    Plan,
    /// The shaders of its plans.
    Shaders,
}

/// Every group with its name, in the order in which they make sense.
pub const GROUPS: [(&str, Group); 4] = [
    ("file", Group::File),
    ("load", Group::Load),
    ("plan", Group::Plan),
    ("shaders", Group::Shaders),
];

/// What to check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The pack's file.
    pub file: PathBuf,
    /// A configuration that loads this pack and no other.
    pub config: Config,
    /// Seed of the requests.
    pub seed: u64,
    /// Called with what is about to be looked at.
    pub progress: fn(&str),
}

/// Something an author should know.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// Whether a host would refuse the pack or a plan for it, or the pack would be wrong.
    pub error: bool,
    /// Where: a kernel with its request, a shader, the file.
    pub at: String,
    /// What is wrong.
    pub what: String,
}

/// What a group found.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// What was looked at, and how much of it.
    pub counts: BTreeMap<String, u64>,
    /// What is wrong, at most [`SHOWN`] of one kind.
    pub findings: Vec<Finding>,
}

/// Findings about one kernel or shader that are spelled out.
pub const SHOWN: usize = 5;

/// Characters of a finding.
const LONGEST: usize = 1000;

/// Symbol of the root module, the only one a pack exports.
const ROOT: &str = "_1as_0lib_1header_0root_bmodule_bloader";

/// Runs a group.
///
/// # Errors
/// When it cannot be run, for want of a device for example. What is wrong with the pack is in the report.
pub fn run(group: Group, options: &Options) -> Result<Report> {
    let mut report = Report::default();
    match group {
        Group::File => file(options, &mut report),
        Group::Load => load(options, &mut report),
        Group::Plan => plans::check(options, &mut report)?,
        Group::Shaders => shaders::check(options, &mut report)?,
    }
    Ok(report)
}

impl Report {
    fn count(&mut self, what: &str, by: u64) {
        *self.counts.entry(what.to_owned()).or_default() += by;
    }

    fn error(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.add(true, at.into(), what.into());
    }

    fn warning(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.add(false, at.into(), what.into());
    }

    /// Keeps a finding; of many about the same place the first few.
    fn add(&mut self, error: bool, at: String, what: String) {
        // Both may repeat what the pack says.
        let (at, what) = (clean(&at), clean(&what));
        let place = at.split(' ').next().unwrap_or_default();
        let same = self
            .findings
            .iter()
            .filter(|f| f.at.split(' ').next() == Some(place));
        if same.count() < SHOWN {
            self.findings.push(Finding { error, at, what });
        } else {
            self.count("findings left out", 1);
        }
    }
}

/// A text without control characters and of a length to read.
fn clean(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).take(LONGEST).collect()
}

fn file(options: &Options, report: &mut Report) {
    let facts = match registry::facts(&options.file) {
        Ok(facts) => facts,
        Err(error) => return report.error("file", error.to_string()),
    };
    report.count("bytes", facts.bytes);
    if facts.panic == "none" {
        // A pack without code has no symbols, and the host's own loader has read its table.
        return;
    }
    report.count("exported symbols", facts.exports.len() as u64);
    match facts.exports.as_slice() {
        [one] if one == ROOT => {}
        [] => report.error("symbols", "it exports no root module; `pack!` exports it"),
        many if many.iter().any(|name| name == ROOT) => {
            let others: Vec<&str> = many
                .iter()
                .map(String::as_str)
                .filter(|n| *n != ROOT)
                .collect();
            report.error(
                "symbols",
                format!(
                    "it exports more than its root module: {}",
                    others.join(", ")
                ),
            );
        }
        others => report.error(
            "symbols",
            format!("it exports no root module, but {}", others.join(", ")),
        ),
    }
}

fn load(options: &Options, report: &mut Report) {
    let before = threads();
    let described = match registry::describe_twice(&options.file) {
        Ok(described) => described,
        Err(error) => return report.error("load", error.to_string()),
    };
    report.count("kernels", described.kernels as u64);
    report.count("sources", described.sources as u64);
    if described.kernels == 0 {
        report.error("describe", "it has no kernels");
    }
    for difference in &described.differences {
        report.error(
            "describe",
            format!("the second time it does not say: {difference}"),
        );
    }
    for warning in &described.warnings {
        report.warning("describe", warning.as_str());
    }
    if threads() > before {
        report.error(
            "init",
            "it starts threads, which would outlive every version of the pack",
        );
    }
}

/// Threads of this process, where the system says.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count())
}

/// A runtime with the pack, and the pack's place in its table.
fn open(options: &Options) -> Result<(Arc<Runtime>, usize)> {
    let sha256 = registry::sha256_of(&options.file)?;
    let runtime = Runtime::open(&options.config)?;
    let table = runtime.table();
    match table.packs.iter().position(|pack| pack.sha256 == sha256) {
        Some(place) => Ok((runtime, place)),
        None => {
            let why: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
            Err(Error::new(
                Kind::Pack,
                format!("the pack does not load: {}", why.join("; ")),
            ))
        }
    }
}
