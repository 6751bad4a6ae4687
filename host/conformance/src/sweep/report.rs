//! What a sweep found.

use super::cases::Case;
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{layout::Layout, values::Values};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Failures that a report spells out for each op; the others are only counted.
const SHOWN: usize = 8;

/// What a sweep found.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// Name of the device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Seed of the sweep.
    pub seed: u64,
    /// Requests that were run, three times each.
    pub cases: u64,
    /// Requests whose results had guards on both sides.
    pub guarded: u64,
    /// Elements for which a denormal counted as zero.
    pub flushed: u64,
    /// Largest distance from the host kernel that was accepted, by op and result type, in ulp.
    pub ulp: BTreeMap<String, BTreeMap<String, u64>>,
    /// Requests that no pack runs although the device has what their types need, and how many of them.
    pub not_served: BTreeMap<String, u64>,
    /// Requests that no pack runs because the device lacks what their types need.
    pub lacking: BTreeMap<String, u64>,
    /// Requests that a kernel under test declines, where one pack is tested.
    pub declined: BTreeMap<String, u64>,
    /// Kernels that could not run what they planned, and why; others stood in for them.
    pub broken: BTreeSet<String>,
    /// Failures, at most 8 for each op.
    pub failures: Vec<Failure>,
    /// All failures, by op.
    pub failed: BTreeMap<String, u64>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// A case that failed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Failure {
    /// Name of the op.
    pub op: String,
    /// Operands, with types, shapes and layouts.
    pub inputs: Vec<String>,
    /// Types and shapes of the results.
    pub output: String,
    /// Attributes.
    pub attrs: Vec<String>,
    /// Layout of the operands.
    pub layout: Layout,
    pub(super) values: Values,
    /// `pack/kernel`, or `host`.
    pub served_by: String,
    /// Seed of the case's elements.
    pub seed: u64,
    /// What is wrong.
    pub what: What,
}

/// What is wrong with a case.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An element is not what it should be.
    Element {
        /// Index in the flattened result.
        index: u64,
        /// What the pack gave.
        got: String,
        /// What the host kernel gave.
        expected: String,
        /// Distance, where there is one.
        ulp: Option<u64>,
        /// The elements there of operands that have the result's shape.
        operands: Vec<String>,
    },
    /// A later run of the same request gave other bits.
    Varies {
        /// The first byte that differs.
        byte: u64,
        /// Number of the run, from 1.
        run: u32,
    },
    /// Bytes outside of the result were written.
    StrayWrite(String),
    /// An operand was changed.
    InputChanged(usize),
    /// The request failed.
    Error(String),
}

impl Report {
    /// Whether everything holds: no failure, no kernel that cannot run, and every type that the device can compute with served
    /// by a pack.
    pub fn holds(&self) -> bool {
        self.failed.is_empty() && self.broken.is_empty() && self.not_served.is_empty()
    }

    /// What does not hold beside results, in words.
    fn unserved(&self) -> String {
        let missing = (
            self.not_served.len(),
            "kind",
            "of request that no pack serves",
        );
        let broken = (
            self.broken.len(),
            "kernel",
            "that cannot run what it planned",
        );
        let counts = [missing, broken].into_iter().filter(|count| count.0 > 0);
        let words = counts.map(|(n, what, which)| {
            let plural = if n == 1 { "" } else { "s" };
            format!("{n} {what}{plural} {which}")
        });
        words.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn add(&mut self, failure: Failure) {
        let count = self.failed.entry(failure.op.clone()).or_default();
        *count += 1;
        if *count <= SHOWN as u64 {
            self.failures.push(failure);
        }
    }

    pub(super) fn decline(&mut self, case: &Case, operands: &[DType]) {
        let key = signature(case, operands);
        *self.declined.entry(key).or_default() += 1;
    }

    pub(super) fn measure(&mut self, op: &str, result: DType, ulp: u64) {
        let types = self.ulp.entry(op.to_owned()).or_default();
        let largest = types.entry(result.name().to_owned()).or_default();
        *largest = ulp.max(*largest);
    }

    pub(super) fn merge(&mut self, other: Report) {
        self.cases += other.cases;
        self.guarded += other.guarded;
        self.flushed += other.flushed;
        for (op, types) in other.ulp {
            let own = self.ulp.entry(op).or_default();
            for (dtype, ulp) in types {
                let largest = own.entry(dtype).or_default();
                *largest = ulp.max(*largest);
            }
        }
        for (to, from) in [
            (&mut self.not_served, other.not_served),
            (&mut self.lacking, other.lacking),
            (&mut self.declined, other.declined),
            (&mut self.failed, other.failed),
        ] {
            from.into_iter()
                .for_each(|(key, count)| *to.entry(key).or_default() += count);
        }
        self.broken.extend(other.broken);
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, attrs) = (self.inputs.join(", "), self.attrs.join(" "));
        write!(f, "{}({inputs}) -> {} {attrs}", self.op, self.output)?;
        write!(
            f,
            " [{:?}, {:?}, {}, seed {}]: ",
            self.layout, self.values, self.served_by, self.seed
        )?;
        match &self.what {
            What::Element {
                index,
                got,
                expected,
                ulp,
                operands,
            } => {
                write!(f, "element {index} is {got}, expected {expected}")?;
                if let Some(ulp) = ulp {
                    write!(f, ", {ulp} ulp apart")?;
                }
                match operands.is_empty() {
                    true => Ok(()),
                    false => write!(f, ", of {}", operands.join(" and ")),
                }
            }
            What::Varies { byte, run } => {
                write!(f, "run {run} differs from the first at byte {byte}")
            }
            What::StrayWrite(what) => write!(f, "a stray write to {what}"),
            What::InputChanged(index) => write!(f, "operand {index} was changed"),
            What::Error(error) => f.write_str(error),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} cases on {} ({}), seed {}, {:.1} s",
            self.cases, self.device, self.driver, self.seed, self.seconds
        )?;
        writeln!(
            f,
            "{} with guards on both sides, {} denormals flushed",
            self.guarded, self.flushed
        )?;
        for (op, types) in &self.ulp {
            let inexact: Vec<String> = types
                .iter()
                .filter(|(_, ulp)| **ulp > 0)
                .map(|(dtype, ulp)| format!("{dtype} {ulp}"))
                .collect();
            if !inexact.is_empty() {
                writeln!(f, "  {op:12} ulp  {}", inexact.join("  "))?;
            }
        }
        for (key, count) in &self.lacking {
            writeln!(
                f,
                "  the device lacks what {key} needs ({count} cases ran on the host)"
            )?;
        }
        for (key, count) in &self.not_served {
            writeln!(f, "NOT SERVED by a pack: {key} ({count} cases)")?;
        }
        for kernel in &self.broken {
            writeln!(f, "BROKEN {kernel}")?;
        }
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        let failed: u64 = self.failed.values().sum();
        match failed {
            0 if self.holds() => writeln!(f, "no failures"),
            0 => writeln!(f, "FAILED: {}; no wrong results", self.unserved()),
            _ => writeln!(f, "{failed} failures: {:?}", self.failed),
        }
    }
}

/// `add(f32, s32) -> f32`
pub(super) fn signature(case: &Case, operands: &[DType]) -> String {
    let types: Vec<&str> = operands.iter().map(|dtype| dtype.name()).collect();
    format!(
        "{}({}) -> {}",
        case.op.name,
        types.join(", "),
        case.outputs[0].0
    )
}
