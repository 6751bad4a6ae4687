//! Doors for the fuzz targets in `fuzz/` to code that reads what strangers wrote; no other caller may use them.

use crate::{
    Error, Kind, Result, driver_cache,
    plan::{self, Sizes},
    shader::{self, GlslFile, Shaders},
    spirv::{Module, Origin},
};
use nx_vulkan_abi::{DeviceInfo, Plan, ShaderVariant};
use std::sync::Arc;

pub use crate::{
    measured::fuzzing::measured,
    registry::fuzzing::{marker, pack_file, probe_note, quarantine, registry},
};

/// The words of a compiled shader out of a file of the shader cache; `None` for what counts as absent.
pub fn shader_cache(bytes: &[u8]) -> Option<Vec<u32>> {
    shader::cached(bytes)
}

/// The driver's data out of a file of the pipeline cache, for a device of that UUID, or why it is not used.
pub fn pipeline_cache<'a>(
    bytes: &'a [u8],
    uuid: &[u8; 16],
) -> std::result::Result<&'a [u8], String> {
    driver_cache::check(bytes, uuid)
}

/// A buffer argument of a plan that passed: buffer (inputs, outputs, scratch, params), offset, length, written.
pub type Range = (usize, u64, u64, bool);

/// A dispatch of a plan that passed.
#[derive(Debug)]
pub struct Step {
    /// Workgroup counts.
    pub groups: [u32; 3],
    /// Extent of one workgroup.
    pub workgroup: [u32; 3],
    /// The bytes it may touch.
    pub args: Vec<Range>,
}

/// SPIR-V of a GLSL text.
///
/// # Errors
/// [`Kind::Shader`] when it does not compile.
pub fn compile(text: &str) -> Result<Arc<[u32]>> {
    let find = |_: &str| Some(GlslFile { text, path: None });
    let module = Shaders::new(None).compile("fuzz.comp", &[], &find, Origin::Library)?;
    Ok(module.words().clone())
}

/// Checks a module as one of a pack's library and as a stranger's; `true` where both are admitted.
///
/// # Errors
/// When what is made of an admitted module is refused, or says something else of itself.
pub fn module(words: &[u32]) -> std::result::Result<bool, String> {
    let library = Module::admit(words.into(), Origin::Library);
    let stranger = Module::admit(words.into(), Origin::Stranger);
    let (library, stranger) = match (library, stranger) {
        (Ok(library), Ok(stranger)) => (library, stranger),
        (Err(_), Ok(_)) => {
            return Err("a library's module is refused, a stranger's is not".to_owned());
        }
        _ => return Ok(false),
    };
    let again = Module::admit(stranger.words().clone(), Origin::Stranger)?;
    let facts = |module: &Module| {
        let special: [&[(u32, u32)]; 3] = [&[], &[(0, 0), (1, 1)], &[(0, u32::MAX), (3, 7)]];
        let special = special.map(|special| module.specialize(special));
        (
            module.bindings.clone(),
            module.written.clone(),
            module.push_bytes,
            special,
        )
    };
    let known = facts(&library);
    match known == facts(&stranger) && known == facts(&again) {
        true => Ok(true),
        false => Err("bounding its indices changed what a module is".to_owned()),
    }
}

/// Checks a plan whose shaders are `sources`, found by the number that is their file name.
///
/// # Errors
/// What is wrong with the plan.
pub fn plan(
    plan: &Plan,
    inputs: &[u64],
    outputs: &[u64],
    limits: &DeviceInfo<'_>,
    sources: &[Arc<[u32]>],
) -> Result<Vec<Step>> {
    let module = |variant: &ShaderVariant| {
        let words = variant
            .file
            .parse()
            .ok()
            .and_then(|i: usize| sources.get(i));
        let missing = || Error::new(Kind::Shader, "there is no such file".to_owned());
        let words = words.cloned().ok_or_else(missing)?;
        let module = Module::admit(words, Origin::Library);
        module
            .map(Arc::new)
            .map_err(|why| Error::new(Kind::Shader, why))
    };
    let sizes = Sizes { inputs, outputs };
    let source = |_, variant: &ShaderVariant| module(variant).map(plan::Source::from);
    let checked = plan::check(plan, sizes, limits, limits.features, &source)?;
    let step = |step: plan::CheckedStep| {
        let module = module(&plan.shaders[step.shader])?;
        let special = module.specialize(&step.constants);
        let special = special.map_err(|why| Error::new(Kind::Shader, why))?;
        Ok(Step {
            groups: step.groups,
            workgroup: special.local_size.unwrap_or_default(),
            args: step
                .args
                .iter()
                .map(|arg| (arg.buffer, arg.offset, arg.len, arg.writes))
                .collect(),
        })
    };
    checked.steps.into_iter().map(step).collect()
}
