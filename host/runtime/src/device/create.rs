//! The logical device: made with ash, since vulkano cannot ask for extensions that it does not know, and handed to vulkano.

use super::newer::Newer;
use ash::vk;
use std::{ffi::CString, sync::Arc};
use vulkano::{
    Version, VulkanError, VulkanObject as _,
    device::{
        Device, DeviceCreateInfo, DeviceExtensions, DeviceFeatures, Queue, QueueCreateInfo,
        physical::PhysicalDevice,
    },
};

/// What a device is opened with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) extensions: DeviceExtensions,
    pub(super) features: DeviceFeatures,
    pub(super) newer: Newer,
}

/// Opens `physical` with one queue of the family.
///
/// # Errors
/// What the driver answers.
pub(super) fn create(
    physical: &Arc<PhysicalDevice>,
    family: u32,
    wanted: &Wanted,
) -> Result<(Arc<Device>, Option<Arc<Queue>>), VulkanError> {
    let (f, e) = (&wanted.features, &wanted.extensions);
    let basic = vk::PhysicalDeviceFeatures::default()
        .robust_buffer_access(f.robust_buffer_access)
        .shader_float64(f.shader_float64)
        .shader_int64(f.shader_int64)
        .shader_int16(f.shader_int16);
    let mut features = vk::PhysicalDeviceFeatures2::default().features(basic);
    let mut of_1_1 = vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(f.storage_buffer16_bit_access);
    let mut of_1_2 = vk::PhysicalDeviceVulkan12Features::default()
        .timeline_semaphore(f.timeline_semaphore)
        .shader_float16(f.shader_float16)
        .shader_int8(f.shader_int8)
        .storage_buffer8_bit_access(f.storage_buffer8_bit_access)
        .shader_buffer_int64_atomics(f.shader_buffer_int64_atomics)
        .shader_subgroup_extended_types(f.shader_subgroup_extended_types)
        .vulkan_memory_model(f.vulkan_memory_model)
        .vulkan_memory_model_device_scope(f.vulkan_memory_model_device_scope);
    let mut subgroups = vk::PhysicalDeviceSubgroupSizeControlFeatures::default()
        .subgroup_size_control(f.subgroup_size_control)
        .compute_full_subgroups(f.compute_full_subgroups);
    let mut sizes = vk::PhysicalDeviceMaintenance4Features::default().maintenance4(f.maintenance4);
    let mut robust = vk::PhysicalDevicePipelineRobustnessFeaturesEXT::default()
        .pipeline_robustness(f.pipeline_robustness);
    let mut bounded = vk::PhysicalDeviceRobustness2FeaturesEXT::default()
        .robust_buffer_access2(f.robust_buffer_access2);
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default()
        .cooperative_matrix(f.cooperative_matrix);
    let mut telling = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
        .pipeline_executable_info(f.pipeline_executable_info);
    let (mut bfloat16, mut matrix2) = wanted.newer.structs();

    let names = e.into_iter().filter(|(_, is_on)| *is_on);
    let names = names.filter_map(|(name, _)| CString::new(name).ok());
    let newer = wanted.newer.extensions().map(ToOwned::to_owned);
    let names: Vec<CString> = names.chain(newer).collect();
    let names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&[0.5])];
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .push_next(&mut features)
        .push_next(&mut of_1_1)
        .push_next(&mut of_1_2);
    // A struct of an extension may stand here only with its extension.
    if physical.api_version() >= Version::V1_3 || e.ext_subgroup_size_control {
        info = info.push_next(&mut subgroups);
    }
    if f.maintenance4 {
        info = info.push_next(&mut sizes);
    }
    if e.ext_pipeline_robustness {
        info = info.push_next(&mut robust);
    }
    if e.ext_robustness2 {
        info = info.push_next(&mut bounded);
    }
    if e.khr_cooperative_matrix {
        info = info.push_next(&mut matrices);
    }
    if e.khr_pipeline_executable_properties {
        info = info.push_next(&mut telling);
    }
    if wanted.newer.bf16 {
        info = info.push_next(&mut bfloat16);
    }
    if wanted.newer.has_matrix2() {
        info = info.push_next(&mut matrix2);
    }

    let create = physical.instance().fns().v1_0.create_device;
    let mut handle = vk::Device::null();
    // SAFETY: every extension and feature is one that the physical device reports, and what `info` points to outlives the
    // call.
    let code = unsafe { create(physical.handle(), &info, std::ptr::null(), &mut handle) };
    if code != vk::Result::SUCCESS {
        return Err(code.into());
    }
    let told = DeviceCreateInfo {
        queue_create_infos: vec![QueueCreateInfo {
            queue_family_index: family,
            ..Default::default()
        }],
        enabled_extensions: wanted.extensions,
        enabled_features: wanted.features,
        ..Default::default()
    };
    // SAFETY: the handle was made just now from `physical`, with this queue; what vulkano is told of extensions and
    // features was enabled.
    let (device, mut queues) = unsafe { Device::from_handle(physical.clone(), handle, told) };
    Ok((device, queues.next()))
}
