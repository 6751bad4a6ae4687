//! Doors for the fuzz targets in `fuzz/` to code that reads what strangers wrote; no other caller may use them.

use crate::{
    Error, Kind, Result,
    builder::Builder,
    driver_cache,
    pipeline::spec::PipelineSpec,
    plan::{self, Sizes},
    shader::{self, Shaders},
    spirv::Module,
};
use nx_vulkan_abi::{DeviceInfo, Plan, ShaderVariant, plan::MAX_BINDINGS};
use nx_vulkan_registry::{Glsl as Source, Origin, cache::Cache};
use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::Duration,
};

pub use crate::measured::fuzzing::measured;
pub use nx_vulkan_registry::fuzzing::{marker, pack_file, probe_note, quarantine, registry};

/// The words of a compiled shader out of a file of the shader cache; `None` for what counts as absent.
pub fn shader_cache(bytes: &[u8]) -> Option<Vec<u32>> {
    shader::disk::words("fuzzed.spv", bytes)
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
    let find = |_: &str| Some(Source::new(text, Origin::Library));
    let module = Shaders::new(None).compile("fuzz.comp", &[], &find)?;
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
    let again = match Module::admit(stranger.words().clone(), Origin::Stranger) {
        // Bounding them once more may take the ids that are left.
        Err(why) if why.contains("too many ids") => return Ok(true),
        again => again?,
    };
    let facts = |module: &Module| {
        (
            module.bindings.clone(),
            module.written.clone(),
            module.push_bytes,
        )
    };
    let special: [&[(u32, u32)]; 3] = [&[], &[(0, 0), (1, 1)], &[(0, u32::MAX), (3, 7)]];
    // A stranger may have less memory, and what is over one limit is over the other.
    let agree = special.iter().all(|special| {
        let bounded = stranger.specialize(special);
        bounded == again.specialize(special)
            && match library.specialize(special) {
                Ok(known) => bounded.is_err() || bounded == Ok(known),
                Err(_) => bounded.is_err(),
            }
    });
    match agree && facts(&library) == facts(&stranger) && facts(&library) == facts(&again) {
        true => Ok(true),
        false => Err("bounding its indices changed what a module is".to_owned()),
    }
}

/// What became of a GLSL text.
#[derive(Debug)]
pub enum Glsl {
    /// The bounds, the compiler or the driver refuse it, or one of the latter took too long.
    Refused(String),
    /// It ended the compiler, which the bounds are there to prevent.
    EndedCompiler(String),
    /// It ended the driver, in a process of its own.
    EndedDriver(String),
    /// It is a pipeline.
    Built,
}

/// How long the compiler or the driver may take for a text.
const PATIENCE: Duration = Duration::from_secs(10);

/// A GLSL text that may include the ABI's headers, all the way to a pipeline of the best device: in a child where
/// `$NX_VULKAN_PROBER` names an `nxv`, else it is only compiled, in this process.
pub fn glsl(text: &str) -> Glsl {
    static PROGRAM: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("NX_VULKAN_PROBER").map(PathBuf::from));
    static BUILDER: LazyLock<Arc<Builder>> = LazyLock::new(|| {
        let nowhere = Cache::open(None);
        Arc::new(Builder::new(PROGRAM.clone(), &nowhere, PATIENCE))
    });
    let own = Source::new(text, Origin::Stranger);
    let find = |name: &str| {
        let own = (name == "fuzz.comp").then_some(own);
        own.or_else(|| plan::header(name))
    };
    let shaders = Shaders::new(None).with_builder(&BUILDER);
    let module = match shaders.compile("fuzz.comp", &[], &find) {
        Ok(module) => module,
        Err(error) => {
            let text = error.to_string();
            return match text.contains("this shader ends the compiler") {
                true => Glsl::EndedCompiler(text),
                false => Glsl::Refused(text),
            };
        }
    };
    let bindings = module.bindings.last().map_or(0, |last| last + 1);
    if bindings as usize > MAX_BINDINGS || module.push_bytes > 128 {
        return Glsl::Refused("it does not fit a plan".to_owned());
    }
    let spec = PipelineSpec {
        module: &module,
        bindings,
        push_bytes: (module.push_bytes as u32).next_multiple_of(4),
        subgroup_size: 0,
        constants: &[],
    };
    let built = PROGRAM
        .as_deref()
        .map(|program| BUILDER.build(program, spec.key(), &spec));
    match built {
        None | Some(Ok(_)) => Glsl::Built,
        Some(Err(error)) => {
            let text = error.to_string();
            match text.contains("this shader ends") {
                true => Glsl::EndedDriver(text),
                false => Glsl::Refused(text),
            }
        }
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
    static COUNTS: LazyLock<Result<Arc<Module>>> =
        LazyLock::new(|| plan::counts(&Shaders::new(None)));
    let modules = plan::Modules {
        source: &source,
        counts: &|| COUNTS.clone(),
    };
    let checked = plan::check(plan, sizes, limits, limits.features, &modules)?;
    let step = |step: plan::CheckedStep| {
        let special = step.module.specialize(&step.constants);
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
