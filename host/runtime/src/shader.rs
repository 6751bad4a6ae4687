//! GLSL to SPIR-V: includes and defines, the compiler, and a content-addressed cache in memory and on disk.

use crate::{
    Error, Kind, Result, bounds,
    builder::Builder,
    checked,
    spirv::{Module, Origin},
};
use glslang::{
    Compiler, CompilerOptions, ShaderInput, ShaderMessage, ShaderSource, ShaderStage,
    SourceLanguage, SpirvVersion, Target, VulkanVersion, error::GlslangError,
};
use nx_vulkan_registry::{cache::Cache, hex, private::Folder};
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// Part of every cache key: the compiler and the settings below. Change it with them.
const COMPILER: &str = "glslang 0.9.1 vulkan1.2 spirv1.5";

/// A GLSL file of a pack or of the ABI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlslFile<'a> {
    pub(crate) text: &'a str,
    /// Where it lies on disk, if it does; messages then say so.
    pub(crate) path: Option<&'a Path>,
}

/// Compiles shaders and remembers the results.
#[derive(Debug)]
pub(crate) struct Shaders {
    cache: Option<Arc<Cache>>,
    checked: bool,
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

/// A shader file with its defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) file: String,
    pub(crate) defines: Vec<(String, String)>,
}

/// Variants of each pack that an edit is tried on.
const MAX_RECENT: usize = 8;
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

    /// Remembers that a pack uses a variant.
    pub(crate) fn note(&self, pack: &str, variant: Variant) {
        let mut recent = lock(&self.recent);
        let variants = recent.entry(pack.to_owned()).or_default();
        variants.retain(|known| *known != variant);
        variants.push_back(variant);
        if variants.len() > MAX_RECENT {
            variants.pop_front();
        }
    }

    /// The variants that a pack used last.
    pub(crate) fn recent(&self, pack: &str) -> Vec<Variant> {
        let recent = lock(&self.recent);
        recent
            .get(pack)
            .map_or_else(Vec::new, |variants| variants.iter().cloned().collect())
    }

    /// The same, in checked mode or not.
    pub(crate) fn checked(self, checked: bool) -> Shaders {
        Shaders { checked, ..self }
    }

    /// Compiles `file`, which comes from `origin`. `find` gives a file by its name.
    ///
    /// # Errors
    /// [`Kind::Shader`] with file and line, or with what the module does that is not allowed.
    pub(crate) fn compile<'a>(
        &self,
        file: &str,
        defines: &[(&str, &str)],
        find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
        origin: Origin,
    ) -> Result<Arc<Module>> {
        let source = expand(file, defines, find)?;
        let key: [u8; 32] = Sha256::new()
            .chain_update(COMPILER)
            .chain_update([0])
            .chain_update(&source.text)
            .finalize()
            .into();
        if let Some(module) = lock(&self.memory).get(&(key, origin)) {
            return Ok(module.clone());
        }
        let name = format!("{}.spv", hex(&key));
        let folder = self.folder();
        let known = folder
            .as_ref()
            .and_then(|folder| read_cached(folder, &name));
        let known = known.and_then(|words| Module::admit(words.into(), origin).ok());
        let module = match known {
            Some(module) => module,
            None => {
                let words: Arc<[u32]> = self.translated(origin, &source)?.into();
                let module = Module::admit(words.clone(), origin).map_err(|why| {
                    let shown = &source.files[0].1;
                    Error::new(Kind::Shader, format!("{shown}: {why}"))
                })?;
                if let Some(folder) = &folder
                    && let Err(error) = write_cached(folder, &name, &words)
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
        let mut memory = lock(&self.memory);
        if memory.len() >= MAX_IN_MEMORY {
            memory.clear();
        }
        memory.insert((key, origin), module.clone());
        Ok(module)
    }

    /// The words of a text, from a process of their own where a stranger wrote it.
    fn translated(&self, origin: Origin, source: &Expanded) -> Result<Vec<u32>> {
        let failed = |log: &str| Error::new(Kind::Shader, readable(log, &source.files));
        bounds::check(&source.text).map_err(|why| failed(&source.blamed(&why)))?;
        let elsewhere = match origin {
            Origin::Library | Origin::Vouched => None,
            Origin::Stranger => self.builder.compile(&source.text),
        };
        let compiled = match elsewhere {
            None => glslang_compile(&source.text),
            Some(answer) => answer.map_err(|why| failed(&source.blamed(&why)))?,
        };
        compiled.map_err(|log| failed(&log))
    }

    /// The files that `file` is put together from, in the order of their numbers in `#line` directives.
    ///
    /// # Errors
    /// [`Kind::Shader`] when one of them is missing.
    pub(crate) fn files<'a>(
        &self,
        file: &str,
        find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
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
        lock(&self.disk_trouble).get_or_insert(why);
    }

    /// Forgets what was compiled or read: another cache is in force.
    pub(crate) fn forget(&self) {
        lock(&self.memory).clear();
    }

    /// Why compiled shaders cannot be kept on disk, if so.
    pub(crate) fn disk_trouble(&self) -> Option<String> {
        lock(&self.disk_trouble).clone()
    }
}

/// A shader with its includes and defines in place.
struct Expanded {
    text: String,
    /// File of each source-string number in `#line` directives: its name, and what messages call it.
    files: Vec<(String, String)>,
}

impl Expanded {
    /// A sentence about the whole shader, with its file in front.
    fn blamed(&self, why: &str) -> String {
        let file = self.files.first().map_or("shader", |file| &file.1);
        format!("{file}: {why}")
    }
}

fn expand<'a>(
    file: &str,
    defines: &[(&str, &str)],
    find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
) -> Result<Expanded> {
    let mut expanded = Expanded {
        text: String::new(),
        files: Vec::new(),
    };
    append(&mut expanded, file, None, defines, find)?;
    if expanded.text.contains('\0') {
        return Err(Error::new(
            Kind::Shader,
            format!("{file} contains a NUL character"),
        ));
    }
    Ok(expanded)
}

fn append<'a>(
    out: &mut Expanded,
    file: &str,
    included_at: Option<(&str, usize)>,
    defines: &[(&str, &str)],
    find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
) -> Result<()> {
    let Some(GlslFile { text, path }) = find(file) else {
        let place = included_at.map_or(String::new(), |(from, line)| format!("{from}:{line}: "));
        return Err(Error::new(
            Kind::Shader,
            format!("{place}there is no shader source named {file:?}"),
        ));
    };
    let index = out.files.len();
    let shown = path.map_or_else(|| file.to_owned(), |path| path.display().to_string());
    out.files.push((file.to_owned(), shown.clone()));
    if included_at.is_some() {
        line(out, 1, index);
    }
    for (number, text) in (1..).zip(text.lines()) {
        if included_at.is_none() && text.trim_start().starts_with("#version") {
            out.text.push_str(text);
            out.text.push('\n');
            for (name, value) in defines {
                line(out, number, index);
                let value = value.replace(['\n', '\r'], " ");
                writeln!(out.text, "#define {name} {value}").expect("writing to a String succeeds");
            }
            line(out, number + 1, index);
        } else if let Some(name) = include(text) {
            let beside = file
                .rsplit_once('/')
                .map(|(dir, _)| format!("{dir}/{name}"));
            let beside = beside.filter(|name| find(name).is_some());
            let name = beside.as_deref().unwrap_or(name);
            if !out.files.iter().any(|f| f.0 == name) {
                append(out, name, Some((&shown, number)), defines, find)?;
            }
            line(out, number + 1, index);
        } else {
            out.text.push_str(text);
            out.text.push('\n');
        }
    }
    Ok(())
}

fn line(out: &mut Expanded, number: usize, file: usize) {
    writeln!(out.text, "#line {number} {file}").expect("writing to a String succeeds");
}

fn include(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("#include")?.trim();
    rest.strip_prefix('"')?.strip_suffix('"')
}

/// SPIR-V of a text whose includes are in place, or the compiler's log.
pub(crate) fn glslang_compile(text: &str) -> std::result::Result<Vec<u32>, String> {
    // One compilation at a time: glslang's tables are process-wide.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    let _inside = crate::exit::enter().ok_or_else(|| crate::exit::error().to_string())?;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("nx_vulkan-glsl".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || translate(text))
            .map_err(|e| format!("the compiler's thread could not be started: {e}"))?
            .join()
            .unwrap_or_else(|_| Err("the compiler crashed on this source".to_owned()))
    })
}

/// GLSL to SPIR-V on this thread. May panic.
fn translate(text: &str) -> std::result::Result<Vec<u32>, String> {
    let compiler = Compiler::acquire().ok_or("glslang could not be started")?;
    let options = CompilerOptions {
        source_language: SourceLanguage::GLSL,
        target: Target::Vulkan {
            version: VulkanVersion::Vulkan1_2,
            spirv_version: SpirvVersion::SPIRV1_5,
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

/// The compiler's log with file names in place of source-string numbers: `ERROR: 1:20: …` becomes `unary.glsl:20: …`.
fn readable(log: &str, files: &[(String, String)]) -> String {
    let lines = log.lines().filter_map(|line| {
        let text = line.strip_prefix("ERROR: ").unwrap_or(line).trim();
        let noise = text.is_empty() || text.contains("compilation errors.  No code generated");
        if noise || line.starts_with("WARNING") {
            return None;
        }
        let named = text.split_once(':').and_then(|(number, rest)| {
            Some(format!(
                "{}:{rest}",
                files.get(number.parse::<usize>().ok()?)?.1
            ))
        });
        Some(named.unwrap_or_else(|| text.to_owned()))
    });
    let text = lines.take(8).collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        format!(
            "{} does not compile",
            files.first().map_or("shader", |f| &f.1)
        )
    } else {
        text
    }
}

/// Largest file of the cache that is read.
const MAX_FILE: u64 = 64 << 20;

fn read_cached(folder: &Folder, name: &str) -> Option<Vec<u32>> {
    cached(&folder.read(name, MAX_FILE).ok()??)
}

/// A cached module: 32 bytes of sha256, then the words. Anything damaged reads as absent and is written anew.
pub(crate) fn cached(bytes: &[u8]) -> Option<Vec<u32>> {
    let (sum, body) = bytes.split_at_checked(32)?;
    if Sha256::digest(body).as_slice() != sum || body.len() % 4 != 0 {
        return None;
    }
    let chunks = body.as_chunks::<4>().0.iter();
    Some(chunks.map(|chunk| u32::from_le_bytes(*chunk)).collect())
}

fn write_cached(folder: &Folder, name: &str, words: &[u32]) -> std::io::Result<()> {
    let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    folder.write(name, &[Sha256::digest(&body).as_slice(), &body], false)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_registry::private::{Rule, Temporary};

    const MAIN: &str = "#version 450\n#include \"head.glsl\"\nlayout(local_size_x = N) in;\n\
        layout(set = 0, binding = 0) buffer B { float b[]; };\nvoid main() { b[0] = twice(VALUE); }\n";
    const HEAD: &str = "float twice(float x) {\n    return x * 2.0;\n}\n";

    fn files(name: &str) -> Option<GlslFile<'static>> {
        let text = match name {
            "main.comp" => Some(MAIN),
            "head.glsl" => Some(HEAD),
            "broken.glsl" => Some("float twice(float x) {\n    return y;\n}\n"),
            "broken.comp" => Some("#version 450\n#include \"broken.glsl\"\nvoid main() {}\n"),
            "sub/main.comp" => Some(
                "#version 450\n#include \"beside.glsl\"\n#include \"head.glsl\"\nvoid main() {}\n",
            ),
            "sub/beside.glsl" => Some("layout(local_size_x = 1) in;\n"),
            "lost.comp" => Some("#version 450\n#include \"lost.glsl\"\nvoid main() {}\n"),
            _ => None,
        };
        let path = (name == "broken.glsl").then_some(Path::new("/on/disk/broken.glsl"));
        text.map(|text| GlslFile { text, path })
    }

    fn shaders(dir: &Path) -> Shaders {
        Shaders::new(Some(Cache::open(Some((dir.to_owned(), Rule::Sticky)))))
    }

    #[test]
    fn includes_and_defines_compile_and_land_in_the_cache() {
        let temporary = Temporary::new().unwrap();
        let dir = temporary.path();
        let defines = [("N", "64"), ("VALUE", "1.5")];
        let compile = || shaders(dir).compile("main.comp", &defines, &files, Origin::Library);
        let module = compile().unwrap();
        let words = module.words();
        assert_eq!(words[0], 0x0723_0203);
        let cached: Vec<_> = std::fs::read_dir(dir.join("shaders"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        assert_eq!(cached.len(), 1);
        let good = std::fs::read(&cached[0]).unwrap();
        std::fs::write(&cached[0], &good[..good.len() / 2]).unwrap();
        let again = compile().unwrap();
        assert_eq!(
            again.words(),
            words,
            "a damaged cache file is compiled anew"
        );
        assert_eq!(std::fs::read(&cached[0]).unwrap(), good, "and replaced");
        // Whole, but nothing that may run: its first capability is that of pointers to any memory.
        let mut hostile = words.to_vec();
        assert_eq!(hostile[5..7], [2 << 16 | 17, 1]);
        hostile[6] = 5347;
        let name = cached[0].file_name().unwrap().to_str().unwrap();
        let folder = shaders(dir).folder().unwrap();
        write_cached(&folder, name, &hostile).unwrap();
        let again = compile().unwrap();
        assert_eq!(again.words(), words, "so is one that is refused");
        assert_eq!(std::fs::read(&cached[0]).unwrap(), good, "and replaced");
    }

    #[test]
    fn an_error_names_file_and_line_of_the_include() {
        let error = Shaders::new(None)
            .compile("broken.comp", &[], &files, Origin::Library)
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Shader);
        assert!(
            error.to_string().starts_with("/on/disk/broken.glsl:2"),
            "{error}"
        );
        let error = Shaders::new(None)
            .compile("lost.comp", &[], &files, Origin::Library)
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("lost.comp:2: there is no shader source named \"lost.glsl\""),
            "{error}"
        );
    }

    #[test]
    fn an_include_is_looked_for_beside_its_file_first() {
        let shaders = Shaders::new(None);
        shaders
            .compile("sub/main.comp", &[], &files, Origin::Library)
            .unwrap();
    }

    /// The header's accessors cost nothing outside of checked mode: the words are those of plain accesses.
    #[test]
    fn accessors_are_plain_accesses() {
        let main = |body: &str| {
            format!(
                "#version 450\n#include \"tensor.glsl\"\nlayout(local_size_x = 64) in;\n\
                 layout(set = 0, binding = 0) buffer B {{ float b[]; }};\n\
                 void main() {{ uint i = gl_GlobalInvocationID.x; {body} }}\n"
            )
        };
        let words = |text: &str| {
            let header = nx_vulkan_abi::glsl::HEADERS
                .iter()
                .find(|h| h.0 == "tensor.glsl");
            let header = header.unwrap().1;
            let find = |name: &str| {
                let text = if name == "main.comp" { text } else { header };
                Some(GlslFile { text, path: None })
            };
            Shaders::new(None)
                .compile("main.comp", &[], &find, Origin::Library)
                .unwrap()
        };
        let plain = words(&main("b[i] = b[i + 1] * 2.0;"));
        let through = words(&main("nxv_store(b, i, nxv_load(b, i + 1) * 2.0);"));
        assert_eq!(plain.words(), through.words());
    }

    #[test]
    fn an_unwritable_cache_is_reported_but_not_fatal() {
        let shaders = shaders(Path::new("/proc/nxv/cache"));
        shaders
            .compile(
                "main.comp",
                &[("N", "1"), ("VALUE", "1.0")],
                &files,
                Origin::Library,
            )
            .unwrap();
        assert!(shaders.disk_trouble().unwrap().contains("/proc/nxv/cache"));
    }
}
