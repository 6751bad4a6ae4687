//! One step of a plan that was checked.

use crate::{
    queue::{Counts, StepArg},
    spirv::Module,
};
use std::sync::Arc;

/// A dispatch whose every number is in bounds.
#[derive(Debug, Clone)]
pub(crate) struct CheckedStep {
    /// Index into the plan's steps.
    pub(super) place: usize,
    /// Index into the plan's shaders; `None` for the host's, which bounds the counts of the step that follows.
    pub(super) shader: Option<usize>,
    pub(crate) module: Arc<Module>,
    pub(super) subgroup_size: u32,
    /// Specialization constants, by id.
    pub(crate) constants: Vec<(u32, u32)>,
    /// Workgroup counts, or the most that `counts` may be.
    pub(crate) groups: [u32; 3],
    pub(super) counts: Option<Counts>,
    pub(crate) args: Vec<StepArg>,
    pub(super) push: Vec<u8>,
    /// Byte of the push constants where a word grows with each repetition, and by how much.
    pub(super) counter: Option<(usize, u32)>,
    pub(super) barrier: bool,
    /// Whether it may set the word of faults.
    pub(super) reports: bool,
}
