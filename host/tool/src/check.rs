//! `nxv check`.

use crate::{
    global::Global,
    output::{Answer, Outcome, json},
    spec::Filter,
    sweep::Sweep,
};
use nx_vulkan_host::device;
use std::fmt::Write;

/// Run every op and compare with the CPU kernels.
///
/// The conformance sweep: runs every op on every element type, in every layout, on random and special values, three
/// times each, and compares with the CPU kernels. It fails when an element is beyond its tolerance, when a run differs
/// from the first, when bytes outside of a result or in an operand change, when a kernel cannot run what it planned, and when
/// a type that the device can compute with is not served by a pack.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: {device, driver, seed, cases, guarded, flushed, ulp, declined, not_served, lacking, broken, failures, failed, seconds, validation}.
Exit code: 1 when anything fails, or with --validation when the layers report anything.")]
pub(crate) struct Check {
    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long, value_name = "OP")]
    filter: Option<Filter>,

    #[command(flatten)]
    sweep: Sweep,
}

impl Check {
    /// Runs the sweep.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let filter = self.filter.as_ref();
        let report = self
            .sweep
            .run(global, &global.config(), filter, None, None)?;
        let validation = device::validation_messages();
        let mut text = report.to_string();
        for message in &validation {
            let _ = writeln!(text, "VALIDATION {message}");
        }
        let holds = report.holds() && validation.is_empty();
        let mut json = json(&report);
        json["validation"] = validation.into();
        Ok(Outcome { text, json, holds })
    }
}
