//! Compute pipelines: made raw, kept by content.

use crate::{Error, Kind, Result, device::Device, driver_cache::DriverCache};
use ash::vk;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A compute pipeline and its layout.
#[derive(Debug)]
pub(crate) struct Pipeline {
    device: Arc<Device>,
    pipeline: vk::Pipeline,
    layout: Layout,
}

/// How the arguments of a dispatch are handed over. Pipelines of equal numbers of bindings and push bytes share one.
#[derive(Debug, Clone, Copy)]
struct Layout {
    set: vk::DescriptorSetLayout,
    pipeline: vk::PipelineLayout,
    /// Takes the bindings as an array of `VkDescriptorBufferInfo`; null where there are none.
    template: vk::DescriptorUpdateTemplate,
}

/// What makes a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelineSpec<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) bindings: u32,
    pub(crate) push_bytes: u32,
    pub(crate) subgroup_size: u32,
    /// `(constant id, value)`, sorted by id.
    pub(crate) constants: &'a [(u32, u32)],
}

/// Every pipeline of a device.
#[derive(Debug)]
pub(crate) struct Pipelines {
    device: Arc<Device>,
    cache: Arc<DriverCache>,
    push_descriptors: vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// With the generation of the table that used it last.
    pipelines: HashMap<[u8; 32], (Arc<Pipeline>, u64)>,
    generation: u64,
    /// Pipelines that nobody can use any more, with the number of the last command that may still do.
    unused: Vec<(u64, Arc<Pipeline>)>,
    layouts: HashMap<(u32, u32), Layout>,
}

impl State {
    fn find(&mut self, key: &[u8; 32]) -> Option<Arc<Pipeline>> {
        let generation = self.generation;
        let (pipeline, used) = self.pipelines.get_mut(key)?;
        *used = generation;
        Some(pipeline.clone())
    }
}

/// Tables after which a pipeline is dropped that none of them used.
const KEPT_GENERATIONS: u64 = 3;

impl Pipelines {
    /// With a folder for the driver's cache, or without one. A damaged or foreign cache file counts as absent.
    pub(crate) fn new(device: &Arc<Device>, dir: Option<PathBuf>) -> Result<Pipelines> {
        Ok(Pipelines {
            device: device.clone(),
            cache: Arc::new(DriverCache::open(device, dir)?),
            push_descriptors: device
                .vk
                .fns()
                .khr_push_descriptor
                .cmd_push_descriptor_set_with_template_khr,
            state: Mutex::default(),
        })
    }

    pub(crate) fn push_descriptors(&self) -> vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR {
        self.push_descriptors
    }

    /// The pipeline for `spec`, made on first use.
    ///
    /// # Errors
    /// [`Kind::Shader`] when the driver refuses the module.
    pub(crate) fn get(&self, spec: &PipelineSpec<'_>) -> Result<Arc<Pipeline>> {
        let key = spec.key();
        if let Some(found) = self.lock().find(&key) {
            return Ok(found);
        }
        let layout = self.layout(spec.bindings, spec.push_bytes)?;
        let made = Arc::new(self.create(spec, layout)?);
        self.cache.grew();
        let mut state = self.lock();
        let generation = state.generation;
        let (pipeline, _) = state.pipelines.entry(key).or_insert((made, generation));
        Ok(pipeline.clone())
    }

    /// Drops the pipelines that the last tables did not use. `recorded` gives the number of the last command that was
    /// recorded; `completed` is that of the last one that is done.
    pub(crate) fn forget_unused(
        &self,
        generation: u64,
        recorded: impl FnOnce() -> u64,
        completed: u64,
    ) {
        let mut state = self.lock();
        state.generation = generation;
        let unused = state.pipelines.extract_if(|_, (pipeline, used)| {
            *used + KEPT_GENERATIONS < generation && Arc::strong_count(pipeline) == 1
        });
        let unused: Vec<_> = unused.map(|(_, (pipeline, _))| pipeline).collect();
        // Whoever had one has recorded its commands by now.
        let recorded = recorded();
        let unused = unused.into_iter().map(|pipeline| (recorded, pipeline));
        let unused: Vec<_> = unused.collect();
        state.unused.retain(|(last, _)| *last > completed);
        state.unused.extend(unused);
    }

    /// The driver's cache.
    pub(crate) fn cache(&self) -> &Arc<DriverCache> {
        &self.cache
    }

    fn layout(&self, bindings: u32, push_bytes: u32) -> Result<Layout> {
        let mut state = self.lock();
        if let Some(found) = state.layouts.get(&(bindings, push_bytes)) {
            return Ok(*found);
        }
        let fns = self.device.vk.fns();
        let slots: Vec<_> = (0..bindings)
            .map(|binding| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let set_info = vk::DescriptorSetLayoutCreateInfo::default()
            .flags(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR)
            .bindings(&slots);
        let mut set = vk::DescriptorSetLayout::null();
        let ranges = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(push_bytes)];
        let mut layout = vk::PipelineLayout::null();
        let size = size_of::<vk::DescriptorBufferInfo>();
        let entries: Vec<_> = (0..bindings)
            .map(|binding| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(binding)
                    .descriptor_count(1)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .offset(binding as usize * size)
                    .stride(size)
            })
            .collect();
        let mut template = vk::DescriptorUpdateTemplate::null();
        // SAFETY: the infos outlive the calls.
        unsafe {
            let code = (fns.v1_0.create_descriptor_set_layout)(
                self.device.handle(),
                &set_info,
                std::ptr::null(),
                &mut set,
            );
            self.device.check("vkCreateDescriptorSetLayout", code)?;
            let sets = [set];
            let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            if push_bytes > 0 {
                info = info.push_constant_ranges(&ranges);
            }
            let code = (fns.v1_0.create_pipeline_layout)(
                self.device.handle(),
                &info,
                std::ptr::null(),
                &mut layout,
            );
            self.device.check("vkCreatePipelineLayout", code)?;
            if bindings > 0 {
                let info = vk::DescriptorUpdateTemplateCreateInfo::default()
                    .descriptor_update_entries(&entries)
                    .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
                    .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
                    .pipeline_layout(layout);
                let code = (fns.v1_1.create_descriptor_update_template)(
                    self.device.handle(),
                    &info,
                    std::ptr::null(),
                    &mut template,
                );
                self.device
                    .check("vkCreateDescriptorUpdateTemplate", code)?;
            }
        }
        let layout = Layout {
            set,
            pipeline: layout,
            template,
        };
        state.layouts.insert((bindings, push_bytes), layout);
        Ok(layout)
    }

    fn create(&self, spec: &PipelineSpec<'_>, layout: Layout) -> Result<Pipeline> {
        let fns = self.device.vk.fns();
        let module_info = vk::ShaderModuleCreateInfo::default().code(spec.words);
        let mut module = vk::ShaderModule::null();
        // SAFETY: the module was parsed; a driver may still reject it, which is an error code.
        let code = unsafe {
            (fns.v1_0.create_shader_module)(
                self.device.handle(),
                &module_info,
                std::ptr::null(),
                &mut module,
            )
        };
        self.device.check("vkCreateShaderModule", code)?;
        let entries: Vec<_> = (0..)
            .zip(spec.constants)
            .map(|(i, (id, _))| {
                vk::SpecializationMapEntry::default()
                    .constant_id(*id)
                    .offset(i * 4)
                    .size(4)
            })
            .collect();
        let values: Vec<u8> = spec
            .constants
            .iter()
            .flat_map(|(_, v)| v.to_ne_bytes())
            .collect();
        let specialization = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&values);
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(spec.subgroup_size);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main")
            .specialization_info(&specialization);
        if spec.subgroup_size != 0 {
            stage = stage
                .flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS)
                .push_next(&mut size);
        }
        let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default()
            .storage_buffers(vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS);
        let mut info = vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(layout.pipeline);
        if self.device.robust_pipelines() {
            info = info.push_next(&mut robustness);
        }
        let mut pipeline = vk::Pipeline::null();
        // SAFETY: the info and all it points to outlive the call; the module is not needed afterwards.
        let code = unsafe {
            let code = self.cache.with(|cache| {
                (fns.v1_0.create_compute_pipelines)(
                    self.device.handle(),
                    cache,
                    1,
                    &info,
                    std::ptr::null(),
                    &mut pipeline,
                )
            });
            (fns.v1_0.destroy_shader_module)(self.device.handle(), module, std::ptr::null());
            code
        };
        match code {
            vk::Result::SUCCESS => Ok(Pipeline {
                device: self.device.clone(),
                pipeline,
                layout,
            }),
            vk::Result::ERROR_DEVICE_LOST => {
                Err(self.device.failed("vkCreateComputePipelines", code))
            }
            code => Err(Error::new(
                Kind::Shader,
                format!(
                    "the driver of {} refuses the shader: {code:?}",
                    self.device.summary().name
                ),
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipelineSpec<'_> {
    fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for value in [self.bindings, self.push_bytes, self.subgroup_size] {
            hash.update(value.to_le_bytes());
        }
        for (id, value) in self.constants {
            hash.update(id.to_le_bytes());
            hash.update(value.to_le_bytes());
        }
        hash.update((self.constants.len() as u64).to_le_bytes());
        for word in self.words {
            hash.update(word.to_le_bytes());
        }
        hash.finalize().into()
    }
}

impl Pipeline {
    pub(crate) fn handle(&self) -> vk::Pipeline {
        self.pipeline
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.layout.pipeline
    }

    pub(crate) fn template(&self) -> vk::DescriptorUpdateTemplate {
        self.layout.template
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // SAFETY: `Pipelines` keeps every pipeline until the queue has stopped.
        unsafe {
            (self.device.vk.fns().v1_0.destroy_pipeline)(
                self.device.handle(),
                self.pipeline,
                std::ptr::null(),
            );
        }
    }
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        let fns = self.device.vk.fns();
        let layouts: Vec<_> = self.lock().layouts.drain().map(|(_, all)| all).collect();
        let device = self.device.handle();
        // SAFETY: the handles are ours; layouts may go before the pipelines made with them.
        unsafe {
            for layout in layouts {
                (fns.v1_1.destroy_descriptor_update_template)(
                    device,
                    layout.template,
                    std::ptr::null(),
                );
                (fns.v1_0.destroy_pipeline_layout)(device, layout.pipeline, std::ptr::null());
                (fns.v1_0.destroy_descriptor_set_layout)(device, layout.set, std::ptr::null());
            }
        }
    }
}
