//! Requests that stand for several and that nobody takes as one.

use super::{Answer, Considered, NOT_ASKED, PICKED, Picked, Planner, SPLIT};
use crate::{Request, Result};
use nx_vulkan_ops::{
    Spec, epilogue,
    fusion::{Input, fuse},
    split::{product, split},
};
use nx_vulkan_registry::request::Operand;

impl Planner<'_> {
    /// Where no pack takes a product with its epilogue, a fused op, or a convolution that is a product of matrices, what it stands
    /// for runs one by one.
    pub(super) fn split_instead(
        &self,
        request: &Request<'_, Operand>,
        answer: &mut Answer,
    ) -> Result<()> {
        let is_last = answer.considered.iter().all(|c| c.outcome != NOT_ASKED);
        let specs = |inputs: &[Operand]| -> Vec<Spec> {
            let spec = |input: &Operand| (input.dtype, input.shape.clone());
            inputs.iter().map(spec).collect()
        };
        if !is_last || matches!(answer.picked, Some(Picked::Device { .. })) {
            return Ok(());
        }
        let request = request.over(specs(&request.inputs));
        let program = match product(&request)? {
            Some(product) => Some(product),
            // What follows a product is one op where it can be.
            None if epilogue::has(&request.attrs) => split(&request)?
                .map(|program| {
                    let inputs = request.inputs.iter().map(|spec| Input {
                        spec: spec.clone(),
                        element: None,
                    });
                    fuse(program, &inputs.collect::<Vec<_>>())
                })
                .transpose()?,
            None => split(&request)?,
        };
        let Some(program) = program else {
            return Ok(());
        };
        for considered in &mut answer.considered {
            if considered.outcome == PICKED {
                (considered.outcome, considered.reason) = (
                    NOT_ASKED,
                    "each of the ops is asked for by itself".to_owned(),
                );
            }
        }
        answer.considered.push(Considered {
            kernel: SPLIT.to_owned(),
            outcome: PICKED,
            reason: format!(
                "what it stands for one by one, {} ops",
                program.steps().len()
            ),
            line: None,
            measured_us: None,
        });
        answer.picked = Some(Picked::Split(program));
        Ok(())
    }
}
