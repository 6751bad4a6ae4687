//! What a pipeline is made of.

use crate::spirv::Module;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What makes a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelineSpec<'a> {
    pub(crate) module: &'a Arc<Module>,
    pub(crate) bindings: u32,
    pub(crate) push_bytes: u32,
    pub(crate) subgroup_size: u32,
    /// `(constant id, value)`, sorted by id.
    pub(crate) constants: &'a [(u32, u32)],
}

impl PipelineSpec<'_> {
    /// Everything that makes the pipeline.
    pub(crate) fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for value in [self.bindings, self.push_bytes, self.subgroup_size] {
            hash.update(value.to_le_bytes());
        }
        for (id, value) in self.constants {
            hash.update(id.to_le_bytes());
            hash.update(value.to_le_bytes());
        }
        hash.update((self.constants.len() as u64).to_le_bytes());
        hash.update([u8::from(self.module.origin().is_bounded())]);
        for word in self.module.words().iter() {
            hash.update(word.to_le_bytes());
        }
        hash.finalize().into()
    }
}
