//! `nxv bench`.

use crate::{
    asked::Asked,
    global::Global,
    operands,
    output::{Answer, Outcome, Problem, json},
    progress,
    timing::{self, Times},
    workloads::{self, Mode, Workload},
};
use nx_vulkan_host::{Error, Kind, MemoryBudget, Program, Result, Routine, Runtime, Step, Tensor};
use nx_vulkan_ops::{Request, Spec, infer::infer, kernels};
use std::{
    cell::Cell,
    collections::HashMap,
    fmt::Write,
    time::{Duration, Instant},
};

const BATCHES: usize = 25;
const QUICK_BATCHES: usize = 5;
/// Ops of a batch at most: as many as keep the device busy while it is filled.
const MOST: u32 = 50;
const MOST_SMALL: u32 = 1000;
/// Runs of a program that is replayed.
const AT_ONCE: usize = 32;
/// Bytes that no cache holds, and the most sets of operands that take turns.
const CACHED: u64 = 512 << 20;
const MOST_SETS: u64 = 63;
/// What would take longer than this by the times of smaller sizes is skipped.
const TOO_LONG: Duration = Duration::from_secs(5);

/// Measure ops on data that lies on the device.
///
/// Work is timed in batches with one wait at the end of each; the numbers are of one op: median, minimum and 95th
/// percentile over the batches. What does not fit into memory is skipped with a note, what nobody runs as well.
/// bench/compare.py puts two results side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: {device, driver, results: [{name, median_us, min_us, p95_us, gbps, tflops, served_by, host_us, note}]}.")]
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
    Ok(Workload::of(&asked.text, &request))
}

struct Runner<'a> {
    runtime: &'a Runtime,
    batches: usize,
    on_host: bool,
    replayed: bool,
    cold: bool,
    /// Seconds per unit of work by family, on the device and on the host, from the last size.
    pace: HashMap<(String, bool), f64>,
}

/// A workload with its data in place.
struct Ready<'a> {
    workload: &'a Workload,
    bytes: Vec<Vec<u8>>,
    inputs: Vec<Tensor>,
    /// More of them, which take turns with these.
    others: Vec<Vec<Tensor>>,
    request: Request<'static, Spec>,
}

impl Runner<'_> {
    fn row(&mut self, workload: &Workload) -> std::result::Result<Row, Problem> {
        let empty = |note: Option<String>| Row {
            name: workload.name.clone(),
            median_us: None,
            min_us: None,
            p95_us: None,
            gbps: None,
            tflops: None,
            served_by: None,
            host_us: None,
            note,
        };
        if let Some(note) = self.obstacle(workload) {
            return Ok(empty(Some(note)));
        }
        let rested = Instant::now();
        let measured = self
            .ready(workload)
            .and_then(|ready| self.measure(&ready, rested));
        self.runtime.trim()?;
        let (times, served_by, host_us) = match measured {
            Ok(measured) => measured,
            Err(error)
                if matches!(
                    error.kind(),
                    Kind::OutOfMemory | Kind::Unsupported | Kind::FallbackForbidden
                ) =>
            {
                return Ok(empty(Some(error.to_string())));
            }
            Err(error) => return Err(error.into()),
        };
        let rate = |amount: Option<u64>, unit: f64| {
            amount.map(|amount| amount as f64 / times.median_us / unit)
        };
        Ok(Row {
            median_us: Some(times.median_us),
            min_us: Some(times.min_us),
            p95_us: Some(times.p95_us),
            gbps: rate(workload.bytes, 1e3),
            tflops: rate(workload.flops, 1e6),
            served_by: Some(served_by),
            host_us,
            ..empty(None)
        })
    }

    /// Why the workload cannot be run here.
    fn obstacle(&self, workload: &Workload) -> Option<String> {
        let needed = 2 * workload.stored();
        let memory = self.runtime.device().summary().memory;
        if needed > memory / 4 * 3 {
            return Some(format!(
                "it takes about {} MiB of the device's {} MiB",
                needed >> 20,
                memory >> 20
            ));
        }
        self.too_long(workload, false)
    }

    fn too_long(&self, workload: &Workload, on_host: bool) -> Option<String> {
        let pace = self.pace.get(&(workload.family.clone(), on_host))?;
        let seconds = pace * workload.work() as f64;
        (seconds > TOO_LONG.as_secs_f64())
            .then(|| format!("one run would take about {seconds:.0} s"))
    }

    fn ready<'w>(&self, workload: &'w Workload) -> Result<Ready<'w>> {
        let op = nx_vulkan_ops::ops()
            .find(|op| op.name == workload.op)
            .expect("a benchmark names an op");
        let bytes = operands::bytes(op, &workload.inputs, &workload.attrs);
        let upload = |(spec, bytes): (&Spec, &Vec<u8>)| self.runtime.upload(spec.0, &spec.1, bytes);
        let uploaded = || {
            let given = workload.inputs.iter().zip(&bytes);
            let mut inputs = given.map(upload).collect::<Result<Vec<_>>>()?;
            if workload.transposed {
                inputs[0] = inputs[0].transpose(&[1, 0])?;
            }
            Ok(inputs)
        };
        let inputs: Vec<Tensor> = uploaded()?;
        let read: u64 = inputs.iter().map(Tensor::byte_len).sum();
        let sets = match self.cold {
            true => (CACHED / read.max(1)).min(MOST_SETS),
            false => 0,
        };
        let others = (0..sets).map(|_| uploaded());
        let others = others.collect::<Result<Vec<Vec<Tensor>>>>()?;
        let specs: Vec<Spec> = inputs
            .iter()
            .map(|tensor| (tensor.dtype(), tensor.shape().to_vec()))
            .collect();
        let given = workload.result.map(|dtype| (dtype, specs[0].1.clone()));
        let given = workload.out.clone().or(given);
        let request = infer(op, &specs, given, &workload.attrs)?;
        let bytes = if self.on_host { bytes } else { Vec::new() };
        Ok(Ready {
            workload,
            bytes,
            inputs,
            others,
            request,
        })
    }

    fn measure(
        &mut self,
        ready: &Ready<'_>,
        rested: Instant,
    ) -> Result<(Times, String, Option<f64>)> {
        let (runtime, workload) = (self.runtime, ready.workload);
        let inputs: Vec<&Tensor> = ready.inputs.iter().collect();
        let others = ready.others.iter().map(|inputs| inputs.iter().collect());
        let sets: Vec<Vec<&Tensor>> = std::iter::once(inputs).chain(others).collect();
        let requests: Vec<_> = sets
            .iter()
            .map(|set| ready.request.over(&set[..]))
            .collect();
        let turn = Cell::new(0);
        let run = || {
            turn.set((turn.get() + 1) % requests.len());
            runtime.run_reported(&requests[turn.get()])
        };
        let served_by = run()?.served_by.to_string();
        runtime.sync()?;
        if self.replayed {
            return Ok((self.replay(ready, &sets, rested)?, served_by, None));
        }
        if served_by != "host" {
            timing::wake(runtime, rested, || run().map(drop))?;
        }
        let most = if workload.bytes.or(workload.flops).is_some() {
            MOST
        } else {
            MOST_SMALL
        };
        let times = timing::time(self.batches, most, |count| {
            let (start, cpu_start) = (Instant::now(), timing::cpu_time());
            for _ in 0..count {
                let ran = run()?;
                match workload.mode {
                    Mode::Batch | Mode::Record => {}
                    Mode::Waited => runtime.sync()?,
                    Mode::Downloaded => drop(runtime.download(&ran.outputs[0], None)?),
                }
            }
            let recorded = timing::cpu_time().saturating_sub(cpu_start);
            runtime.sync()?;
            Ok(if workload.mode == Mode::Record {
                recorded
            } else {
                start.elapsed()
            })
        })?;
        self.keep_pace(workload, false, times.median_us);
        let host_us = if self.on_host {
            self.host(ready)?
        } else {
            None
        };
        Ok((times, served_by, host_us))
    }

    /// Times of a program of many runs, each of which gives its results' memory to the next.
    fn replay(&self, ready: &Ready<'_>, sets: &[Vec<&Tensor>], rested: Instant) -> Result<Times> {
        let each = ready.inputs.len();
        let count = AT_ONCE.next_multiple_of(sets.len());
        let steps = (0..count).map(|step| {
            let first = step % sets.len() * each;
            let operands: Vec<u32> = (first as u32..).take(each).collect();
            Step::from(ready.request.over(operands).into_owned())
        });
        // Where there is no operand to give back the first result is one.
        let program = Program::new(each * sets.len(), steps, [0])?.into_owned();
        let routine = Routine::from(program).in_turn();
        let all: Vec<&Tensor> = sets.iter().flatten().copied().collect();
        let run = || self.runtime.run_routine(&routine, &all).map(drop);
        timing::wake(self.runtime, rested, run)?;
        let before = self.runtime.stats().replays.runs;
        let times = timing::time(self.batches, MOST, |runs| {
            let start = Instant::now();
            (0..runs).try_for_each(|_| run())?;
            self.runtime.sync()?;
            Ok(start.elapsed() / count as u32)
        })?;
        match self.runtime.stats().replays.runs > before {
            true => Ok(times),
            false => Err(Error::new(Kind::Unsupported, "it cannot be recorded")),
        }
    }

    /// The time of the CPU kernel; nothing where it would take too long.
    fn host(&mut self, ready: &Ready<'_>) -> Result<Option<f64>> {
        if self.too_long(ready.workload, true).is_some() {
            return Ok(None);
        }
        let view = |(tensor, bytes): (&'_ Tensor, &'_ Vec<u8>)| (tensor.clone(), bytes.clone());
        let operands: Vec<(Tensor, Vec<u8>)> =
            ready.inputs.iter().zip(&ready.bytes).map(view).collect();
        let views: Vec<kernels::View<'_>> = operands
            .iter()
            .map(|(tensor, bytes)| kernels::View {
                dtype: tensor.dtype(),
                shape: tensor.shape(),
                strides: tensor.strides(),
                offset: tensor.offset(),
                bytes,
            })
            .collect();
        let (dtype, shape) = &ready.request.outputs[0];
        let mut bytes = vec![0; (dtype.size() * shape.iter().product::<u64>()) as usize];
        let times = timing::time(QUICK_BATCHES, MOST, |count| {
            let start = Instant::now();
            for _ in 0..count {
                let out = kernels::Out {
                    dtype: *dtype,
                    shape,
                    bytes: &mut bytes,
                };
                kernels::run(ready.workload.op, &views, &mut [out], &ready.request.attrs)?;
            }
            Ok(start.elapsed())
        })?;
        self.keep_pace(ready.workload, true, times.median_us);
        Ok(Some(times.median_us))
    }

    fn keep_pace(&mut self, workload: &Workload, on_host: bool, us: f64) {
        let pace = us * 1e-6 / workload.work() as f64;
        self.pace.insert((workload.family.clone(), on_host), pace);
    }
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
}
