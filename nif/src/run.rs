//! The op call: every op of the backend comes through here.

use crate::{
    device::DeviceRef,
    reply::{self, Failure},
    resource::ResourceArc,
    tensor::TensorRef,
    terms::{AttrsTerm, List, ShapeTerm, TypeTerm},
};
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Ran, Runtime, Tensor};
use rustler::{Decoder, Encoder, Env, Error, NifResult, Term};
use std::sync::Arc;

mod atoms {
    rustler::atoms! { ok, host, dirty }
}

/// Where an op runs and on what: a list of references, or for an op without operands the device.
struct Operands {
    runtime: Arc<Runtime>,
    tensors: Vec<ResourceArc<TensorRef>>,
}

impl<'a> Decoder<'a> for Operands {
    fn decode(term: Term<'a>) -> NifResult<Operands> {
        if let Ok(device) = term.decode::<ResourceArc<DeviceRef>>() {
            return Ok(Operands {
                runtime: device.runtime.clone(),
                tensors: Vec::new(),
            });
        }
        let List(tensors): List<ResourceArc<TensorRef>> = term.decode()?;
        let runtime = tensors.first().ok_or(Error::BadArg)?.runtime.clone();
        Ok(Operands { runtime, tensors })
    }
}

impl Operands {
    fn handles(&self, op: &str) -> Result<Vec<Tensor>, Failure> {
        self.tensors
            .iter()
            .map(|tensor| {
                if Arc::ptr_eq(&tensor.runtime, &self.runtime) {
                    tensor.tensor()
                } else {
                    Err(Failure::bad_input(format!(
                        "expected the operands of {op} on one device, got: {} and {}",
                        self.runtime.device().summary().name,
                        tensor.runtime.device().summary().name,
                    )))
                }
            })
            .collect()
    }

    fn reply<'a>(&self, env: Env<'a>, ran: Ran) -> Term<'a> {
        let refs: Vec<_> = ran
            .outputs
            .into_iter()
            .map(|tensor| TensorRef::new(&self.runtime, tensor))
            .collect();
        let tag = if &*ran.served_by == "host" {
            atoms::host()
        } else {
            atoms::ok()
        };
        (tag, refs).encode(env)
    }
}

/// `{:ok, refs}`, or `:dirty` when the op has to go through [`run_dirty`] because it compiles a shader,
/// computes on the CPU, or has to wait for memory or for a device that is far behind.
#[rustler::nif]
fn run<'a>(
    env: Env<'a>,
    op: &str,
    operands: Operands,
    outs: List<(TypeTerm, ShapeTerm)>,
    attrs: AttrsTerm,
) -> Term<'a> {
    let cached = || -> Result<Option<Ran>, Failure> {
        let handles = operands.handles(op)?;
        let inputs: Vec<&Tensor> = handles.iter().collect();
        Ok(operands
            .runtime
            .try_run_cached(op, &inputs, &outputs(outs), &attrs.0)?)
    };
    match cached() {
        Ok(Some(ran)) => operands.reply(env, ran),
        Ok(None) => atoms::dirty().encode(env),
        Err(failure) => reply::encode_error(env, &failure),
    }
}

/// `{:ok, refs}`, or `{:host, refs}` when the CPU computed them. May take long.
#[rustler::nif(schedule = "DirtyCpu")]
fn run_dirty<'a>(
    env: Env<'a>,
    op: &str,
    operands: Operands,
    outs: List<(TypeTerm, ShapeTerm)>,
    attrs: AttrsTerm,
) -> Term<'a> {
    let run = || -> Result<Ran, Failure> {
        let handles = operands.handles(op)?;
        let inputs: Vec<&Tensor> = handles.iter().collect();
        Ok(operands
            .runtime
            .run_reported(op, &inputs, &outputs(outs), &attrs.0)?)
    };
    match run() {
        Ok(ran) => operands.reply(env, ran),
        Err(failure) => reply::encode_error(env, &failure),
    }
}

fn outputs(outs: List<(TypeTerm, ShapeTerm)>) -> Vec<(DType, Vec<u64>)> {
    outs.0
        .into_iter()
        .map(|(dtype, shape)| (dtype.0, shape.0))
        .collect()
}
