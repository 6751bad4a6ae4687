//! Kernels that compete for one request, each timed on the same operands. Who else might win is the registry's business.

use crate::{
    operands,
    timing::{self, Times},
};
use nx_vulkan_host::{DType, Kind, Result, Rival, Runtime, Tensor};
use nx_vulkan_ops::{Error, Op, Request, Spec, find, infer::infer};
use std::time::Instant;

/// Ops of a batch at most.
const MOST: u32 = 50;

/// One kernel's result.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) rival: Rival,
    /// The times, or why there are none.
    pub(crate) times: std::result::Result<Times, String>,
}

impl Entry {
    pub(crate) fn us(&self) -> Option<f64> {
        self.times.as_ref().ok().map(|times| times.median_us)
    }
}

/// The request that stands for `op` on `dtype` at a size: square matrices of about `2^power` elements.
///
/// # Errors
/// Never for the ops of the table.
pub(crate) fn request(op: &Op, dtype: DType, power: u32) -> Result<Request<'static, Spec>> {
    let shape = op.square(power);
    let types = op.of_type(dtype).inputs.into_iter();
    let inputs: Vec<Spec> = types.zip(op.operand_shapes(&shape)).collect();
    let output = (!op.contract.infers).then(|| {
        // A cast to the same type would be a copy.
        let to = match (op.arity(), dtype == DType::F32) {
            (0, _) => dtype,
            (_, true) => DType::S32,
            (_, false) => DType::F32,
        };
        (to, shape)
    });
    infer(op, &inputs, output, &[])
}

/// Every kernel that takes the request and that is `wanted`, timed `batches` times; fewer of them where `until` passes.
///
/// # Errors
/// When the device fails; what one kernel cannot do is part of its entry.
pub(crate) fn run(
    runtime: &Runtime,
    request: &Request<'_, Spec>,
    batches: usize,
    until: Option<Instant>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Entry>> {
    let (types, results) = request.types();
    fits(runtime, request)?;
    let bytes = operands::bytes(find(&request.op), &request.inputs, &request.attrs);
    let upload = |(spec, bytes): (&Spec, &Vec<u8>)| runtime.upload(spec.0, &spec.1, bytes);
    let operands = request.inputs.iter().zip(&bytes).map(upload);
    let operands = operands.collect::<Result<Vec<Tensor>>>()?;
    let inputs: Vec<&Tensor> = operands.iter().collect();
    let mut entries = Vec::new();
    for rival in runtime.rivals(&request.op, &types, &results) {
        if !wanted(&rival.name) {
            continue;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        let times = match time(runtime, &request.over(&inputs), &rival.name, batches) {
            Ok(times) => Ok(times),
            Err(error) if error.kind() == Kind::DeviceLost => return Err(error),
            Err(error) => Err(error.to_string()),
        };
        entries.push(Entry { rival, times });
    }
    Ok(entries)
}

/// Refuses what the device has no memory for before the host takes as much of its own.
fn fits(runtime: &Runtime, request: &Request<'_, Spec>) -> Result<()> {
    let stored = |spec: &Spec| {
        let extents = spec.1.iter();
        extents.fold(spec.0.size(), |bytes, extent| bytes.saturating_mul(*extent))
    };
    let tensors = request.inputs.iter().chain(request.outputs.iter());
    let needed = tensors.map(stored).fold(0, u64::saturating_add);
    let memory = runtime.device().summary().memory;
    if needed <= memory / 4 * 3 {
        return Ok(());
    }
    Err(Error::bad_input(format!(
        "operands and results of {} take {} MiB of the device's {} MiB",
        request.op,
        needed >> 20,
        memory >> 20
    )))
}

fn time(
    runtime: &Runtime,
    request: &Request<'_, &Tensor>,
    kernel: &str,
    batches: usize,
) -> Result<Times> {
    let rested = Instant::now();
    let planned = runtime.plan_with(kernel, request)?;
    let run = || runtime.run_planned(&planned, &request.inputs).map(drop);
    run()?;
    runtime.sync()?;
    timing::wake(runtime, rested, run)?;
    timing::time(batches, MOST, |count| {
        let start = Instant::now();
        for _ in 0..count {
            run()?;
        }
        runtime.sync()?;
        Ok(start.elapsed())
    })
}
