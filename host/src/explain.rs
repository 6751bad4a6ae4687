//! Explanations: which kernel runs a request, and why the others do not.

use crate::{
    Attr, Result,
    route::{Ask, Considered, Operand, Picked, Planner, show_request},
};
use nx_vulkan_abi::DType;
use std::fmt;

/// Who runs a request and why.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Explanation {
    /// The request as text.
    pub request: String,
    /// Name of the device.
    pub device: String,
    /// `pack/kernel`, `host`, or nothing when nobody runs it.
    pub picked: Option<String>,
    /// Every kernel of the op, in the order in which they are asked.
    pub candidates: Vec<Considered>,
}

pub(crate) fn explain(
    planner: &Planner<'_>,
    op: &str,
    inputs: &[(DType, Vec<u64>)],
    outputs: &[(DType, Vec<u64>)],
    attrs: &[Attr],
) -> Result<Explanation> {
    let operands = inputs
        .iter()
        .map(|(dtype, shape)| Operand::contiguous(*dtype, shape))
        .collect();
    let answer = planner.ask(&Ask {
        op,
        inputs: operands,
        outputs,
        attrs,
    })?;
    Ok(Explanation {
        request: show_request(
            op,
            inputs.iter().map(|i| (i.0, i.1.as_slice())),
            outputs.iter().map(|o| (o.0, o.1.as_slice())),
        ),
        device: planner.device.summary().name.clone(),
        picked: answer.picked.map(|picked| match picked {
            Picked::Device { name, .. } => name,
            Picked::Host => "host".to_owned(),
        }),
        candidates: answer.considered,
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}   on {}", self.request, self.device)?;
        let width = self
            .candidates
            .iter()
            .map(|c| c.kernel.len())
            .max()
            .unwrap_or(0);
        for candidate in &self.candidates {
            let outcome = if candidate.outcome == "picked" {
                "PICKED"
            } else {
                candidate.outcome
            };
            writeln!(
                f,
                "  {:width$}  {outcome:9}  {}",
                candidate.kernel, candidate.reason
            )?;
        }
        if self.picked.is_none() {
            writeln!(f, "  nobody runs it")?;
        }
        Ok(())
    }
}
