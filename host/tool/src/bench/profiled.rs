//! How long each step of a workload takes the device.

use nx_vulkan_host::{ProfileRow, Result, Runtime};
use std::{fmt, sync::Arc};

/// Runs of which the medians are.
const RUNS: usize = 20;

/// A step, and its time.
#[derive(Debug, serde::Serialize)]
pub(super) struct StepTime {
    step: String,
    /// Nothing where the device itself counts them.
    groups: Option<(u32, u32, u32)>,
    us: f64,
}

impl fmt::Display for StepTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:26} {:12.2} us  {}", "", self.us, self.step)?;
        match self.groups {
            Some((x, y, z)) => writeln!(f, " {x}x{y}x{z}"),
            None => writeln!(f),
        }
    }
}

/// The steps that `run` has the device take, each once, in the order in which they come.
pub(super) fn steps(runtime: &Arc<Runtime>, run: impl Fn() -> Result<()>) -> Result<Vec<StepTime>> {
    let profiling = runtime.begin_profile()?;
    (0..RUNS).try_for_each(|_| run())?;
    let rows = profiling.end()?.rows.into_iter();
    let mut steps: Vec<(ProfileRow, Vec<f64>)> = Vec::new();
    for row in rows.filter(|row| row.steps > 0) {
        match steps.iter_mut().find(|(known, _)| is_same(known, &row)) {
            Some((_, times)) => times.push(row.us),
            None => steps.push((row.clone(), vec![row.us])),
        }
    }
    let steps = steps.into_iter().map(|(row, mut times)| {
        times.sort_by(f64::total_cmp);
        StepTime {
            step: row.step.to_string(),
            groups: row.groups,
            us: times[times.len() / 2],
        }
    });
    Ok(steps.collect())
}

fn is_same(a: &ProfileRow, b: &ProfileRow) -> bool {
    let what = |row: &ProfileRow| (row.op.clone(), row.step.clone(), row.index, row.groups);
    what(a) == what(b)
}
