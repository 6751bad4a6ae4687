//! The shaders of a plan: SPIR-V of its pack, or GLSL with the headers of the ABI, compiled.

use super::refusal::invalid;
use crate::{
    Result, checked, faults,
    shader::{Shaders, Variant},
    spirv::Module,
};
use nx_vulkan_abi::{self as abi, Dispatch, Features, Plan, ShaderVariant, plan::MAX_BINDINGS};
use nx_vulkan_registry::{Glsl, LoadedPack, Origin};
use std::sync::Arc;

/// A shader as it runs.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) module: Arc<Module>,
    /// In checked mode the files of a shader that reports; else none.
    pub(super) watched: Vec<checked::File>,
    /// Whether it may set the word of faults.
    pub(super) faults: bool,
}

impl From<Arc<Module>> for Source {
    fn from(module: Arc<Module>) -> Source {
        Source {
            module,
            watched: Vec::new(),
            faults: false,
        }
    }
}

/// What messages call the host's own shader.
pub(super) const COUNTS: &str = "counts.comp";

/// The shader that bounds workgroup counts.
pub(crate) fn counts(shaders: &Shaders) -> Result<Arc<Module>> {
    let find = |_: &str| Some(Glsl::new(include_str!("counts.comp"), Origin::Library));
    shaders.compile(COUNTS, &[], &find)
}

/// Steps of one shader that an edit of it is held against, at most.
const MOST_STEPS: usize = 16;

/// Shader `number` of a plan of `pack`, compiled where the pack has GLSL. Its kernel declares to need `declared`.
pub(super) fn source(
    number: usize,
    (plan, declared): (&Plan, Features),
    files: Files<'_>,
    shaders: &Shaders,
    partial: bool,
) -> Result<Source> {
    let variant = &plan.shaders[number];
    let pack = files.pack;
    if let Some(words) = pack.spirv(&variant.file) {
        let module = Module::admit(words.into(), pack.origin())
            .map_err(|why| invalid(format!("{}: {why}", variant.file)))?;
        return Ok(Source::from(Arc::new(module)));
    }
    let mut compiled = compile_glsl(number, variant, shaders, partial, &files);
    if let Err(error) = &compiled
        && files.are_edited()
    {
        // An edit is tried on what was used last; this variant was not, and the pack's own text serves it.
        log::error!("pack {}: {error}", pack.id);
        compiled = compile_glsl(number, variant, shaders, partial, &files.own());
    }
    let runs = |step: &&Dispatch| step.shader as usize == number && !step.groups.contains(&0);
    let steps = plan.steps.iter().filter(runs).take(MOST_STEPS);
    let used = Variant {
        shader: variant.clone(),
        is_planned: true,
        steps: steps.cloned().collect(),
        declared,
    };
    shaders.note(&pack.id, used);
    compiled.map_err(|e| e.context(format!("pack {} {}", pack.id, pack.version)))
}

fn compile_glsl(
    number: usize,
    variant: &ShaderVariant,
    shaders: &Shaders,
    partial: bool,
    files: &Files<'_>,
) -> Result<Source> {
    let find = &|name: &str| files.find(name);
    let mut watched = Vec::new();
    if shaders.are_checked() && (variant.bindings as usize) < MAX_BINDINGS {
        watched = shaders.files(&variant.file, find)?;
    }
    if !checked::reports(&watched) {
        watched.clear();
    }
    let next = variant.bindings + u32::from(!watched.is_empty());
    let faults = partial && (next as usize) < MAX_BINDINGS && {
        let files = shaders.files(&variant.file, find)?;
        faults::may_set(files.iter().map(|file| file.text.as_str()))
    };
    let own = checked::defines(variant.bindings, number);
    let own = own.into_iter().filter(|_| !watched.is_empty());
    let own: Vec<_> = own.chain(faults.then(|| faults::define(next))).collect();
    let defines: Vec<_> = variant
        .defines
        .iter()
        .map(|d| (d.name.as_str(), d.value.as_str()))
        .chain(own.iter().map(|(name, value)| (*name, value.as_str())))
        .collect();
    let module = shaders.compile(&variant.file, &defines, find)?;
    Ok(Source {
        module,
        watched,
        faults,
    })
}

/// Where the GLSL of a pack's shaders comes from: its own files, the headers of the ABI, and as `PACK/FILE` those of
/// the packs beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files<'a> {
    pack: &'a LoadedPack,
    beside: &'a [LoadedPack],
    own: bool,
}

impl<'a> Files<'a> {
    pub(crate) fn new(pack: &'a LoadedPack, beside: &'a [LoadedPack]) -> Files<'a> {
        Files {
            pack,
            beside,
            own: false,
        }
    }

    /// Id of the pack.
    pub(super) fn id(&self) -> &'a str {
        &self.pack.id
    }

    /// The same without what was edited.
    fn own(self) -> Files<'a> {
        Files { own: true, ..self }
    }

    fn are_edited(&self) -> bool {
        let beside = self.beside.iter().any(|pack| !pack.edited.is_empty());
        beside || !self.pack.edited.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Glsl<'a>> {
        let of = |pack: &'a LoadedPack, file: &str| match self.own {
            true => pack.own_glsl(file),
            false => pack.glsl(file),
        };
        of(self.pack, name).or_else(|| header(name)).or_else(|| {
            let (id, file) = name.split_once('/')?;
            let lender = self.beside.iter().find(|pack| pack.id == id)?;
            of(lender, file)
        })
    }
}

/// A header of the ABI.
pub(crate) fn header(file: &str) -> Option<Glsl<'static>> {
    let header = abi::glsl::HEADERS.iter().find(|h| h.0 == file)?;
    Some(Glsl::new(header.1, Origin::Library))
}
