//! `nxv bench`.

mod profiled;
mod runner;

use crate::{
    asked::Asked,
    global::Global,
    output::{Answer, Outcome, Problem, json},
    progress,
    workloads::{self, Workload},
};
use nx_vulkan_host::{MemoryBudget, Runtime};
use profiled::StepTime;
use runner::Runner;
use std::{collections::HashMap, fmt::Write};

const BATCHES: usize = 25;
const QUICK_BATCHES: usize = 5;

/// Measure ops on data that lies on the device.
///
/// Work is timed in batches with one wait at the end of each; the numbers are of one op: median, minimum and 95th
/// percentile over the batches. What does not fit into memory is skipped with a note, what nobody runs as well.
/// bench/compare.py puts two results side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: {device, driver, results: [{name, median_us, min_us, p95_us, gbps, tflops, served_by, host_us, note}]}.
With --profile a row has steps: [{step, groups, us}]; groups are null where the device counts them.")]
pub(crate) struct Bench {
    /// Only benchmarks whose name contains one of these texts
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    filter: Vec<String>,

    /// This request in place of the benchmarks, as often as it is given: 'dot f16[4096,4096] f16[4096,4096]'; attributes
    /// as name=value, another result than Nx infers after ->
    #[arg(long, value_name = "REQUEST", conflicts_with_all = ["filter", "list"])]
    request: Vec<Asked>,

    /// Print the names, run nothing
    #[arg(long)]
    list: bool,

    /// Fewer batches
    #[arg(long)]
    quick: bool,

    /// Also time the CPU kernels
    #[arg(long)]
    host: bool,

    /// Let tensors keep what kernels pack of them, as they do where they are used again; else each run packs anew
    #[arg(long)]
    kept: bool,

    /// As a compiled function runs it on a GPU: recorded once, and each run after the one before
    #[arg(long)]
    replayed: bool,

    /// With operands that are in no cache: so many of them take turns
    #[arg(long)]
    cold: bool,

    /// Also tell the time of each step that the device takes, the median of several runs: a shader with its workgroups
    #[arg(long)]
    profile: bool,
}

/// One row of the result.
#[derive(Debug, serde::Serialize)]
struct Row {
    name: String,
    median_us: Option<f64>,
    min_us: Option<f64>,
    p95_us: Option<f64>,
    gbps: Option<f64>,
    tflops: Option<f64>,
    served_by: Option<String>,
    host_us: Option<f64>,
    /// Why there are no times.
    note: Option<String>,
    /// With `--profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepTime>>,
}

impl Bench {
    /// Runs the benchmarks.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let workloads: Vec<Workload> = match self.request.as_slice() {
            [] => workloads::all()
                .into_iter()
                .filter(|workload| self.wants(workload))
                .collect(),
            asked => asked
                .iter()
                .map(asked_for)
                .collect::<std::result::Result<_, Problem>>()?,
        };
        if workloads.is_empty() {
            return Err(Problem::Usage(
                "no benchmark has that in its name; nxv bench --list prints the names".to_owned(),
            ));
        }
        if self.list {
            let names: Vec<&str> = workloads
                .iter()
                .map(|workload| workload.name.as_str())
                .collect();
            return Ok(Outcome::good(names.join("\n") + "\n", json(&names)));
        }
        let mut config = global.config();
        if !self.kept {
            config.kept = MemoryBudget::Bytes(0);
        }
        config.replays = Some(self.replayed);
        let runtime = Runtime::open(&config)?;
        let summary = runtime.device().summary();
        let mut runner = Runner {
            runtime: &runtime,
            batches: if self.quick { QUICK_BATCHES } else { BATCHES },
            on_host: self.host,
            replayed: self.replayed,
            cold: self.cold,
            profile: self.profile,
            pace: HashMap::new(),
        };
        let mut rows = Vec::new();
        let bar = progress::bar(global);
        bar.set_length(workloads.len() as u64);
        for workload in &workloads {
            bar.set_message(workload.name.clone());
            rows.push(runner.row(workload)?);
            bar.inc(1);
        }
        drop(bar);
        let mut text = format!("{} ({})\n", summary.name, summary.driver);
        rows.iter().for_each(|row| line(row, &mut text));
        let json = serde_json::json!({ "device": summary.name, "driver": summary.driver, "results": rows });
        Ok(Outcome::good(text, json))
    }

    fn wants(&self, workload: &Workload) -> bool {
        let name = workload.name.to_lowercase();
        let contained = |filter: &String| name.contains(filter.to_lowercase().trim());
        self.filter.is_empty() || self.filter.iter().any(contained)
    }
}

/// The workload of a request.
fn asked_for(asked: &Asked) -> std::result::Result<Workload, Problem> {
    let request = asked
        .request(None)
        .map_err(|error| Problem::Usage(error.to_string()))?;
    Ok(Workload::of(&asked.0.text, &request))
}

fn line(row: &Row, text: &mut String) {
    let Some(median) = row.median_us else {
        let _ = writeln!(
            text,
            "{:26} {}",
            row.name,
            row.note.as_deref().unwrap_or("not measured")
        );
        return;
    };
    let (min, p95) = (row.min_us.unwrap_or(median), row.p95_us.unwrap_or(median));
    let _ = write!(
        text,
        "{:26} {median:12.2} us  (min {min:.2}, p95 {p95:.2})",
        row.name
    );
    if let Some(gbps) = row.gbps {
        let _ = write!(text, "  {gbps:.0} GB/s");
    }
    if let Some(tflops) = row.tflops {
        let _ = write!(text, "  {tflops:.2} TFLOP/s");
    }
    if let Some(host) = row.host_us {
        let _ = write!(text, "  CPU {host:.0} us");
    }
    let _ = writeln!(text, "  {}", row.served_by.as_deref().unwrap_or(""));
    let steps = row.steps.iter().flatten();
    steps.for_each(|step| text.push_str(&step.to_string()));
}
