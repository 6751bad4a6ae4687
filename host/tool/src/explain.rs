//! `nxv explain`.

use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
    spec,
};
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::infer::infer;

/// Explains one request.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let usage = Problem::Usage;
    let (name, operands) = arguments.operands.split_first().ok_or_else(|| {
        usage("explain needs an op, then its operands: explain dot f32[2,2] f32[2,2]".to_owned())
    })?;
    let op = spec::op(name).map_err(usage)?;
    let inputs = operands
        .iter()
        .map(|text| spec::spec(text))
        .collect::<Result<Vec<_>, _>>()
        .map_err(usage)?;
    let attrs = arguments
        .values("--attr")
        .map(spec::attr)
        .collect::<Result<Vec<_>, _>>()
        .map_err(usage)?;
    let output = arguments
        .value("--out")
        .map(spec::spec)
        .transpose()
        .map_err(usage)?;
    let request = infer(op, &inputs, output, &attrs).map_err(|e| usage(e.to_string()))?;
    let runtime = Runtime::open(&arguments.config)?;
    let explanation = runtime.explain(&request)?;
    Ok(Outcome {
        text: explanation.to_string(),
        json: json(&explanation),
        holds: explanation.picked.is_some(),
    })
}
