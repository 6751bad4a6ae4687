//! `nxv pack bench`: the kernels of one pack against every other kernel of the same ops.

use super::file::path;
use crate::{
    asked::{self, Asked},
    contest::{self, Entry},
    explain,
    global::Global,
    output::{Answer, Outcome, Problem},
    spec::Filter,
};
use nx_vulkan_conformance::{
    session::{Session, With},
    sweep,
};
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{Op, Request, Spec, find};
use std::{collections::BTreeSet, fmt::Write, path::PathBuf};

/// Powers of two of the elements.
const SIZES: [u32; 3] = [10, 16, 20];
const QUICK: [u32; 1] = [12];
const BATCHES: usize = 9;
const QUICK_BATCHES: usize = 3;
/// Operations beyond which the host's kernels are timed only when they are asked for: they need minutes.
const MOST_ON_HOST: f64 = 2147483648.0;
const HOST: &str = "host";
/// Characters of the longest bar.
const WIDTH: f64 = 30.0;

/// Time the pack's kernels against every other kernel of the same op, the CPU's included.
///
/// Operands of products are random, of both signs and different in every element: how fast a device computes depends on
/// them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nxv pack bench PACK --request 'f16[4096,4096] f16[4096,4096]' --against matmul/dot_tiled
  nxv pack bench PACK --request 'dot s8[64,512] s8[64,512] contract_a=1 contract_b=1 -> s32[64,64]'

JSON: {device, driver, pack, results: [{request, op, kernel, mine, median_us, min_us, p95_us, gbps, tflops, note, shaders}]}.")]
pub(crate) struct Bench {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long)]
    op: Option<Filter>,

    /// This request in place of those of the op's sizes, as often as it is given; the op may be left out where the pack
    /// has only one; attributes as name=value, another result than Nx infers after ->
    #[arg(long, value_name = "REQUEST")]
    request: Vec<Asked>,

    /// Time only this kernel beside the pack's own, pack/kernel or host, as often as it is given
    #[arg(long, value_name = "KERNEL")]
    against: Vec<String>,

    /// Also what the driver's compiler tells of the shaders of the pack's kernels: registers, spills, shared memory
    #[arg(long)]
    shaders: bool,

    /// Fewer sizes and batches
    #[arg(long)]
    quick: bool,
}

impl Bench {
    /// Times every request and draws a bar for each kernel.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let session = Session::new(&global.config(), &self.file, With::Others)?;
        let runtime = session.runtime()?;
        let id = &session.facts.id;
        let ops = ops(&runtime, id, self.op.as_ref())?;
        let (sizes, batches) = match self.quick {
            true => (&QUICK[..], QUICK_BATCHES),
            false => (&SIZES[..], BATCHES),
        };
        let requests = self.requests(&ops, sizes)?;
        let summary = runtime.device().summary();
        let mut text = format!("{} ({})\n", summary.name, summary.driver);
        let mut rows = Vec::new();
        for request in &requests {
            let operations = asked::operations(request);
            let wanted = |name: &str| match self.against.as_slice() {
                [] => name != HOST || operations.is_none_or(|count| count <= MOST_ON_HOST),
                others => is_of(name, id) || others.iter().any(|other| other == name),
            };
            let entries = contest::run(&runtime, request, batches, None, &wanted)?;
            runtime.trim()?;
            let mine = |entry: &Entry| is_of(&entry.rival.name, id);
            if !entries.iter().any(mine) {
                continue;
            }
            if let Some(other) = self.missing(&entries) {
                return Err(Problem::Usage(format!(
                    "no loaded pack has a kernel {other} that takes {}",
                    shown(request)
                )));
            }
            let _ = writeln!(text, "\n{}", shown(request));
            chart(request, &entries, mine, &mut text);
            for entry in &entries {
                let mut row = row(request, entry, mine(entry));
                if self.shaders && mine(entry) && entry.us().is_some() {
                    let kernel = &entry.rival.name;
                    let _ = writeln!(text, "  {kernel}");
                    explain::tell(&runtime, kernel, request, &mut text, &mut row)?;
                }
                rows.push(row);
            }
        }
        let holds = rows
            .iter()
            .any(|row| row["mine"] == true && !row["median_us"].is_null());
        if !holds {
            let _ = writeln!(text, "the pack {id} planned none of the requests");
        }
        let json = serde_json::json!({
            "device": summary.name, "driver": summary.driver, "pack": id, "results": rows,
        });
        Ok(Outcome { text, json, holds })
    }
}

impl Bench {
    /// The requests that are asked for, else one of each op, type and size.
    fn requests(
        &self,
        ops: &[String],
        sizes: &[u32],
    ) -> Result<Vec<Request<'static, Spec>>, Problem> {
        let usage = |error: nx_vulkan_host::Error| Problem::Usage(error.to_string());
        if !self.request.is_empty() {
            let asked = self.request.iter();
            let names: Vec<&str> = ops.iter().map(String::as_str).collect();
            return asked
                .map(|asked| asked.request_among(&names).map_err(usage))
                .collect();
        }
        let mut requests = Vec::new();
        let known: Vec<&Op> = ops.iter().filter_map(|op| find(op)).collect();
        if known.is_empty() {
            let none = "the pack has no kernel for an op that the host knows; name requests with --request";
            return Err(Problem::Usage(none.to_owned()));
        }
        for op in known {
            for (dtype, _) in sweep::canonical(op)? {
                for &power in sizes {
                    // A product of two matrices of 2^20 elements is 2^31 operations; the host needs minutes for it.
                    let power = if op.contract.tiled {
                        power.min(16)
                    } else {
                        power
                    };
                    requests.push(contest::request(op, dtype, power)?);
                }
            }
        }
        Ok(requests)
    }

    /// A kernel that was named and that nobody has, or that does not take the types.
    fn missing(&self, entries: &[Entry]) -> Option<&str> {
        let is_there = |other: &&String| entries.iter().any(|entry| entry.rival.name == **other);
        let mut others = self.against.iter();
        others.find(|other| !is_there(other)).map(String::as_str)
    }
}

fn is_of(kernel: &str, pack: &str) -> bool {
    kernel.split_once('/').is_some_and(|(own, _)| own == pack)
}

/// Names of the ops that the pack has kernels for, as far as the filter wants them.
fn ops(runtime: &Runtime, id: &str, filter: Option<&Filter>) -> Result<Vec<String>, Problem> {
    let table = runtime.table();
    let packs = table.packs.iter().filter(|pack| pack.id == id);
    let kernels = packs.flat_map(|pack| &pack.kernels);
    let ops = kernels.map(|kernel| &kernel.op);
    let wanted = ops.filter(|op| filter.is_none_or(|filter| filter.admits(op)));
    let ops: BTreeSet<String> = wanted.cloned().collect();
    match (ops.is_empty(), filter) {
        (true, Some(filter)) => Err(Problem::Usage(format!(
            "the pack {id} has no kernel for an op named {filter}"
        ))),
        _ => Ok(ops.into_iter().collect()),
    }
}

fn shown(request: &Request<'_, Spec>) -> String {
    let spec = |spec: &Spec| format!("{}{:?}", spec.0, spec.1);
    let inputs: Vec<String> = request.inputs.iter().map(spec).collect();
    let outputs: Vec<String> = request.outputs.iter().map(spec).collect();
    format!(
        "{}({}) -> {}",
        request.op,
        inputs.join(", "),
        outputs.join(", ")
    )
}

/// Rates of a kernel that takes so many microseconds: gigabytes, and of a product tera-operations, each second.
fn rates(request: &Request<'_, Spec>, us: f64) -> (f64, Option<f64>) {
    let operations = asked::operations(request);
    let tera = operations.map(|operations| operations / us / 1e6);
    (asked::traffic(request) / us / 1e3, tera)
}

/// A line for each kernel: its time, a bar as long as the time, how it compares with the best, and its rates.
fn chart(
    request: &Request<'_, Spec>,
    entries: &[Entry],
    mine: impl Fn(&Entry) -> bool,
    text: &mut String,
) {
    let times = || entries.iter().filter_map(Entry::us);
    let (slowest, fastest) = (
        times().fold(0.0, f64::max),
        times().fold(f64::MAX, f64::min),
    );
    let width = entries
        .iter()
        .map(|e| e.rival.name.len())
        .max()
        .unwrap_or(0);
    for entry in entries {
        let mark = if mine(entry) { '*' } else { ' ' };
        let name = &entry.rival.name;
        let _ = match (&entry.times, entry.us()) {
            (_, Some(us)) => {
                let bar = "#".repeat(((us / slowest) * WIDTH).ceil().max(1.0) as usize);
                let (giga, tera) = rates(request, us);
                let tera = tera.map_or(String::new(), |tera| format!("  {tera:8.3} TFLOP/s"));
                writeln!(
                    text,
                    "{mark} {name:width$}  {us:12.2} us  {bar:30}  {:5.2}x{tera}  {giga:8.1} GB/s",
                    us / fastest
                )
            }
            (Err(why), _) => writeln!(text, "{mark} {name:width$}  {why}"),
            (Ok(_), None) => Ok(()),
        };
    }
}

fn row(request: &Request<'_, Spec>, entry: &Entry, mine: bool) -> serde_json::Value {
    let times = entry.times.as_ref();
    let rates = entry.us().map(|us| rates(request, us));
    serde_json::json!({
        "request": shown(request), "op": request.op, "kernel": entry.rival.name, "mine": mine,
        "median_us": times.ok().map(|t| t.median_us), "min_us": times.ok().map(|t| t.min_us),
        "p95_us": times.ok().map(|t| t.p95_us), "gbps": rates.map(|rates| rates.0),
        "tflops": rates.and_then(|rates| rates.1), "note": times.err(),
    })
}
