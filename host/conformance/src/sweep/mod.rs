//! The conformance sweep: runs every op of the table on a device and compares with the host kernels, bit for bit
//! across runs and within the tolerance of one table. It times nothing.

mod canary;
mod cases;
mod condition;
mod extent;
mod finish;
mod judge;
mod layout;
mod numbers;
mod oracle;
mod orthogonal;
mod own;
mod report;
mod requests;
mod running;
mod trial;

pub use extent::Extent;
pub use own::{Own, check};
pub use report::{Failure, Report, What};
pub(crate) use requests::{in_order, laid};
pub use running::running;

use cases::Case;
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Config, Runtime, Times};
use nx_vulkan_ops::{
    Error, Request, Result, Spec,
    infer::infer,
    op::{Op, Types},
    ops,
};
use parking_lot::Mutex;
use running::Running;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};
use trial::Sweep;

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of every choice.
    pub seed: u64,
    /// Only ops with this name, or whose name begins with it if it ends in `*`.
    pub filter: Option<String>,
    /// How many of the cases are run.
    pub extent: Extent,
    /// Threads, each with a runtime of its own.
    pub threads: usize,
    /// Only the kernels of the pack with this id: each of them runs every request of its op that it plans, whatever
    /// the registry would choose.
    pub pack: Option<String>,
    /// A file for the cases that run, which [`running`] reads after what ended the process.
    pub running: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            filter: None,
            extent: Extent::Full,
            threads: threads(),
            pack: None,
            running: None,
        }
    }
}

/// Units of work after which a thread opens the device anew: pipelines are kept as long as their runtime, and on a
/// CPU device thousands of them take gigabytes.
const TURN: usize = 16;

/// Sweeps. `progress` is called with the number of finished and of all units of work.
///
/// # Errors
/// Those of [`Runtime::open`], and bad input when no op has the name of the filter. A failing request is part of
/// the report.
pub fn run(
    config: &Config,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report> {
    let start = Instant::now();
    // Packs are swept, whoever may be faster.
    let config = &Config {
        times: Times::Ignored,
        ..config.clone()
    };
    let runtime = Runtime::open(config)?;
    let kernels = options.pack.as_ref().map(|id| kernels_of(&runtime, id));
    let kernels = kernels.transpose()?;
    let is_cpu = runtime.device().summary().kind == "cpu";
    let work = units(options, kernels.as_ref(), is_cpu)?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let summary = runtime.device().summary().clone();
    drop(runtime);
    let total = Mutex::new(Report {
        device: summary.name,
        driver: summary.driver,
        seed: options.seed,
        ..Report::default()
    });
    let running = Running::create(options.running.as_deref())?;
    let worker = |thread: usize| -> Result<()> {
        loop {
            let first = next.fetch_add(TURN, Ordering::Relaxed).min(work.len());
            let turn = &work[first..work.len().min(first + TURN)];
            if turn.is_empty() {
                return Ok(());
            }
            let runtime = Runtime::open(config)?;
            let mut sweep = Sweep::new(&runtime);
            for unit in turn {
                for case in unit {
                    let mut run = |kernel| {
                        running.begin(thread, case, kernel);
                        sweep.case(case, kernel);
                    };
                    match kernels.as_ref().and_then(|all| all.get(case.op.name)) {
                        Some(names) => names.iter().for_each(|name| run(Some(name))),
                        None => run(None),
                    }
                }
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, work.len());
            }
            sweep.report.broken.extend(runtime.failed());
            running.end(thread);
            total.lock().merge(sweep.report);
        }
    };
    let worker = &worker;
    std::thread::scope(|scope| {
        let spawn = |thread| scope.spawn(move || worker(thread));
        // One without work would open a device for nothing.
        let count = options.threads.clamp(1, work.len().div_ceil(TURN).max(1));
        let threads: Vec<_> = (0..count).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let mut report = total.into_inner();
    report
        .failures
        .sort_by(|a, b| (&a.op, a.seed).cmp(&(&b.op, b.seed)));
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// For every op and every type it takes, the request that stands for both.
///
/// # Errors
/// Never for the ops of [`ops`].
pub fn canonical(op: &'static Op) -> Result<Vec<(DType, Request<'static, Spec>)>> {
    let request = |types: Types| {
        let shape = vec![64, 64];
        let shapes = op.operand_shapes(&shape);
        let inputs: Vec<Spec> = types.inputs.iter().copied().zip(shapes).collect();
        let output = types.output.map(|dtype| (dtype, shape));
        let dtype = op.stands_for(&types).unwrap_or(DType::F32);
        Ok((dtype, infer(op, &inputs, output, &[])?))
    };
    op.alone().into_iter().map(request).collect()
}

/// Names of the kernels of one pack, by op.
type Kernels = BTreeMap<String, Vec<String>>;

fn kernels_of(runtime: &Runtime, id: &str) -> Result<Kernels> {
    let table = runtime.table();
    let pack = table.packs.iter().find(|pack| pack.id == id);
    let pack = pack.ok_or_else(|| Error::bad_input(format!("no pack {id} is loaded")))?;
    let mut kernels = Kernels::new();
    for kernel in &pack.kernels {
        let names = kernels.entry(kernel.op.clone()).or_default();
        names.push(format!("{id}/{}", kernel.id));
    }
    Ok(kernels)
}

/// The cases, in groups that share shaders.
fn units(options: &Options, kernels: Option<&Kernels>, is_cpu: bool) -> Result<Vec<Vec<Case>>> {
    let tiles = match options.extent {
        Extent::Quick => 0,
        Extent::Full if !is_cpu => usize::MAX,
        // A CPU device takes long for what is large.
        Extent::Full | Extent::Sample => 1,
    };
    let mine = |op: &&Op| kernels.is_none_or(|all| all.contains_key(op.name));
    let wanted = |op: &&Op| match &options.filter {
        Some(filter) => match filter.strip_suffix('*') {
            Some(start) => op.name.starts_with(start),
            None => op.name == filter,
        },
        None => true,
    };
    let mut units = BTreeMap::new();
    for op in ops().filter(wanted).filter(mine) {
        let mut cases = cases::cases(op, options.seed, options.extent)?;
        cases.extend(cases::tiles(op, options.seed, tiles)?);
        for case in cases {
            let dtype = case
                .inputs
                .first()
                .map_or(case.outputs[0].0, |input| input.dtype);
            units
                .entry((op.name, dtype))
                .or_insert_with(Vec::new)
                .push(case);
        }
    }
    match (units.is_empty(), &options.filter) {
        (true, Some(filter)) if kernels.is_some() => Err(Error::bad_input(format!(
            "the pack has no kernel for an op named {filter}"
        ))),
        (true, Some(filter)) => Err(Error::bad_input(format!("no op is named {filter}"))),
        _ => Ok(units.into_values().collect()),
    }
}

fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, |n| n.get())
        .min(8)
}
