//! Explanations: which kernel would run an op, and why the others would not.

use crate::{
    device::DeviceRef,
    maps::ExplanationMap,
    reply::{self, Failure},
    resource::ResourceArc,
    terms::{AttrsTerm, List, SpecTerm},
};
use nx_vulkan_host::{Request, Spec};
use rustler::{Env, Term};

type Operands = List<SpecTerm>;

/// `{:ok, {text, map}}`. Runs nothing, but may compile.
#[rustler::nif(schedule = "DirtyIo")]
fn explain<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    op: &str,
    inputs: Operands,
    outs: Operands,
    attrs: AttrsTerm,
) -> Term<'a> {
    let request = Request::new(op, specs(inputs), specs(outs), attrs.0);
    let explanation = device.runtime.explain(&request);
    reply::encode(
        env,
        explanation
            .map(|e| (e.to_string(), ExplanationMap::from(e)))
            .map_err(Failure::from),
    )
}

/// Whether some kernel, of a pack or of the host, is for that op.
#[rustler::nif]
fn has_op(device: ResourceArc<DeviceRef>, op: &str) -> bool {
    device.runtime.has_op(op)
}

fn specs(operands: Operands) -> Vec<Spec> {
    operands.0.into_iter().map(|spec| spec.0).collect()
}
