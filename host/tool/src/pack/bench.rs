//! `nxv pack bench`: the kernels of one pack against every other kernel of the same ops.

use super::file::path;
use crate::{
    contest::{self, Entry},
    global::Global,
    output::{Answer, Outcome, Problem},
    spec::{self, Filter},
};
use nx_vulkan_conformance::{
    session::{Session, With},
    sweep,
};
use nx_vulkan_ops::{Op, Request, Spec};
use std::{fmt::Write, path::PathBuf};

/// Powers of two of the elements.
const SIZES: [u32; 3] = [10, 16, 20];
const QUICK: [u32; 1] = [12];
const BATCHES: usize = 9;
const QUICK_BATCHES: usize = 3;
/// Characters of the longest bar.
const WIDTH: f64 = 30.0;

/// Time the pack's kernels against every other kernel of the same op, the CPU's included.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long)]
    op: Option<Filter>,

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
        let summary = runtime.device().summary();
        let mut text = format!("{} ({})\n", summary.name, summary.driver);
        let mut rows = Vec::new();
        for op in ops {
            for (dtype, _) in sweep::canonical(op)? {
                for &power in sizes {
                    // A product of two matrices of 2^20 elements is 2^31 operations; the host needs minutes for it.
                    let power = if op.contract.tiled {
                        power.min(16)
                    } else {
                        power
                    };
                    let request = contest::request(op, dtype, power)?;
                    let entries = contest::run(&runtime, &request, batches, None)?;
                    let mine = |entry: &Entry| entry.rival.name.starts_with(&format!("{id}/"));
                    if !entries.iter().any(mine) {
                        continue;
                    }
                    let _ = writeln!(text, "\n{}", shown(&request));
                    chart(&entries, mine, &mut text);
                    rows.extend(
                        entries
                            .iter()
                            .map(|entry| row(&request, entry, mine(entry))),
                    );
                }
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

/// The ops of the pack that the host knows, as far as the filter wants them.
fn ops(
    runtime: &nx_vulkan_host::Runtime,
    id: &str,
    filter: Option<&Filter>,
) -> Result<Vec<&'static Op>, Problem> {
    let table = runtime.table();
    let pack = table.packs.iter().find(|pack| pack.id == id);
    let has = |name: &str| pack.is_some_and(|pack| pack.kernels.iter().any(|k| k.op == name));
    let mut ops = spec::ops(filter);
    ops.retain(|op| has(op.name));
    if ops.is_empty() {
        return Err(Problem::Usage(match filter {
            Some(filter) => format!("the pack {id} has no kernel for an op named {filter}"),
            None => format!("the pack {id} has no kernel for an op that the host knows"),
        }));
    }
    Ok(ops)
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

/// A line for each kernel: its time, a bar as long as the time, and how it compares with the best.
fn chart(entries: &[Entry], mine: impl Fn(&Entry) -> bool, text: &mut String) {
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
                writeln!(
                    text,
                    "{mark} {name:width$}  {us:12.2} us  {bar:30}  {:.2}x",
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
    serde_json::json!({
        "request": shown(request), "op": request.op, "kernel": entry.rival.name, "mine": mine,
        "median_us": times.ok().map(|t| t.median_us), "min_us": times.ok().map(|t| t.min_us),
        "p95_us": times.ok().map(|t| t.p95_us), "note": times.err(),
    })
}
