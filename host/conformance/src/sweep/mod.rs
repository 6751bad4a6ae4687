//! The conformance sweep: runs every op of the table on a device and compares with the host kernels, bit for bit
//! across runs and within the tolerance of one table. It times nothing.

mod canary;
mod cases;
mod judge;
mod layout;
mod oracle;
mod report;
mod requests;

pub use report::{Failure, Report, What};
pub(crate) use requests::laid;

use canary::{Canaries, Found};
use cases::Case;
use nx_vulkan_abi::{DType, Features};
use nx_vulkan_host::{Config, Runtime, Tensor};
use nx_vulkan_ops::{
    Attr, AttrValue, Error, Kind, Request, Result, Spec,
    infer::infer,
    op::{Op, Types, ops},
    tolerance::{Tolerance, tolerance},
    values::{self, Rng},
};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of every choice.
    pub seed: u64,
    /// Only ops with this name, or whose name begins with it if it ends in `*`.
    pub filter: Option<String>,
    /// Fewer problems, and no mixed types.
    pub quick: bool,
    /// Threads, each with a runtime of its own.
    pub threads: usize,
    /// Only the kernels of the pack with this id: each of them runs every request of its op that it plans, whatever
    /// the registry would choose.
    pub pack: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            filter: None,
            quick: false,
            threads: threads(),
            pack: None,
        }
    }
}

/// Units of work after which a thread opens the device anew: pipelines are kept as long as their runtime, and on a
/// CPU device thousands of them take gigabytes.
const TURN: usize = 16;
/// Bytes with which result memory is filled before each run.
const PATTERNS: [u8; 3] = [0xa7, 0x3c, 0xff];

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
    let runtime = Runtime::open(config)?;
    let kernels = options.pack.as_ref().map(|id| kernels_of(&runtime, id));
    let kernels = kernels.transpose()?;
    let work = units(options, kernels.as_ref())?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let summary = runtime.device().summary().clone();
    drop(runtime);
    let total = Mutex::new(Report {
        device: summary.name,
        driver: summary.driver,
        seed: options.seed,
        ..Report::default()
    });
    let worker = || -> Result<()> {
        loop {
            let first = next.fetch_add(TURN, Ordering::Relaxed).min(work.len());
            let turn = &work[first..work.len().min(first + TURN)];
            if turn.is_empty() {
                return Ok(());
            }
            let runtime = Runtime::open(config)?;
            let mut sweep = Sweep {
                canaries: Canaries::new(&runtime),
                runtime: &runtime,
                report: Report::default(),
            };
            for unit in turn {
                for case in unit {
                    match kernels.as_ref().and_then(|all| all.get(case.op.name)) {
                        Some(names) => names.iter().for_each(|name| sweep.case(case, Some(name))),
                        None => sweep.case(case, None),
                    }
                }
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, work.len());
            }
            total
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .merge(sweep.report);
        }
    };
    std::thread::scope(|scope| {
        let spawn = |_| scope.spawn(worker);
        let threads: Vec<_> = (0..options.threads.max(1)).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let mut report = total.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        let dtype = types
            .inputs
            .last()
            .copied()
            .or(types.output)
            .unwrap_or(DType::F32);
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
fn units(options: &Options, kernels: Option<&Kernels>) -> Result<Vec<Vec<Case>>> {
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
        for case in cases::cases(op, options.seed, options.quick)? {
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

struct Sweep<'a> {
    canaries: Canaries<'a>,
    runtime: &'a Runtime,
    report: Report,
}

impl Sweep<'_> {
    /// Runs a case, with one kernel or with the one that the registry chooses.
    fn case(&mut self, case: &Case, kernel: Option<&str>) {
        self.report.cases += 1;
        let mut served_by = kernel.unwrap_or_default().to_owned();
        let what = match self.try_case(case, kernel, &mut served_by) {
            Ok(what) => what,
            Err(error) => Some(What::Error(error.to_string())),
        };
        if let Some(what) = what {
            self.report.add(failure(case, served_by, what));
        }
    }

    fn try_case(
        &mut self,
        case: &Case,
        kernel: Option<&str>,
        served_by: &mut String,
    ) -> Result<Option<What>> {
        let mut rng = Rng(case.seed);
        let bases: Vec<Vec<u8>> = case
            .inputs
            .iter()
            .enumerate()
            .map(|(i, input)| {
                values::elements(
                    case.op.domains[i],
                    input.dtype,
                    case.values,
                    input.stored(),
                    &mut rng,
                )
            })
            .collect();
        let uploaded = case.inputs.iter().zip(&bases);
        let uploaded =
            uploaded.map(|(input, base)| self.runtime.upload(input.dtype, &input.base, base));
        let uploaded = uploaded.collect::<Result<Vec<Tensor>>>()?;
        let views = case
            .inputs
            .iter()
            .zip(&uploaded)
            .map(|(input, base)| input.of(base));
        let views = views.collect::<Result<Vec<Tensor>>>()?;
        let operands: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        let inputs: Vec<&Tensor> = views.iter().collect();
        let request = Request::new(case.op.name, &inputs, &case.outputs, &case.attrs);
        let plan = |kernel| self.runtime.plan_with(kernel, &request);
        let forced = match kernel.map(plan).transpose() {
            Err(error) if error.kind() == Kind::Unsupported => {
                self.report.decline(case, &operands);
                return Ok(None);
            }
            forced => forced?,
        };
        let tolerance = tolerance(case.op, &operands, case.outputs[0].0);
        let answers = oracle::answers(case, &bases, &views, &tolerance)?;

        let mut first: Option<Vec<Vec<u8>>> = None;
        for (run, pattern) in (1..).zip(PATTERNS) {
            let (dtype, shape) = &case.outputs[0];
            let size = shape.iter().product::<u64>() * dtype.size();
            self.canaries.prepare(size, pattern, &uploaded)?;
            let ran = match &forced {
                Some(forced) => self.runtime.run_planned(forced, &inputs),
                None => self.runtime.run_reported(&request),
            }?;
            let got = ran.outputs.iter();
            let got = got.map(|result| self.runtime.download(result, None));
            let got = got.collect::<Result<Vec<Vec<u8>>>>()?;
            let Some(first) = &first else {
                *served_by = ran.served_by.to_string();
                self.serve(case, &operands, served_by);
                if let Some(wrong) = self.judge(case, &answers, &got, &tolerance) {
                    return Ok(Some(wrong));
                }
                first = Some(got);
                continue;
            };
            for (first, got) in first.iter().zip(&got) {
                if let Some(byte) = first.iter().zip(got).position(|(a, b)| a != b) {
                    return Ok(Some(What::Varies {
                        byte: byte as u64,
                        run,
                    }));
                }
            }
            let mut untouched = false;
            for result in &ran.outputs {
                match self.canaries.look(result, pattern)? {
                    Found::Overwritten(what) => return Ok(Some(What::StrayWrite(what))),
                    Found::Untouched => untouched = true,
                    Found::Unguarded => {}
                }
            }
            self.report.guarded += u64::from(untouched && run == 3);
        }
        for (index, (tensor, base)) in uploaded.iter().zip(&bases).enumerate() {
            if self.runtime.download(tensor, None)? != *base {
                return Ok(Some(What::InputChanged(index)));
            }
        }
        Ok(None)
    }

    /// The first element of any result that is beyond the tolerance.
    fn judge(
        &mut self,
        case: &Case,
        answers: &[oracle::Answer],
        got: &[Vec<u8>],
        tolerance: &Tolerance,
    ) -> Option<What> {
        for ((answer, got), output) in answers.iter().zip(got).zip(&case.outputs) {
            let verdict = judge::judge(&answer.expected(), got, tolerance);
            self.report.flushed += verdict.flushed;
            if let Some(wrong) = verdict.wrong {
                let judge::Wrong {
                    index,
                    got,
                    expected,
                    ulp,
                } = wrong;
                return Some(What::Element {
                    index,
                    got,
                    expected,
                    ulp,
                });
            }
            self.report.measure(case.op.name, output.0, verdict.ulp);
        }
        None
    }

    fn serve(&mut self, case: &Case, operands: &[DType], served_by: &str) {
        if served_by != "host" {
            return;
        }
        let key = signature(case, operands);
        let needed = operands
            .iter()
            .copied()
            .chain(case.outputs.iter().map(|output| output.0))
            .map(Features::for_dtype);
        let needed = needed.fold(Features::NONE, Features::with);
        let list = match self.runtime.device_info().features.has(needed) {
            true => &mut self.report.not_served,
            false => &mut self.report.lacking,
        };
        *list.entry(key).or_default() += 1;
    }
}

/// `add(f32, s32) -> f32`
fn signature(case: &Case, operands: &[DType]) -> String {
    let types: Vec<&str> = operands.iter().map(|dtype| dtype.name()).collect();
    format!(
        "{}({}) -> {}",
        case.op.name,
        types.join(", "),
        case.outputs[0].0
    )
}

fn failure(case: &Case, served_by: String, what: What) -> Failure {
    let attr = |attr: &Attr| match &attr.value {
        AttrValue::Ints(ints) => format!("{}={ints:?}", attr.name),
        AttrValue::Floats(floats) => format!("{}={floats:?}", attr.name),
        AttrValue::Text(text) => format!("{}={text}", attr.name),
    };
    let outputs: Vec<String> = case
        .outputs
        .iter()
        .map(|(dtype, shape)| format!("{dtype}{shape:?}"))
        .collect();
    Failure {
        op: case.op.name.to_owned(),
        inputs: case.inputs.iter().map(ToString::to_string).collect(),
        output: outputs.join(", "),
        attrs: case.attrs.iter().map(attr).collect(),
        layout: case.layout,
        values: case.values,
        served_by,
        seed: case.seed,
        what,
    }
}
