//! Timing one workload after the other.

use super::{
    QUICK_BATCHES, Row,
    profiled::{self, StepTime},
};
use crate::{
    operands,
    output::Problem,
    timing::{self, Times},
    workloads::{Mode, Workload},
};
use nx_vulkan_conformance::vet::Named;
use nx_vulkan_host::{Error, Kind, Program, Result, Routine, Runtime, Step, Tensor};
use nx_vulkan_ops::{Request, Spec, find, kernels};
use std::{
    cell::Cell,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

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

/// What times workloads.
pub(super) struct Runner<'a> {
    pub(super) runtime: &'a Arc<Runtime>,
    pub(super) batches: usize,
    pub(super) on_host: bool,
    pub(super) replayed: bool,
    pub(super) cold: bool,
    pub(super) profile: bool,
    /// Seconds per unit of work by family, on the device and on the host, from the last size.
    pub(super) pace: HashMap<(String, bool), f64>,
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

/// What came of a workload.
struct Measured {
    times: Times,
    served_by: String,
    host_us: Option<f64>,
    steps: Option<Vec<StepTime>>,
}

impl Runner<'_> {
    pub(super) fn row(&mut self, workload: &Workload) -> std::result::Result<Row, Problem> {
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
            steps: None,
        };
        if let Some(note) = self.obstacle(workload) {
            return Ok(empty(Some(note)));
        }
        let rested = Instant::now();
        let measured = self
            .ready(workload)
            .and_then(|ready| self.measure(&ready, rested));
        self.runtime.trim()?;
        let Measured {
            times,
            served_by,
            host_us,
            steps,
        } = match measured {
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
            steps,
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
        let bytes = operands::bytes(find(&workload.op), &workload.inputs, &workload.attrs);
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
        let named = Named {
            operands: specs,
            attrs: workload.attrs.clone(),
            results: match given {
                Some(given) => vec![given],
                None => workload.results.clone(),
            },
            ..Named::default()
        };
        let request = named.request(&workload.op)?;
        let bytes = if self.on_host { bytes } else { Vec::new() };
        Ok(Ready {
            workload,
            bytes,
            inputs,
            others,
            request,
        })
    }

    fn measure(&mut self, ready: &Ready<'_>, rested: Instant) -> Result<Measured> {
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
            let (times, steps) = self.replay(ready, &sets, rested)?;
            return Ok(Measured {
                times,
                served_by,
                host_us: None,
                steps,
            });
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
        let steps = self.steps(|| run().map(drop))?;
        self.keep_pace(workload, false, times.median_us);
        let host_us = if self.on_host {
            self.host(ready)?
        } else {
            None
        };
        Ok(Measured {
            times,
            served_by,
            host_us,
            steps,
        })
    }

    fn steps(&self, run: impl Fn() -> Result<()>) -> Result<Option<Vec<StepTime>>> {
        let steps = || profiled::steps(self.runtime, run);
        self.profile.then(steps).transpose()
    }

    /// Times of a program of many runs, each of which gives its results' memory to the next.
    fn replay(
        &self,
        ready: &Ready<'_>,
        sets: &[Vec<&Tensor>],
        rested: Instant,
    ) -> Result<(Times, Option<Vec<StepTime>>)> {
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
            true => Ok((times, self.steps(run)?)),
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
                kernels::run_fast(&ready.workload.op, &views, &mut [out], &ready.request.attrs)?;
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
