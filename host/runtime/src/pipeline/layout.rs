//! Layouts of pipelines: made from numbers of bindings and push bytes, and destroyed.

use crate::{Error, Kind, Result, device::Device};
use ash::vk;

/// How the arguments of a dispatch are handed over. Pipelines of equal numbers of bindings and push bytes share one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    set: vk::DescriptorSetLayout,
    pub(super) pipeline: vk::PipelineLayout,
    /// Takes the bindings as an array of `VkDescriptorBufferInfo`; null where there are none.
    pub(super) template: vk::DescriptorUpdateTemplate,
}

impl Layout {
    /// For so many bindings and push bytes.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] when that are more bindings than the device allows.
    pub(super) fn new(device: &Device, bindings: u32, push_bytes: u32) -> Result<Layout> {
        let limits = device.vk.physical_device().properties();
        let most = limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers);
        if bindings > most {
            let beyond = format!("a shader has {bindings} buffers, and the device allows {most}");
            return Err(Error::new(Kind::Unsupported, beyond));
        }
        let _inside = device.enter()?;
        let fns = device.vk.fns();
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
                device.handle(),
                &set_info,
                std::ptr::null(),
                &mut set,
            );
            device.check("vkCreateDescriptorSetLayout", code)?;
            let sets = [set];
            let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            if push_bytes > 0 {
                info = info.push_constant_ranges(&ranges);
            }
            let code = (fns.v1_0.create_pipeline_layout)(
                device.handle(),
                &info,
                std::ptr::null(),
                &mut layout,
            );
            device.check("vkCreatePipelineLayout", code)?;
            if bindings > 0 {
                let info = vk::DescriptorUpdateTemplateCreateInfo::default()
                    .descriptor_update_entries(&entries)
                    .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
                    .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
                    .pipeline_layout(layout);
                let code = (fns.v1_1.create_descriptor_update_template)(
                    device.handle(),
                    &info,
                    std::ptr::null(),
                    &mut template,
                );
                device.check("vkCreateDescriptorUpdateTemplate", code)?;
            }
        }
        Ok(Layout {
            set,
            pipeline: layout,
            template,
        })
    }

    /// Destroys the handles.
    ///
    /// # Safety
    /// Nothing uses it any more, and the device is entered.
    pub(super) unsafe fn destroy(self, device: &Device) {
        let (fns, handle) = (device.vk.fns(), device.handle());
        // SAFETY: the handles are this device's, and the caller says that they are free.
        unsafe {
            (fns.v1_1.destroy_descriptor_update_template)(handle, self.template, std::ptr::null());
            (fns.v1_0.destroy_pipeline_layout)(handle, self.pipeline, std::ptr::null());
            (fns.v1_0.destroy_descriptor_set_layout)(handle, self.set, std::ptr::null());
        }
    }
}
