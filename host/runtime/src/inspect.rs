//! What plans and shaders look like from outside, for those who vet packs. It runs nothing.

use crate::{Error, Kind, Result, Runtime, plan, reflect, spirv};
use nx_vulkan_abi::ShaderVariant;
use nx_vulkan_registry::{LoadedPack, Table, ask::Ask};
use std::sync::Arc;

/// A variant of a pack's shader, compiled.
#[derive(Debug)]
pub struct Shader {
    /// The SPIR-V.
    pub words: Arc<[u32]>,
    /// Binding numbers, in whatever descriptor set.
    pub bindings: Vec<u32>,
    /// Whether anything lies in another descriptor set than 0.
    pub other_sets: bool,
    /// Ids of specialization constants.
    pub spec_ids: Vec<u32>,
    /// Bytes of push constants that it may read.
    pub push_bytes: u32,
    /// Bindings of storage buffers that it may write.
    pub writable: Vec<u32>,
}

impl Runtime {
    /// Whether a kernel of the table, given by the numbers of its pack and its own, plans a request.
    ///
    /// # Errors
    /// What makes its answer invalid.
    pub fn validate(&self, table: &Table, kernel: (usize, usize), ask: &Ask<'_>) -> Result<bool> {
        self.planner(table).validate(kernel, ask)
    }

    /// Compiles a variant of a pack's shader, or takes its SPIR-V.
    ///
    /// # Errors
    /// [`Kind::Shader`] when it does not compile or is no compute module.
    pub fn shader(&self, pack: &LoadedPack, variant: &ShaderVariant) -> Result<Shader> {
        let words = match pack.spirv(&variant.file) {
            Some(words) => words.into(),
            None => {
                let defines = variant.defines.iter();
                let defines: Vec<(&str, &str)> = defines
                    .map(|d| (d.name.as_str(), d.value.as_str()))
                    .collect();
                let find = |name: &str| plan::glsl_of(pack, name);
                self.shaders().compile(&variant.file, &defines, &find)?
            }
        };
        let module = spirv::Module::parse(&words)
            .map_err(|why| Error::new(Kind::Shader, format!("SPIR-V: {why}")))?;
        let interface = reflect::interface(&words);
        Ok(Shader {
            words,
            bindings: module.bindings,
            other_sets: module.other_sets,
            spec_ids: module.spec_ids,
            push_bytes: interface.push_bytes,
            writable: interface.writable,
        })
    }
}
