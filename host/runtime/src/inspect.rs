//! What plans and shaders look like from outside, for those who vet packs. It runs nothing.

use crate::{
    Config, Error, Kind, Result, Runtime,
    builder::Builder,
    plan,
    shader::{Shaders, Target},
    spirv::Module,
};
use nx_vulkan_abi::{Dispatch, ShaderVariant};
use nx_vulkan_ops::Request;
use nx_vulkan_registry::{LoadedPack, Table, cache::Cache, request::Operand};
use std::sync::Arc;

/// A variant of a pack's shader, compiled.
#[derive(Debug)]
pub struct Shader {
    /// The SPIR-V.
    pub words: Arc<[u32]>,
    /// Binding numbers, in descriptor set 0.
    pub bindings: Vec<u32>,
    /// Ids of specialization constants.
    pub spec_ids: Vec<u32>,
    /// Bytes of push constants that it may read.
    pub push_bytes: u64,
    /// Bindings that some instruction may write, whatever the shader says of itself.
    pub written: Vec<u32>,
    module: Arc<Module>,
}

impl Shader {
    /// Bytes of shared memory with the specialization constants of a step.
    ///
    /// # Errors
    /// What makes the constants unfit.
    pub fn shared_bytes(&self, step: &Dispatch) -> std::result::Result<u64, String> {
        let constants = step
            .spec
            .iter()
            .map(|constant| (constant.id, constant.value));
        let constants: Vec<(u32, u32)> = constants.collect();
        Ok(self.module.specialize(&constants)?.shared_bytes)
    }
}

impl Runtime {
    /// Why a kernel of the table, given by the numbers of its pack and its own, declines a request, or nothing where it
    /// plans it.
    ///
    /// # Errors
    /// What makes its answer invalid.
    pub fn validate(
        &self,
        table: &Table,
        kernel: (usize, usize),
        request: &Request<'_, Operand>,
    ) -> Result<Option<String>> {
        self.planner(table).validate(kernel, request)
    }

    /// Compiles a variant of a pack's shader, which may include files of the packs beside it, or takes its SPIR-V.
    ///
    /// # Errors
    /// [`Kind::Shader`] when it does not compile, or is a module that no device is given.
    pub fn shader(
        &self,
        pack: &LoadedPack,
        beside: &[LoadedPack],
        variant: &ShaderVariant,
    ) -> Result<Shader> {
        shader(&self.plain_shaders(), pack, beside, variant)
    }
}

/// A compiler of shaders for Vulkan 1.3, without a device.
#[derive(Debug)]
pub struct Compiler(Shaders);

impl Compiler {
    /// One for the packs of `table`. What strangers wrote is compiled in the child that `config` names.
    pub fn new(config: &Config, table: &Table) -> Compiler {
        let is_locked = table.is_locked();
        let cache = Cache::open(config.cache(is_locked));
        let builder = Builder::new(config.builder(is_locked), &cache, config.build_timeout);
        let shaders = Shaders::new(None).with_target(Target::Newer);
        Compiler(shaders.with_builder(&Arc::new(builder)))
    }

    /// As [`Runtime::shader`].
    ///
    /// # Errors
    /// As there.
    pub fn shader(
        &self,
        pack: &LoadedPack,
        beside: &[LoadedPack],
        variant: &ShaderVariant,
    ) -> Result<Shader> {
        shader(&self.0, pack, beside, variant)
    }
}

fn shader(
    shaders: &Shaders,
    pack: &LoadedPack,
    beside: &[LoadedPack],
    variant: &ShaderVariant,
) -> Result<Shader> {
    let module = match pack.spirv(&variant.file) {
        Some(words) => Module::admit(words.into(), pack.origin())
            .map(Arc::new)
            .map_err(|why| Error::new(Kind::Shader, format!("SPIR-V: {why}")))?,
        None => {
            let defines = variant.defines.iter();
            let defines: Vec<(&str, &str)> = defines
                .map(|d| (d.name.as_str(), d.value.as_str()))
                .collect();
            let files = plan::Files::new(pack, beside);
            shaders.compile(&variant.file, &defines, &|name| files.find(name))?
        }
    };
    Ok(Shader {
        words: module.words().clone(),
        bindings: module.bindings.clone(),
        spec_ids: module.spec_ids.clone(),
        push_bytes: module.push_bytes,
        written: module.written.clone(),
        module,
    })
}
