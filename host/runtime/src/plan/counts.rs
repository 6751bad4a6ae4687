//! Numbers that are known when a plan runs: workgroup counts that a shader writes, words that count repetitions.

use super::{
    check::{COUNT_BYTES, Check},
    refusal::{NEWER, invalid},
    step::CheckedStep,
};
use crate::{
    Result,
    queue::{Counts, StepArg},
    spirv::Module,
};
use nx_vulkan_abi::Dispatch;
use std::sync::Arc;

impl Check<'_> {
    /// The argument that holds the workgroup counts which a step wants, if one does.
    pub(super) fn wanted(&self, dispatch: &Dispatch, args: &[StepArg]) -> Result<Option<StepArg>> {
        let marked = dispatch.args.iter().zip(args);
        let mut marked = marked.filter(|(arg, _)| arg.spare != 0);
        let Some((_, wanted)) = marked.next() else {
            return Ok(None);
        };
        if wanted.writes || wanted.len < 12 || marked.next().is_some() {
            return Err(invalid(
                "workgroup counts are three words of one argument, which is only read".to_owned(),
            ));
        }
        Ok(Some(*wanted))
    }

    /// Where the counts of a step lie once the host has bounded them.
    pub(super) fn counts(&self, place: usize) -> Counts {
        let tensors = self.sizes.inputs.len() + self.sizes.outputs.len();
        Counts {
            buffer: tensors + self.scratch.len() - 1,
            offset: COUNT_BYTES * place as u64,
        }
    }

    /// The host's own step that bounds the counts of the one that follows.
    pub(super) fn bounded_counts(
        &self,
        place: usize,
        most: [u32; 3],
        wanted: StepArg,
        module: Arc<Module>,
    ) -> CheckedStep {
        let counts = self.counts(place);
        let bounded = StepArg {
            buffer: counts.buffer,
            offset: counts.offset,
            len: 12,
            reads: false,
            writes: true,
        };
        CheckedStep {
            place,
            shader: None,
            module,
            subgroup_size: 0,
            constants: Vec::new(),
            groups: [1; 3],
            counts: None,
            args: vec![wanted, bounded],
            push: most.iter().flat_map(|most| most.to_ne_bytes()).collect(),
            counter: None,
            barrier: false,
            reports: false,
        }
    }

    /// Byte of the push constants where a word grows with each repetition, and by how much.
    pub(super) fn counter(&self, dispatch: &Dispatch) -> Result<Option<(usize, u32)>> {
        let Some((word, by)) = dispatch.counter() else {
            return match dispatch.spare[1] {
                0 => Ok(None),
                _ => Err(invalid(NEWER.to_owned())),
            };
        };
        let words = dispatch.push.len() / 4;
        match (word as usize) < words {
            true => Ok(Some((4 * word as usize, by))),
            false => Err(invalid(format!(
                "word {word} of its push constants grows, and it has {words}"
            ))),
        }
    }
}
