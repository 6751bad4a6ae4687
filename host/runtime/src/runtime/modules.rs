//! Compute modules of the caller's own on this runtime: kept by content, run on its queue.

use super::{Runtime, lock};
use crate::{
    Error, Kind, Result, Tensor,
    memory::Buffer,
    module::{Binding, Launch, Module},
    plan, shader,
};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Modules kept before that cache starts anew.
const MAX_MODULES: usize = 1_024;

/// What tells whether a file is still the one that was read: length and time of its last change, and on Unix its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: SystemTime,
    inode: u64,
}

/// Clocks of file systems tick in steps of up to this long.
const TICK: Duration = Duration::from_millis(20);

impl Stamp {
    /// Whether a change from now on would get another time.
    fn is_settled(&self) -> bool {
        self.modified.elapsed().is_ok_and(|age| age > TICK)
    }
}

impl Runtime {
    /// The module in a SPIR-V file, read again when the file has changed.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read (`read spv: …`), [`Kind::Shader`] when it is no compute module or needs what
    /// the device lacks.
    pub fn module_at(&self, path: &Path) -> Result<Arc<Module>> {
        let stamp = stamp(path);
        if let Some(stamp) = stamp
            && let Some((known, module)) = lock(&self.module_files).get(path)
            && *known == stamp
        {
            return Ok(module.clone());
        }
        let module = Arc::new(Module::open(path, &self.device)?);
        let mut files = lock(&self.module_files);
        if files.len() >= MAX_MODULES {
            files.clear();
        }
        if let Some(stamp) = stamp.filter(Stamp::is_settled) {
            files.insert(path.to_owned(), (stamp, module.clone()));
        }
        Ok(module)
    }

    /// The module of a GLSL compute shader. It may include the ABI's headers.
    ///
    /// # Errors
    /// [`Kind::Shader`] with the line, and as [`Runtime::module_at`].
    pub fn module_of(&self, glsl: &str) -> Result<Arc<Module>> {
        let key: [u8; 32] = Sha256::digest(glsl).into();
        if let Some(known) = lock(&self.module_texts).get(&key) {
            return Ok(known.clone());
        }
        let words = self.compile_text(glsl)?;
        let name = format!("shader {}", &shader::hex(&key)[..12]);
        let module = Arc::new(Module::new(name, words, &self.device)?);
        let mut texts = lock(&self.module_texts);
        if texts.len() >= MAX_MODULES {
            texts.clear();
        }
        texts.insert(key, module.clone());
        Ok(module)
    }

    /// Compiles a GLSL compute shader into `<sha256 of the text>.spv` in the cache folder, unless that is there and whole.
    ///
    /// # Errors
    /// [`Kind::Shader`] with the line; [`Kind::Io`] when there is no cache folder, or it cannot be written.
    pub fn spirv_file(&self, glsl: &str) -> Result<PathBuf> {
        let words = self.compile_text(glsl)?;
        let dir = self.synthesis_dir()?;
        let path = dir.join(format!("{}.spv", shader::hex(&Sha256::digest(glsl))));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !std::fs::read(&path).is_ok_and(|there| there == bytes) {
            shader::write_atomically(&path, &[&bytes]).map_err(|e| {
                let shown = dir.display();
                Error::new(Kind::Io, format!("{shown} cannot be written: {e}"))
            })?;
        }
        Ok(path)
    }

    /// Where [`Runtime::spirv_file`] writes. Nothing else lies there.
    ///
    /// # Errors
    /// [`Kind::Io`] without a cache folder.
    pub fn synthesis_dir(&self) -> Result<PathBuf> {
        let dir = self.cache_dir.as_ref().map(|dir| dir.join("synthesis"));
        dir.ok_or_else(|| {
            Error::new(
                Kind::Io,
                "there is no folder for compiled shaders: set cache_dir or $NX_VULKAN_CACHE",
            )
        })
    }

    /// Records one dispatch of a module and returns at once.
    ///
    /// # Errors
    /// Bad input when bindings, push constants or workgroups do not fit the module or the device.
    pub fn launch(&self, module: &Module, launch: &Launch<'_>) -> Result<()> {
        if launch.groups.contains(&0) {
            return Ok(());
        }
        let step = module.step(launch, &self.device, &self.pipelines)?;
        let buffers: Vec<&Buffer> = launch.bindings.iter().map(|b| &*b.tensor.buffer).collect();
        self.stream.record(&self.pipelines, &[step], &buffers)
    }

    /// Runs a module over the buffers `inputs` and, as the last binding, a copy of `out`, and gives that copy.
    ///
    /// # Errors
    /// As [`Runtime::launch`]; [`Kind::OutOfMemory`].
    pub fn run_module(
        &self,
        module: &Module,
        inputs: &[&Tensor],
        out: &Tensor,
        (constants, push): (&[(u32, u32)], &[u8]),
        groups: [u32; 3],
    ) -> Result<Tensor> {
        let inputs = inputs.iter().map(|t| self.contiguous(t));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let before = self.contiguous(out)?;
        let len = before.byte_len();
        let fresh = Tensor::contiguous(self.alloc(len, None)?, out.dtype(), out.shape());
        if len == 0 {
            return Ok(fresh);
        }
        self.stream
            .copy((&before.buffer, 0), (&fresh.buffer, 0), len, false)?;
        let mut bindings: Vec<_> = inputs.iter().map(Binding::read).collect();
        bindings.push(Binding::write(&fresh));
        let launch = Launch {
            bindings: &bindings,
            constants,
            push,
            groups,
        };
        self.launch(module, &launch)?;
        Ok(fresh)
    }

    fn compile_text(&self, glsl: &str) -> Result<Arc<[u32]>> {
        const NAME: &str = "shader";
        let own = shader::GlslFile {
            text: glsl,
            path: None,
        };
        let find = |name: &str| (name == NAME).then_some(own).or_else(|| plan::header(name));
        self.shaders.compile(NAME, &[], &find)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some(Stamp {
        len: meta.len(),
        modified: meta.modified().ok()?,
        inode,
    })
}
