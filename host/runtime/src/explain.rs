//! Explanations: which kernel runs a request, and why the others do not.

use crate::{
    Result,
    route::{Considered, Picked, Planner},
};
use nx_vulkan_ops::{Request, Spec};
use nx_vulkan_registry::{RuleVerdict, request::Operand};
use std::fmt;

/// Who runs a request and why.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Explanation {
    /// The request as text.
    pub request: String,
    /// Name of the device.
    pub device: String,
    /// Number of the table of packs in force.
    pub generation: u64,
    /// The registry's rules for the op, up to the one that decides, with why the others do not.
    pub rules: Vec<RuleVerdict>,
    /// `pack/kernel`, `host`, or nothing when nobody runs it.
    pub picked: Option<String>,
    /// Every kernel of the op, in the order in which they are asked.
    pub candidates: Vec<Considered>,
}

pub(crate) fn explain(planner: &Planner<'_>, request: &Request<'_, Spec>) -> Result<Explanation> {
    let operands = request.inputs.iter();
    let operands = operands.map(|(dtype, shape)| Operand::contiguous(*dtype, shape));
    let asked = request.over(operands.collect::<Vec<_>>());
    let answer = planner.ask(&asked)?;
    Ok(Explanation {
        request: request.to_string(),
        device: planner.device.summary().name.clone(),
        generation: planner.table.generation,
        rules: planner.rules(&asked),
        picked: answer.picked.map(|picked| match picked {
            Picked::Device { name, .. } => name,
            Picked::Split(_) => "split".to_owned(),
            Picked::Host => "host".to_owned(),
        }),
        candidates: answer.considered,
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation {
            request,
            device,
            generation,
            ..
        } = self;
        writeln!(f, "{request}   on {device}   generation {generation}")?;
        for rule in &self.rules {
            match &rule.unfit {
                None => writeln!(f, "  by the rule at {}", rule.line)?,
                Some(why) => writeln!(f, "  not by the rule at {}: {why}", rule.line)?,
            }
        }
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
            // A skip by the registry begins with its line.
            let line = candidate.line.as_ref();
            let line = line.filter(|line| !candidate.reason.starts_with(*line));
            let line = line.map(|line| format!("   [{line}]")).unwrap_or_default();
            writeln!(
                f,
                "  {:width$}  {outcome:9}  {}{line}",
                candidate.kernel,
                candidate.reason.replace('\n', "\n      ")
            )?;
        }
        if self.picked.is_none() {
            writeln!(f, "  nobody runs it")?;
        }
        Ok(())
    }
}
