//! Compute modules of the caller's own on this runtime: kept by content, run on its queue.

use super::Runtime;
use crate::{
    Error, Kind, Result, Tensor,
    memory::Patience,
    module::{Binding, Launch, Module},
    plan,
    queue::Bound,
    spirv,
};
use nx_vulkan_registry::{Glsl, Origin, Stamp, hex};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The folder of compiled shaders that callers get the path of, in the cache folder.
const SYNTHESIS: &str = "synthesis";

/// Clocks of file systems that shaders are written to at run time tick in steps of up to this long.
const TICK: Duration = Duration::from_millis(20);

/// Modules kept before that cache starts anew.
const MAX_MODULES: usize = 1_024;

impl Runtime {
    /// The module in a SPIR-V file, read again when the file has changed.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read (`read spv: …`), [`Kind::Shader`] when it is no compute module or needs what
    /// the device lacks.
    pub fn module_at(&self, path: &Path) -> Result<Arc<Module>> {
        self.device.usable()?;
        let stamp = path.metadata().ok().map(|meta| Stamp::of(&meta));
        if let Some(stamp) = stamp
            && let Some((known, module)) = self.module_files.lock().get(path)
            && *known == stamp
        {
            return Ok(module.clone());
        }
        let module = Arc::new(Module::open(path, &self.device)?);
        let mut files = self.module_files.lock();
        if files.len() >= MAX_MODULES {
            files.clear();
        }
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled(SystemTime::now(), TICK)) {
            files.insert(path.to_owned(), (stamp, module.clone()));
        }
        Ok(module)
    }

    /// The module of a GLSL compute shader. It may include the ABI's headers.
    ///
    /// # Errors
    /// [`Kind::Shader`] with the line, and as [`Runtime::module_at`].
    pub fn module_of(&self, glsl: &str) -> Result<Arc<Module>> {
        self.module_from(glsl, Origin::Stranger)
    }

    /// As [`Runtime::module_of`], for a text that this library wrote itself: it is compiled and built in this process.
    ///
    /// # Errors
    /// As [`Runtime::module_of`].
    pub fn generated_module(&self, glsl: &str) -> Result<Arc<Module>> {
        self.module_from(glsl, Origin::Library)
    }

    fn module_from(&self, glsl: &str, origin: Origin) -> Result<Arc<Module>> {
        self.device.usable()?;
        let key: [u8; 32] = Sha256::digest(glsl).into();
        if let Some(known) = self.module_texts.lock().get(&key) {
            return Ok(known.clone());
        }
        let compiled = self.compile_text(Glsl::new(glsl, origin))?;
        let name = format!("shader {}", &hex(&key)[..12]);
        let module = Arc::new(Module::new(name, compiled, &self.device)?);
        let mut texts = self.module_texts.lock();
        if texts.len() >= MAX_MODULES {
            texts.clear();
        }
        texts.insert(key, module.clone());
        Ok(module)
    }

    /// Compiles a GLSL compute shader into `<sha256 of the text>.spv` in the cache folder, unless that is there and whole.
    /// One that this library put together, of whatever, may have errors in functions that it does not use.
    ///
    /// # Errors
    /// [`Kind::Shader`] with the line; [`Kind::Io`] when there is no cache folder, or it cannot be written.
    pub fn spirv_file(&self, glsl: &str, is_generated: bool) -> Result<PathBuf> {
        let compiled = self.compile_text(Glsl {
            is_generated,
            ..Glsl::new(glsl, Origin::Stranger)
        })?;
        let folder = self.cache.within(SYNTHESIS)?;
        let name = format!("{}.spv", hex(&Sha256::digest(glsl)));
        let bytes = compiled.words().iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.collect();
        let there = folder.read(&name, bytes.len() as u64).ok().flatten();
        if there.is_none_or(|there| there != bytes) {
            folder.write(&name, &[&bytes], false).map_err(|e| {
                let shown = folder.path().display();
                Error::new(Kind::Io, format!("{shown} cannot be written: {e}"))
            })?;
        }
        Ok(folder.path().join(name))
    }

    /// Where [`Runtime::spirv_file`] writes. Nothing else lies there.
    ///
    /// # Errors
    /// [`Kind::Io`] without a cache folder, and when it cannot be created.
    pub fn synthesis_dir(&self) -> Result<PathBuf> {
        Ok(self.cache.within(SYNTHESIS)?.path().to_owned())
    }

    /// Records one dispatch of a module and returns at once.
    ///
    /// # Errors
    /// Bad input when bindings, push constants or workgroups do not fit the module or the device, and when a binding's
    /// tensor is a view whose elements lie elsewhere than its buffer's bytes say.
    pub fn launch(&self, module: &Module, launch: &Launch<'_>) -> Result<()> {
        if let Some(index) = launch.bindings.iter().position(|b| !b.tensor.is_plain()) {
            let name = module.name();
            return Err(Error::bad_input(format!(
                "{name}: binding {index} is a view; expected a contiguous tensor at the start of its buffer"
            )));
        }
        if launch.groups.contains(&0) {
            return Ok(());
        }
        self.device.usable()?;
        self.stream.make_room()?;
        self.sweep_pipelines();
        let step = module.step(launch, &self.device, &self.pipelines)?;
        let buffers = launch.bindings.iter();
        let buffers: Vec<Bound<'_>> = buffers.map(|b| Bound::whole(&b.tensor.buffer)).collect();
        self.stream
            .record(&self.pipelines, module.name(), &[step], &buffers)
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
        let fresh = Tensor::contiguous(
            self.alloc(len, None, Patience::Waits)?,
            out.dtype(),
            out.shape(),
        );
        if len == 0 {
            return Ok(fresh);
        }
        self.stream.make_room()?;
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

    fn compile_text(&self, own: Glsl<'_>) -> Result<Arc<spirv::Module>> {
        const NAME: &str = "shader";
        let find = |name: &str| (name == NAME).then_some(own).or_else(|| plan::header(name));
        self.shaders.compile(NAME, &[], &find)
    }
}
