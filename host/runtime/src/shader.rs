//! GLSL to SPIR-V: includes and defines, the compiler, and a content-addressed cache in memory and on disk.

pub(crate) mod disk;
#[cfg(test)]
mod tests;
mod text;

use crate::{
    Error, Kind, Result, bounds,
    builder::{Builder, Unanswered},
    checked, reach,
    spirv::Module,
};
use glslang::{
    Compiler, CompilerOptions, ShaderInput, ShaderMessage, ShaderSource, ShaderStage,
    SourceLanguage, SpirvVersion, VulkanVersion, error::GlslangError,
};
use nx_vulkan_abi::{Dispatch, Features, ShaderVariant};
use nx_vulkan_registry::{Glsl, Origin, cache::Cache, hex, private::Folder};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use text::{Expanded, expand, readable};

/// What texts are compiled for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// Vulkan 1.2 and SPIR-V 1.5.
    #[default]
    Older,
    /// Vulkan 1.3 and SPIR-V 1.6.
    Newer,
}

impl Target {
    /// Part of every cache key: the compiler and its settings. Change it with them.
    fn key(self) -> &'static str {
        match self {
            Target::Older => "glslang 0.9.1 vulkan1.2 spirv1.5",
            Target::Newer => "glslang 0.9.1 vulkan1.3 spirv1.6",
        }
    }

    fn versions(self) -> (VulkanVersion, SpirvVersion) {
        match self {
            Target::Older => (VulkanVersion::Vulkan1_2, SpirvVersion::SPIRV1_5),
            Target::Newer => (VulkanVersion::Vulkan1_3, SpirvVersion::SPIRV1_6),
        }
    }

    /// For texts of that origin. Only libraries may use what the newer target is for, so the others need no second one.
    fn of(self, origin: Origin) -> Target {
        match origin {
            Origin::Library => self,
            Origin::Vouched | Origin::Stranger => Target::Older,
        }
    }
}

/// Compiles shaders and remembers the results.
#[derive(Debug)]
pub(crate) struct Shaders {
    cache: Option<Arc<Cache>>,
    checked: bool,
    target: Target,
    memory: Mutex<HashMap<Key, Arc<Module>>>,
    /// Why the disk cache could not be written, once; the shader itself is fine then.
    disk_trouble: Mutex<Option<String>>,
    /// What each pack used last, the newest at the end.
    recent: Mutex<HashMap<String, VecDeque<Variant>>>,
    /// What compiles the texts of strangers.
    builder: Arc<Builder>,
}

/// Hash of a text and of what compiles it, and who wrote it.
type Key = ([u8; 32], Origin);

/// A shader as a plan of its pack used it last.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) shader: ShaderVariant,
    /// Whether the code or the table that made the plan still serves.
    pub(crate) is_planned: bool,
    /// Steps that ran it.
    pub(crate) steps: Vec<Dispatch>,
    /// What its kernel declares to need.
    pub(crate) declared: Features,
}

impl Variant {
    pub(crate) fn defines(&self) -> Vec<(&str, &str)> {
        let defines = self.shader.defines.iter();
        defines
            .map(|d| (d.name.as_str(), d.value.as_str()))
            .collect()
    }
}

/// Variants of each pack that an edit is tried on.
const MAX_RECENT: usize = 8;
/// What a text is translated to, or why it is not.
type Translated<T> = std::result::Result<T, String>;

/// Stack of the compiler. An operator takes up to 1 KB of it, and [`bounds`] has a limit to their number.
const STACK: usize = 512 << 20;
/// Compiled shaders kept in memory before that cache starts anew.
const MAX_IN_MEMORY: usize = 4_096;

impl Shaders {
    /// With a folder for compiled shaders, or without a disk cache.
    pub(crate) fn new(cache: Option<Arc<Cache>>) -> Shaders {
        Shaders {
            cache,
            checked: false,
            target: Target::default(),
            memory: Mutex::default(),
            disk_trouble: Mutex::default(),
            recent: Mutex::default(),
            builder: Arc::default(),
        }
    }

    /// The same, with what compiles the texts of strangers.
    pub(crate) fn with_builder(self, builder: &Arc<Builder>) -> Shaders {
        Shaders {
            builder: builder.clone(),
            ..self
        }
    }

    /// The same, for a device that takes `target`.
    pub(crate) fn with_target(self, target: Target) -> Shaders {
        Shaders { target, ..self }
    }

    /// Remembers that a pack uses a variant.
    pub(crate) fn note(&self, pack: &str, variant: Variant) {
        let mut recent = self.recent.lock();
        let variants = recent.entry(pack.to_owned()).or_default();
        let is_same = |known: &Variant| {
            known.shader.file == variant.shader.file && known.defines() == variant.defines()
        };
        variants.retain(|known| !is_same(known));
        variants.push_back(variant);
        if variants.len() > MAX_RECENT {
            variants.pop_front();
        }
    }

    /// Notes that other code or another table of a pack makes its plans from now on.
    pub(crate) fn replan(&self, pack: &str) {
        let mut recent = self.recent.lock();
        let variants = recent.get_mut(pack).into_iter().flatten();
        variants.for_each(|variant| variant.is_planned = false);
    }

    /// The variants that a pack used last.
    pub(crate) fn recent(&self, pack: &str) -> Vec<Variant> {
        let recent = self.recent.lock();
        recent
            .get(pack)
            .map_or_else(Vec::new, |variants| variants.iter().cloned().collect())
    }

    /// The same, in checked mode or not.
    pub(crate) fn checked(self, checked: bool) -> Shaders {
        Shaders { checked, ..self }
    }

    /// Compiles `file`. `find` gives a file by its name.
    ///
    /// # Errors
    /// [`Kind::Shader`] with file and line, or with what the module does that is not allowed.
    pub(crate) fn compile<'a>(
        &self,
        file: &str,
        defines: &[(&str, &str)],
        find: &dyn Fn(&str) -> Option<Glsl<'a>>,
    ) -> Result<Arc<Module>> {
        let source = expand(file, defines, find)?;
        let origin = source.origin;
        let key: [u8; 32] = Sha256::new()
            .chain_update(self.target.of(origin).key())
            .chain_update([0])
            .chain_update(&source.text)
            .finalize()
            .into();
        if let Some(module) = self.memory.lock().get(&(key, origin)) {
            return Ok(module.clone());
        }
        let name = format!("{}.spv", hex(&key));
        let folder = self.folder();
        let known = folder.as_ref().and_then(|folder| disk::read(folder, &name));
        let known = known.and_then(|words| Module::admit(words.into(), origin).ok());
        let module = match known {
            Some(module) => module,
            None => {
                let words: Arc<[u32]> = self.translated(&source)?.into();
                let module = Module::admit(words.clone(), origin).map_err(|why| {
                    let shown = &source.files[0].1;
                    Error::new(Kind::Shader, format!("{shown}: {why}"))
                })?;
                if let Some(folder) = &folder
                    && let Err(error) = disk::write(folder, &name, &words)
                {
                    let path = folder.path().join(&name);
                    self.trouble(format!(
                        "the shader cache {} cannot be written: {error}",
                        path.display()
                    ));
                }
                module
            }
        };
        let module = Arc::new(module);
        let mut memory = self.memory.lock();
        if memory.len() >= MAX_IN_MEMORY {
            memory.clear();
        }
        memory.insert((key, origin), module.clone());
        Ok(module)
    }

    /// The words of a text. The compiler sees what is reached of it, and where it refuses that, the text itself: so messages
    /// are about that, and what is left out by mistake costs time and no more.
    fn translated(&self, source: &Expanded) -> Result<Vec<u32>> {
        let failed = |log: &str| Error::new(Kind::Shader, readable(log, &source.files));
        let asked = |text: &str| {
            let answer = self.ask(text, source.origin);
            answer.map_err(|unanswered| {
                failed(&source.blamed(&unanswered.why)).passing(unanswered.is_passing)
            })
        };
        if let Some(reached) = reach::reachable(&source.text, &source.spare)
            && let Ok(words) = asked(&reached)?
        {
            return Ok(words);
        }
        asked(&source.text)?.map_err(|log| failed(&log))
    }

    /// The words of a text or the compiler's log, from a process of their own where a stranger wrote it. The outer error
    /// tells why it could not be tried or what it did to the compiler.
    fn ask(
        &self,
        text: &str,
        origin: Origin,
    ) -> std::result::Result<Translated<Vec<u32>>, Unanswered> {
        bounds::check(text)?;
        let elsewhere = match origin {
            Origin::Library | Origin::Vouched => None,
            Origin::Stranger => self.builder.compile(text),
        };
        elsewhere.unwrap_or_else(|| Ok(glslang_compile(text, self.target.of(origin))))
    }

    /// The files that `file` is put together from, in the order of their numbers in `#line` directives.
    ///
    /// # Errors
    /// [`Kind::Shader`] when one of them is missing.
    pub(crate) fn files<'a>(
        &self,
        file: &str,
        find: &dyn Fn(&str) -> Option<Glsl<'a>>,
    ) -> Result<Vec<checked::File>> {
        let expanded = expand(file, &[], find)?;
        let files = expanded.files.into_iter();
        let named = files.map(|(name, shown)| checked::File {
            text: find(&name).map_or_else(String::new, |file| file.text.to_owned()),
            name,
            shown,
        });
        Ok(named.collect())
    }

    /// Whether shaders check their accesses.
    pub(crate) fn are_checked(&self) -> bool {
        self.checked
    }

    /// The folder of compiled shaders, where there is one.
    fn folder(&self) -> Option<Folder> {
        let folder = self.cache.as_ref()?.within("shaders");
        folder.map_err(|error| self.trouble(error.to_string())).ok()
    }

    fn trouble(&self, why: String) {
        self.disk_trouble.lock().get_or_insert(why);
    }

    /// Forgets what was compiled or read: another cache is in force.
    pub(crate) fn forget(&self) {
        self.memory.lock().clear();
    }

    /// Why compiled shaders cannot be kept on disk, if so.
    pub(crate) fn disk_trouble(&self) -> Option<String> {
        self.disk_trouble.lock().clone()
    }
}

/// SPIR-V of a text whose includes are in place, or the compiler's log.
pub(crate) fn glslang_compile(text: &str, target: Target) -> Translated<Vec<u32>> {
    // One compilation at a time: glslang's tables are process-wide.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let _inside = crate::exit::enter().ok_or_else(|| crate::exit::error().to_string())?;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("nx_vulkan-glsl".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || translate(text, target))
            .map_err(|e| format!("the compiler's thread could not be started: {e}"))?
            .join()
            .unwrap_or_else(|_| Err("the compiler crashed on this source".to_owned()))
    })
}

/// GLSL to SPIR-V on this thread. May panic.
fn translate(text: &str, target: Target) -> Translated<Vec<u32>> {
    let compiler = Compiler::acquire().ok_or("glslang could not be started")?;
    let (version, spirv_version) = target.versions();
    let options = CompilerOptions {
        source_language: SourceLanguage::GLSL,
        target: glslang::Target::Vulkan {
            version,
            spirv_version,
        },
        version_profile: None,
        messages: ShaderMessage::DEFAULT,
    };
    let text = ShaderSource::from(text);
    let none: Option<&[(&str, Option<&str>)]> = None;
    ShaderInput::new(&text, ShaderStage::Compute, &options, none, None)
        .and_then(|input| compiler.create_shader(input))
        .and_then(|shader| shader.compile())
        .map_err(|error| match error {
            GlslangError::PreprocessError(log)
            | GlslangError::ParseError(log)
            | GlslangError::MapIoError(log)
            | GlslangError::LinkError(log) => log.log,
            other => other.to_string(),
        })
}
