//! The shaders of a plan: SPIR-V of its pack, or GLSL with the headers of the ABI, compiled.

use super::invalid;
use crate::{
    Result, checked, faults,
    shader::{GlslFile, Shaders, Variant},
    spirv::{self, Module},
};
use nx_vulkan_abi::{self as abi, ShaderVariant, plan::MAX_BINDINGS};
use nx_vulkan_registry::LoadedPack;
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
    let find = |_: &str| {
        Some(GlslFile {
            text: include_str!("counts.comp"),
            path: None,
        })
    };
    shaders.compile(COUNTS, &[], &find, spirv::Origin::Library)
}

/// Shader `number` of a plan of `pack`, compiled where the pack has GLSL.
pub(super) fn source(
    number: usize,
    variant: &ShaderVariant,
    pack: &LoadedPack,
    shaders: &Shaders,
    partial: bool,
) -> Result<Source> {
    if let Some(words) = pack.spirv(&variant.file) {
        let module = Module::admit(words.into(), pack.origin())
            .map_err(|why| invalid(format!("{}: {why}", variant.file)))?;
        return Ok(Source::from(Arc::new(module)));
    }
    let find = |name: &str| glsl_of(pack, name);
    let mut compiled = compile_glsl(number, variant, (shaders, pack.origin()), partial, &find);
    if let Err(error) = &compiled
        && !pack.edited.is_empty()
    {
        // An edit is tried on what was used last; this variant was not, and the pack's own text serves it.
        nx_vulkan_registry::log::error(&format!("pack {}: {error}", pack.id));
        let own = |name: &str| own_glsl_of(pack, name);
        compiled = compile_glsl(number, variant, (shaders, pack.own_origin()), partial, &own);
    }
    let defines = variant.defines.iter();
    shaders.note(
        &pack.id,
        Variant {
            file: variant.file.to_string(),
            defines: defines
                .map(|d| (d.name.to_string(), d.value.to_string()))
                .collect(),
        },
    );
    compiled.map_err(|e| e.context(format!("pack {} {}", pack.id, pack.version)))
}

fn compile_glsl<'a>(
    number: usize,
    variant: &ShaderVariant,
    (shaders, origin): (&Shaders, spirv::Origin),
    partial: bool,
    find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
) -> Result<Source> {
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
    let module = shaders.compile(&variant.file, &defines, find, origin)?;
    Ok(Source {
        module,
        watched,
        faults,
    })
}

/// A GLSL file of the pack, or a header of the ABI.
pub(crate) fn glsl_of<'a>(pack: &'a LoadedPack, file: &str) -> Option<GlslFile<'a>> {
    let own = pack.glsl(file).map(|text| GlslFile {
        text,
        path: pack.path_of(file),
    });
    own.or_else(|| header(file))
}

/// As [`glsl_of`], without what was edited.
fn own_glsl_of<'a>(pack: &'a LoadedPack, file: &str) -> Option<GlslFile<'a>> {
    let own = pack.own_glsl(file).map(|text| GlslFile {
        text,
        path: pack.own_path_of(file),
    });
    own.or_else(|| header(file))
}

/// A header of the ABI.
pub(crate) fn header(file: &str) -> Option<GlslFile<'static>> {
    let header = abi::glsl::HEADERS.iter().find(|h| h.0 == file)?;
    Some(GlslFile {
        text: header.1,
        path: None,
    })
}
