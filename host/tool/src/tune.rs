//! `nxv tune`: times the kernels that compete and keeps the times for runtimes that open later.

use crate::{
    contest,
    global::Global,
    output::{Answer, Outcome, Problem, json},
    progress,
    spec::{self, Filter},
};
use nx_vulkan_conformance::sweep;
use nx_vulkan_host::{
    DType, Runtime,
    measured::{Measured, Shaped},
};
use nx_vulkan_ops::{Op, Request, Spec};
use std::{
    fmt::Write,
    time::{Duration, Instant},
};

/// Powers of two of the elements, small first: they are what most requests are, and quick to measure.
const SIZES: [u32; 5] = [6, 10, 14, 18, 22];
/// Products grow with the power of 3/2 of their elements.
const LARGEST_DOT: u32 = 18;
const BATCHES: usize = 3;

/// Time the kernels that compete, so that the registry can choose by it.
///
/// Times every kernel that can run an op, for each element type at sizes from 2^6 to 2^22 elements, and keeps the times
/// in the cache folder, for this device and driver. A runtime that opens afterwards uses them where the registry's
/// `order` includes "measured". A time counts only for the very file of the pack that it was measured with. Without this
/// verb only what the registry's `measure` says is measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: {file, device, driver, measured, skipped, complete, seconds, best: [{op, types, elements, kernel, us, next, \
next_us}]}.")]
pub(crate) struct Tune {
    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long, value_name = "OP")]
    filter: Option<Filter>,

    /// No measurement begins after this
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        allow_negative_numbers = true,
        value_parser = spec::seconds
    )]
    pub(crate) budget: Duration,
}

#[derive(serde::Serialize)]
struct Best {
    op: String,
    types: String,
    elements: u64,
    kernel: String,
    us: f64,
    next: Option<String>,
    next_us: Option<f64>,
}

impl Tune {
    /// Measures what is not known yet, smallest sizes first, until the budget is spent.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let runtime = Runtime::open(&global.config())?;
        let mut measured = runtime.measured();
        let start = Instant::now();
        let until = start + self.budget;
        let requests = requests(&spec::ops(self.filter.as_ref()))?;
        let (mut timed, mut known, mut best) = (0, 0, Vec::new());
        let mut complete = true;
        let bar = progress::bar(global);
        bar.set_length(requests.len() as u64);
        for request in &requests {
            if Instant::now() >= until {
                complete = false;
                break;
            }
            bar.set_message(request.op.to_string());
            match tune(&runtime, request, &mut measured, until)? {
                Tuned::Known => known += 1,
                Tuned::Alone => {}
                Tuned::OutOfTime => complete = false,
                Tuned::Timed(row) => {
                    timed += 1;
                    best.push(row);
                }
            }
            bar.inc(1);
        }
        drop(bar);
        measured.write()?;
        let summary = runtime.device().summary();
        let seconds = start.elapsed().as_secs_f64();
        let mut text = format!("{} ({})\n", summary.name, summary.driver);
        best.iter().for_each(|row| line(row, &mut text));
        let file = measured.file().map(|path| path.display().to_string());
        let _ = writeln!(
            text,
            "{timed} requests timed and {known} known before, in {seconds:.1} s; {}",
            file.as_deref().unwrap_or_default()
        );
        if !complete {
            let _ = writeln!(
                text,
                "the budget is spent; nxv tune again goes on from here"
            );
        }
        let json = serde_json::json!({
            "file": file, "device": summary.name, "driver": summary.driver, "measured": timed,
            "skipped": known, "complete": complete, "seconds": seconds, "best": json(&best),
        });
        Ok(Outcome::good(text, json))
    }
}

enum Tuned {
    Timed(Best),
    /// Every kernel was measured before.
    Known,
    /// Nobody competes.
    Alone,
    OutOfTime,
}

fn tune(
    runtime: &Runtime,
    request: &Request<'_, Spec>,
    measured: &mut Measured,
    until: Instant,
) -> Result<Tuned, Problem> {
    let inputs: Vec<Shaped<'_>> = request.inputs.iter().map(|i| (i.0, &i.1[..])).collect();
    let outputs: Vec<Shaped<'_>> = request.outputs.iter().map(|o| (o.0, &o.1[..])).collect();
    let types: Vec<DType> = inputs.iter().map(|input| input.0).collect();
    let results: Vec<DType> = outputs.iter().map(|output| output.0).collect();
    let rivals = runtime.rivals(&request.op, &types, &results);
    if rivals.len() < 2 {
        return Ok(Tuned::Alone);
    }
    let known =
        |name: &str, sha256: &str| measured.knows(&request.op, &inputs, &outputs, (name, sha256));
    if rivals.iter().all(|rival| known(&rival.name, &rival.sha256)) {
        return Ok(Tuned::Known);
    }
    let entries = contest::run(runtime, request, BATCHES, Some(until), &|_| true)?;
    runtime.trim()?;
    // Half a contest would make the kernel that was measured look better than those that were not.
    if entries.len() < rivals.len() {
        return Ok(Tuned::OutOfTime);
    }
    let mut order: Vec<(&str, f64)> = Vec::new();
    for entry in &entries {
        let kernel = (entry.rival.name.as_str(), entry.rival.sha256.as_str());
        measured.record(&request.op, &inputs, &outputs, kernel, entry.us());
        order.extend(entry.us().map(|us| (kernel.0, us)));
    }
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some((kernel, us)) = order.first() else {
        return Ok(Tuned::Alone);
    };
    let names: Vec<&str> = types.iter().map(|dtype| dtype.name()).collect();
    Ok(Tuned::Timed(Best {
        op: request.op.to_string(),
        types: format!("{}->{}", names.join(","), results[0]),
        elements: outputs[0].1.iter().product(),
        kernel: (*kernel).to_owned(),
        us: *us,
        next: order.get(1).map(|next| next.0.to_owned()),
        next_us: order.get(1).map(|next| next.1),
    }))
}

fn requests(ops: &[&'static Op]) -> Result<Vec<Request<'static, Spec>>, Problem> {
    let mut requests = Vec::new();
    for power in SIZES {
        for op in ops {
            if op.contract.tiled && power > LARGEST_DOT {
                continue;
            }
            for (dtype, _) in sweep::canonical(op)? {
                requests.push(contest::request(op, dtype, power)?);
            }
        }
    }
    Ok(requests)
}

fn line(row: &Best, text: &mut String) {
    let _ = write!(
        text,
        "{:20} {:16} {:9}  {:10.2} us  {}",
        row.op, row.types, row.elements, row.us, row.kernel
    );
    if let (Some(next), Some(us)) = (&row.next, row.next_us) {
        let _ = write!(text, "  ({:.1} times as fast as {next})", us / row.us);
    }
    let _ = writeln!(text);
}
