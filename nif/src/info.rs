//! Explanations: which kernel would run an op, and why the others would not.

use crate::{
    device::DeviceRef,
    reply::{self, Failure},
    resource::ResourceArc,
    terms::{AttrsTerm, List, ShapeTerm, TypeTerm},
};
use nx_vulkan_abi::DType;
use rustler::{Env, SerdeTerm, Term};

type Operands = List<(TypeTerm, ShapeTerm)>;

/// `{:ok, {text, map}}`. Runs nothing, but may compile.
#[rustler::nif(schedule = "DirtyCpu")]
fn explain<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    op: &str,
    inputs: Operands,
    outs: Operands,
    attrs: AttrsTerm,
) -> Term<'a> {
    let explanation = device
        .runtime
        .explain(op, &specs(inputs), &specs(outs), &attrs.0);
    reply::encode(
        env,
        explanation
            .map(|e| (e.to_string(), SerdeTerm(e)))
            .map_err(Failure::from),
    )
}

fn specs(operands: Operands) -> Vec<(DType, Vec<u64>)> {
    operands
        .0
        .into_iter()
        .map(|(dtype, shape)| (dtype.0, shape.0))
        .collect()
}
