//! A pipeline, built by the driver's compiler on a thread of its own. That may take long, wait for whatever the device
//! runs just now, or hang; who asked stops waiting for it when the device is lost or the process ends.

use super::{layout::Layout, spec::PipelineSpec};
use crate::{Error, Kind, Result, device::Device, driver_cache::DriverCache, exit};
use ash::vk;
use std::{
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread::Builder,
    time::Duration,
};

/// How often whoever waits looks around.
const LOOK: Duration = Duration::from_millis(50);

/// A compute pipeline and its layout.
#[derive(Debug)]
pub(crate) struct Pipeline {
    device: Arc<Device>,
    pipeline: vk::Pipeline,
    layout: Layout,
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
        let Some(_inside) = self.device.enter_to_destroy() else {
            return;
        };
        // SAFETY: `Pipelines` keeps every pipeline until the commands that use it are done.
        unsafe {
            (self.device.vk.fns().v1_0.destroy_pipeline)(
                self.device.handle(),
                self.pipeline,
                std::ptr::null(),
            );
        }
    }
}

/// Makes a pipeline, on a stack of that size, and to be asked about if `telling`.
///
/// # Errors
/// [`Kind::Shader`] when the driver refuses the module; [`Kind::DeviceLost`].
pub(super) fn build(
    device: &Arc<Device>,
    cache: &Arc<DriverCache>,
    spec: &PipelineSpec<'_>,
    layout: Layout,
    (stack, telling): (usize, bool),
) -> Result<Pipeline> {
    let (sender, receiver) = sync_channel(1);
    let (device_there, cache) = (device.clone(), cache.clone());
    let (module, constants) = (spec.module.clone(), spec.constants.to_vec());
    let (bindings, push_bytes, subgroup_size) =
        (spec.bindings, spec.push_bytes, spec.subgroup_size);
    let build = move || {
        let spec = PipelineSpec {
            module: &module,
            bindings,
            push_bytes,
            subgroup_size,
            constants: &constants,
        };
        // Nobody takes it where whoever asked has given up; the device is lost then.
        drop(sender.send(create(&device_there, &cache, &spec, layout, telling)));
    };
    let thread = Builder::new()
        .name("nx_vulkan-build".to_owned())
        .stack_size(stack);
    exit::spawn(thread, build).map_err(|e| {
        Error::new(
            Kind::Io,
            format!("the driver's compiler got no thread: {e}"),
        )
        .passing(true)
    })?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => device.usable()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(
                    Kind::Shader,
                    format!(
                        "the driver of {} failed on the shader",
                        device.summary().name
                    ),
                ));
            }
        }
    }
}

fn create(
    device: &Arc<Device>,
    cache: &DriverCache,
    spec: &PipelineSpec<'_>,
    layout: Layout,
    telling: bool,
) -> Result<Pipeline> {
    let _inside = device.enter()?;
    let fns = device.vk.fns();
    let module_info = vk::ShaderModuleCreateInfo::default().code(spec.module.words());
    let mut module = vk::ShaderModule::null();
    // SAFETY: the module was admitted; a driver may still reject it, which is an error code.
    let code = unsafe {
        (fns.v1_0.create_shader_module)(
            device.handle(),
            &module_info,
            std::ptr::null(),
            &mut module,
        )
    };
    device.check("vkCreateShaderModule", code)?;
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
        stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
    }
    // lavapipe allows 32 of them, with lanes for vectors of 128 bits fewer invocations than a workgroup may have.
    let info = device.info();
    if spec.subgroup_size != 0 && info.min_subgroup_size != info.max_subgroup_size {
        stage = stage.push_next(&mut size);
    }
    // The first keeps accesses in the memory that buffers share, the second in the binding.
    let behavior = match spec.module.origin().is_bounded() {
        true if device.bounds_bindings() => {
            vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2
        }
        _ => vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS,
    };
    let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default().storage_buffers(behavior);
    let mut info = vk::ComputePipelineCreateInfo::default()
        .stage(stage)
        .layout(layout.pipeline);
    if telling {
        info = info.flags(vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR);
    }
    if device.robust_pipelines() {
        info = info.push_next(&mut robustness);
    }
    let mut pipeline = vk::Pipeline::null();
    // SAFETY: the info and all it points to outlive the call; the module is not needed afterwards.
    let made = unsafe {
        let made = cache.with(|cache| {
            (fns.v1_0.create_compute_pipelines)(
                device.handle(),
                cache,
                1,
                &info,
                std::ptr::null(),
                &mut pipeline,
            )
        });
        (fns.v1_0.destroy_shader_module)(device.handle(), module, std::ptr::null());
        made
    };
    match made? {
        vk::Result::SUCCESS => Ok(Pipeline {
            device: device.clone(),
            pipeline,
            layout,
        }),
        code @ vk::Result::ERROR_DEVICE_LOST => {
            Err(device.failed("vkCreateComputePipelines", code))
        }
        // Of the host's or the device's memory: other kernels may need less, and later there may be more.
        code @ (vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY) => {
            let failed = format!("vkCreateComputePipelines: {code:?}");
            Err(Error::new(Kind::Vulkan, failed).passing(true))
        }
        code => Err(Error::new(
            Kind::Shader,
            format!(
                "the driver of {} refuses the shader: {code:?}",
                device.summary().name
            ),
        )),
    }
}
