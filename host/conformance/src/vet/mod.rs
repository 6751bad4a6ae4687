//! What `nxv pack check` looks at: everything for which a host would refuse a pack or one of its plans. It runs no kernel.
//!
//! The groups are independent, so that a caller can run each in a process of its own: what a pack crashes is then that
//! process.

mod compile;
mod hostile;
mod named;
mod options;
mod plans;
mod report;
mod shaders;

pub use compile::compile;
pub use named::Named;
use nx_vulkan_host::Result;
use nx_vulkan_registry as registry;
pub use options::Options;
pub use report::{Finding, Report, SHOWN};

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
