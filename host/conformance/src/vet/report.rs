//! What a group of checks found.

use nx_vulkan_registry as registry;
use std::collections::BTreeMap;

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

impl Report {
    pub(super) fn count(&mut self, what: &str, by: u64) {
        *self.counts.entry(what.to_owned()).or_default() += by;
    }

    pub(super) fn error(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.add(true, at.into(), what.into());
    }

    pub(super) fn warning(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.add(false, at.into(), what.into());
    }

    /// Keeps a finding; of many about the same place the first few.
    fn add(&mut self, error: bool, at: String, what: String) {
        // Both may repeat what the pack says.
        let (at, what) = (clean(&at).replace('\n', " "), clean(&what));
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

/// A text of a length to read.
fn clean(text: &str) -> String {
    registry::printed(text).chars().take(LONGEST).collect()
}
