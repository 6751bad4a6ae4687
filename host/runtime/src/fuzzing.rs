//! Doors for the fuzz targets in `fuzz/` to code that reads what strangers wrote; no other caller may use them.

use crate::{
    Error, Kind, Result,
    plan::{self, Sizes},
    shader::{GlslFile, Shaders},
    spirv,
};
use nx_vulkan_abi::{DeviceInfo, Plan, ShaderVariant};
use std::sync::Arc;

pub use nx_vulkan_registry::fuzzing::{pack_file, registry};

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
    Shaders::new(None).compile("fuzz.comp", &[], &|_| Some(GlslFile { text, path: None }))
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
    let words = |variant: &ShaderVariant| {
        let words = variant
            .file
            .parse()
            .ok()
            .and_then(|i: usize| sources.get(i));
        let missing = || Error::new(Kind::Shader, "there is no such file".to_owned());
        words.cloned().ok_or_else(missing)
    };
    let sizes = Sizes { inputs, outputs };
    let source = |_, variant: &ShaderVariant| words(variant).map(plan::Source::from);
    let checked = plan::check(plan, sizes, limits, &source)?;
    let step = |step: plan::CheckedStep| {
        let words = words(&plan.shaders[step.shader])?;
        let module = spirv::Module::parse(&words).map_err(|why| Error::new(Kind::Shader, why))?;
        Ok(Step {
            groups: step.groups,
            workgroup: module.local_size(&step.constants).unwrap_or_default(),
            args: step
                .args
                .iter()
                .map(|arg| (arg.buffer, arg.offset, arg.len, arg.writes))
                .collect(),
        })
    };
    checked.steps.into_iter().map(step).collect()
}
