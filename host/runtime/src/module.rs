//! Compute modules of the caller's own, from a SPIR-V file or from GLSL, run over buffers without a pack. What they
//! compute is theirs to answer for; that they fit the device and their buffers is checked here.

use crate::{
    Error, Kind, Result, Tensor,
    device::Device,
    memory,
    pipeline::{Pipeline, Pipelines, spec::PipelineSpec},
    queue::{Label, Step, StepArg},
    spirv,
};
use nx_vulkan_abi::plan::MAX_BINDINGS;
use nx_vulkan_registry::{Origin, private};
use parking_lot::Mutex;
use std::{
    any::Any,
    path::Path,
    sync::{Arc, OnceLock},
};

/// Pipelines that a module holds. Specialization constants may be anything.
const MOST_SIGNATURES: usize = 64;
/// Largest file that is read as a module.
const MAX_BYTES: u64 = 64 << 20;

/// A module that was checked against a device.
#[derive(Debug)]
pub struct Module {
    name: Arc<str>,
    label: Arc<Label>,
    facts: Arc<spirv::Module>,
    device: Arc<Device>,
    /// By number of bindings, bytes of push constants, and specialization constants.
    pipelines: Mutex<Vec<(Signature, Arc<Pipeline>)>>,
    /// What somebody who runs it knows of it.
    note: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// What [`Binding::offset`] is a multiple of.
pub const ALIGN: u64 = memory::ALIGN;

type Signature = (u32, u32, Vec<(u32, u32)>);

/// A range of a tensor's buffer that a module sees as one binding.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// Whose buffer.
    pub tensor: &'a Tensor,
    /// First byte, a multiple of 256.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Whether the module may write there. One that writes to another binding is not launched.
    pub writes: bool,
}

impl<'a> Binding<'a> {
    /// The whole buffer of `tensor`, to be read.
    pub fn read(tensor: &'a Tensor) -> Binding<'a> {
        Binding {
            tensor,
            offset: 0,
            len: tensor.byte_len(),
            writes: false,
        }
    }

    /// The whole buffer of `tensor`, to be read and written.
    pub fn write(tensor: &'a Tensor) -> Binding<'a> {
        Binding {
            writes: true,
            ..Binding::read(tensor)
        }
    }
}

/// One dispatch of a module.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Set 0, binding 0 and up.
    pub bindings: &'a [Binding<'a>],
    /// `(constant id, value)`; those the module does not declare are left out.
    pub constants: &'a [(u32, u32)],
    /// Push constants.
    pub push: &'a [u8],
    /// Workgroups along x, y and z; none where one of them is 0.
    pub groups: [u32; 3],
}

impl Module {
    /// Reads a SPIR-V file, in the byte order of either kind of machine.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read, [`Kind::Shader`] when it is no compute module or needs what the device lacks.
    pub(crate) fn open(path: &Path, device: &Arc<Device>) -> Result<Module> {
        let name = path.display().to_string();
        let unread = |why: String| Error::new(Kind::Io, format!("read spv: {name}: {why}"));
        let opened = private::open_file(path, true).map(|opened| opened.file);
        let bytes = opened.and_then(|file| private::content(&file, MAX_BYTES));
        let bytes = bytes.map_err(|e| unread(e.to_string()))?;
        let (chunks, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(refused(
                &name,
                format_args!("its {} bytes are not whole words", bytes.len()),
            ));
        }
        let mut words: Vec<u32> = chunks.iter().map(|c| u32::from_le_bytes(*c)).collect();
        if words.first() == Some(&0x0302_2307) {
            words.iter_mut().for_each(|word| *word = word.swap_bytes());
        }
        let facts = spirv::Module::admit(words.into(), Origin::Stranger)
            .map_err(|why| refused(&name, why))?;
        Module::new(name, Arc::new(facts), device)
    }

    pub(crate) fn new(
        name: String,
        facts: Arc<spirv::Module>,
        device: &Arc<Device>,
    ) -> Result<Module> {
        let features = device.info().features;
        if !features.has(facts.needs) {
            let missing = spirv::missing(facts.needs, features);
            let device = &device.summary().name;
            return Err(refused(
                &name,
                format_args!(
                    "it needs SPIR-V capability {missing}, which the device {device} lacks"
                ),
            ));
        }
        if !facts.is_for(device.info().api) {
            return Err(refused(
                &name,
                "it is for Vulkan 1.3, and the device has an older one",
            ));
        }
        Ok(Module {
            label: Label::new(&"module".into(), &name),
            name: name.into(),
            facts,
            device: device.clone(),
            pipelines: Mutex::default(),
            note: OnceLock::new(),
        })
    }

    /// What somebody who runs the module keeps with it; `None` where somebody else keeps another type there.
    pub fn note<T: Default + Any + Send + Sync>(&self) -> Option<&T> {
        let note = self.note.get_or_init(|| Box::new(T::default()));
        note.downcast_ref()
    }

    /// The dispatch, with every number in bounds, and the buffers its arguments mean.
    pub(crate) fn step(
        &self,
        launch: &Launch<'_>,
        device: &Arc<Device>,
        pipelines: &Pipelines,
    ) -> Result<Step> {
        let refuse = |why: String| Err(Error::bad_input(format!("{}: {why}", self.name)));
        if !Arc::ptr_eq(&self.device, device) {
            return refuse("it was made for another device".to_owned());
        }
        let limits = device.info();
        let count = launch.bindings.len();
        if count > MAX_BINDINGS {
            return refuse(format!("{count} buffers, and the limit is {MAX_BINDINGS}"));
        }
        let used = self.facts.bindings.last().map_or(0, |&b| b as usize + 1);
        if used > count {
            return refuse(format!(
                "it uses bindings {:?}, and {count} buffers are given",
                self.facts.bindings
            ));
        }
        let push = launch.push.len() as u32;
        if !push.is_multiple_of(4)
            || push > limits.push_bytes
            || u64::from(push) < self.facts.push_bytes
        {
            return refuse(format!(
                "{push} bytes of push constants; it reads {}, and the device takes multiples of 4 up to {}",
                self.facts.push_bytes, limits.push_bytes
            ));
        }
        let mut constants: Vec<_> = launch.constants.to_vec();
        constants.retain(|(id, _)| self.facts.spec_ids.contains(id));
        constants.sort_unstable();
        let special = match self.facts.specialize(&constants) {
            Ok(special) => special,
            Err(why) => return refuse(why),
        };
        let Some(size) = special.local_size else {
            return refuse("it has no workgroup size".to_owned());
        };
        if special.shared_bytes > limits.shared_bytes.into() {
            return refuse(format!(
                "{} bytes of shared memory, and the device has {}",
                special.shared_bytes, limits.shared_bytes
            ));
        }
        let invocations = size.iter().try_fold(1u32, |n, &e| n.checked_mul(e));
        let fits = invocations.is_some_and(|n| n > 0 && n <= limits.max_invocations);
        let within =
            |got: &[u32; 3], most: [u32; 3]| got.iter().zip(most).all(|(&n, max)| n <= max);
        if !fits || !within(&size, limits.max_workgroup_size) {
            return refuse(format!(
                "a workgroup of {size:?}, and the device allows {:?} with {} invocations",
                limits.max_workgroup_size, limits.max_invocations
            ));
        }
        if !within(&launch.groups, limits.max_groups) {
            return refuse(format!(
                "{:?} workgroups, and the device allows {:?}",
                launch.groups, limits.max_groups
            ));
        }
        let mut args = Vec::with_capacity(count);
        for (index, binding) in launch.bindings.iter().enumerate() {
            let size = binding.tensor.buffer.len();
            let end = binding.offset.checked_add(binding.len);
            if binding.len == 0
                || end.is_none_or(|end| end > size)
                || !binding.offset.is_multiple_of(limits.buffer_align)
                || binding.len > limits.max_buffer_range
            {
                return refuse(format!(
                    "binding {index} covers bytes {}+{} of a buffer of {size} (offsets are multiples of {}, \
                     and one binding covers 1 to {} bytes)",
                    binding.offset, binding.len, limits.buffer_align, limits.max_buffer_range
                ));
            }
            if self.facts.written.contains(&(index as u32)) {
                if !binding.writes {
                    return refuse(format!(
                        "it writes to binding {index}, which is given to be read only"
                    ));
                }
                if binding.tensor.buffer.is_shared() {
                    return refuse(format!(
                        "binding {index} is a literal, which others may read too"
                    ));
                }
            }
            args.push(StepArg {
                buffer: index,
                offset: binding.offset,
                len: binding.len,
                reads: true,
                writes: binding.writes,
            });
        }
        Ok(Step {
            pipeline: self.pipeline((count as u32, push, constants), pipelines)?,
            groups: launch.groups,
            counts: None,
            args,
            push: launch.push.to_vec(),
            barrier: false,
            reports: false,
            label: self.label.clone(),
        })
    }

    fn pipeline(&self, signature: Signature, pipelines: &Pipelines) -> Result<Arc<Pipeline>> {
        let lock = || self.pipelines.lock();
        if let Some((_, known)) = lock().iter().find(|(known, _)| *known == signature) {
            return Ok(known.clone());
        }
        let (bindings, push_bytes, constants) = &signature;
        let pipeline = pipelines
            .get(&PipelineSpec {
                module: &self.facts,
                bindings: *bindings,
                push_bytes: *push_bytes,
                subgroup_size: 0,
                constants,
            })
            .map_err(|e| e.context(&self.name))?;
        let mut known = lock();
        if known.len() >= MOST_SIGNATURES {
            known.remove(0);
        }
        known.push((signature, pipeline.clone()));
        Ok(pipeline)
    }

    /// Its file, or the start of its text's sha256.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The SPIR-V.
    pub fn words(&self) -> &[u32] {
        self.facts.words()
    }
}

fn refused(name: &str, why: impl std::fmt::Display) -> Error {
    Error::new(
        Kind::Shader,
        format!("{name}: not a usable SPIR-V module: {why}"),
    )
}
