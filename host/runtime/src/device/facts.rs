//! What a device can do, and what of it is enabled.

use super::{
    create::Wanted,
    matrices,
    newer::{Newer, matrix2_limits},
};
use nx_vulkan_abi::{Attr, AttrKind, DeviceInfo, DeviceKind, Features, Matrix, RSlice, RStr};
use parking_lot::Mutex;
use vulkano::{
    Version,
    device::{
        DeviceExtensions, DeviceFeatures, DeviceProperties,
        physical::{PhysicalDevice, PhysicalDeviceType, SubgroupFeatures},
    },
    shader::ShaderStages,
};

/// What is known of an open device.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Without its name.
    info: DeviceInfo<'static>,
    pub(super) robust_pipelines: bool,
    pub(super) bounds_bindings: bool,
    /// Whether it takes shaders for Vulkan 1.3, whose workgroup sizes may be ids.
    pub(super) newer_target: bool,
    pub(super) tells_of_pipelines: bool,
}

impl Facts {
    pub(super) fn new(device: &PhysicalDevice, wanted: &Wanted) -> Facts {
        let (p, enabled) = (device.properties(), &wanted.features);
        let features = features(enabled, p, &wanted.extensions).with(wanted.newer.features());
        let controlled = |size: Option<u32>| {
            size.filter(|_| features.has(Features::SUBGROUP_SIZE_CONTROL))
                .unwrap_or(0)
        };
        let info = DeviceInfo {
            vendor: p.vendor_id,
            device: p.device_id,
            driver: p.driver_version,
            api: p.api_version.try_into().unwrap_or_default(),
            kind: DeviceKind(kind(device).1),
            subgroup_size: p.subgroup_size.unwrap_or(1),
            min_subgroup_size: controlled(p.min_subgroup_size),
            max_subgroup_size: controlled(p.max_subgroup_size),
            shared_bytes: p.max_compute_shared_memory_size,
            push_bytes: p.max_push_constants_size,
            max_invocations: p.max_compute_work_group_invocations,
            compute_units: units(p),
            max_workgroup_size: p.max_compute_work_group_size,
            max_groups: p.max_compute_work_group_count,
            max_buffer_range: p.max_storage_buffer_range.into(),
            buffer_align: p.min_storage_buffer_offset_alignment.as_devicesize(),
            features,
            facts: RSlice::from_slice(kept(further(device, features))),
            ..DeviceInfo::default()
        };
        Facts {
            info,
            robust_pipelines: enabled.pipeline_robustness,
            bounds_bindings: enabled.robust_buffer_access2,
            newer_target: enabled.maintenance4,
            tells_of_pipelines: enabled.pipeline_executable_info,
        }
    }

    /// As packs see them, with the name of the device.
    pub(super) fn info<'a>(&self, name: &'a str) -> DeviceInfo<'a> {
        DeviceInfo {
            name: name.into(),
            ..self.info
        }
    }
}

/// Streaming multiprocessors, compute units or shader cores, whichever of them the driver counts.
fn units(p: &DeviceProperties) -> u32 {
    let product = || {
        let engines = p
            .shader_engine_count?
            .checked_mul(p.shader_arrays_per_engine_count?)?;
        engines.checked_mul(p.compute_units_per_shader_array?)
    };
    let counted = p.shader_sm_count.or(p.active_compute_unit_count);
    counted
        .or_else(product)
        .or(p.shader_core_count)
        .unwrap_or(0)
}

/// Bytes of the largest buffer that there can be.
pub(crate) fn max_allocation(p: &DeviceProperties) -> u64 {
    let buffer = p.max_buffer_size.unwrap_or(u64::MAX);
    p.max_memory_allocation_size.unwrap_or(1 << 30).min(buffer)
}

/// What came after ABI 1.0, sorted by name; what the driver does not say is left out.
fn further(device: &PhysicalDevice, features: Features) -> Vec<(&'static str, Vec<i64>)> {
    let p = device.properties();
    let ints = |list: Vec<Matrix>| list.into_iter().flat_map(Matrix::to_ints).collect();
    let one = |value: Option<u32>| value.map(i64::from).into_iter().collect();
    let waves = || p.simd_per_compute_unit?.checked_mul(p.wavefronts_per_simd?);
    let [invocations, extent, reserved] = match features.has(Features::COOPMAT2) {
        true => matrix2_limits(device).map(|limit| vec![i64::from(limit)]),
        false => Default::default(),
    };
    let driver = p.driver_id.map(|id| ash::vk::DriverId::from(id).as_raw());
    let mut facts = vec![
        ("driver_id", driver.map(i64::from).into_iter().collect()),
        (
            Matrix::FLEXIBLE_FACT,
            ints(matrices::flexible(device, features)),
        ),
        ("flexible_matrix_extent", extent),
        ("flexible_matrix_invocations", invocations),
        ("flexible_matrix_shared_bytes", reserved),
        (Matrix::FACT, ints(matrices::listed(device, features))),
        (
            "max_allocation",
            vec![max_allocation(p).try_into().unwrap_or(i64::MAX)],
        ),
        ("max_subgroups", one(p.max_compute_workgroup_subgroups)),
        ("memory_bytes", vec![super::local_memory(device) as i64]),
        (
            "subgroups_per_unit",
            one(p.shader_warps_per_sm.or_else(waves)),
        ),
    ];
    facts.retain(|fact| !fact.1.is_empty());
    facts
}

/// The facts as packs read them. They stay: a process opens few different devices, each many times.
fn kept(facts: Vec<(&'static str, Vec<i64>)>) -> &'static [Attr<'static>] {
    static KEPT: Mutex<Vec<&'static [Attr<'static>]>> = Mutex::new(Vec::new());
    let mut all = KEPT.lock();
    let is_same = |known: &&&[Attr<'_>]| {
        let known = known
            .iter()
            .map(|fact| (fact.name.as_str(), fact.ints.as_slice()));
        known.eq(facts.iter().map(|fact| (fact.0, fact.1.as_slice())))
    };
    if let Some(known) = all.iter().find(is_same) {
        return known;
    }
    let attrs = facts.into_iter().map(|(name, ints)| Attr {
        name: RStr::from_str(name),
        kind: AttrKind::INTS,
        spare: 0,
        ints: RSlice::from_slice(ints.leak()),
        floats: RSlice::EMPTY,
        text: RStr::from_str(""),
    });
    let attrs: &'static [Attr<'static>] = attrs.collect::<Vec<_>>().leak();
    all.push(attrs);
    attrs
}

/// `(name, VkPhysicalDeviceType, order of preference)`.
pub(super) fn kind(device: &PhysicalDevice) -> (&'static str, u32, u32) {
    match device.properties().device_type {
        PhysicalDeviceType::DiscreteGpu => ("discrete", 2, 0),
        PhysicalDeviceType::IntegratedGpu => ("integrated", 1, 1),
        PhysicalDeviceType::VirtualGpu => ("virtual", 3, 2),
        PhysicalDeviceType::Cpu => ("cpu", 4, 3),
        _ => ("other", 0, 4),
    }
}

/// Extensions and features to enable: what nx_vulkan needs, and of what packs can use all the device has.
/// Layers of validation of that version are not asked about what they do not know.
pub(super) fn wanted(device: &PhysicalDevice, layers: Version) -> Wanted {
    let (s, e) = (device.supported_features(), device.supported_extensions());
    let robust = e.ext_pipeline_robustness && s.pipeline_robustness;
    let bounded = robust && e.ext_robustness2 && s.robust_buffer_access2;
    let coopmat = e.khr_cooperative_matrix && s.cooperative_matrix && s.vulkan_memory_model;
    let p = device.properties();
    let sized = s.subgroup_size_control
        && s.compute_full_subgroups
        && has_size(
            p.required_subgroup_size_stages,
            [p.min_subgroup_size, p.max_subgroup_size],
        );
    let telling = e.khr_pipeline_executable_properties && s.pipeline_executable_info;
    let newer = Newer::supported(device, layers);
    let extensions = DeviceExtensions {
        khr_push_descriptor: true,
        ext_pipeline_robustness: robust,
        ext_robustness2: bounded,
        khr_cooperative_matrix: coopmat,
        khr_pipeline_executable_properties: telling,
        khr_portability_subset: e.khr_portability_subset,
        ext_memory_budget: e.ext_memory_budget,
        ext_subgroup_size_control: sized && device.api_version() < Version::V1_3,
        ..DeviceExtensions::empty()
    };
    let features = DeviceFeatures {
        timeline_semaphore: true,
        pipeline_robustness: robust,
        robust_buffer_access: (bounded || !robust) && s.robust_buffer_access,
        robust_buffer_access2: bounded,
        cooperative_matrix: coopmat,
        pipeline_executable_info: telling,
        shader_float64: s.shader_float64,
        shader_int64: s.shader_int64,
        shader_int16: s.shader_int16,
        shader_int8: s.shader_int8,
        shader_float16: s.shader_float16,
        storage_buffer8_bit_access: s.storage_buffer8_bit_access,
        storage_buffer16_bit_access: s.storage_buffer16_bit_access,
        shader_buffer_int64_atomics: s.shader_buffer_int64_atomics,
        shader_subgroup_extended_types: s.shader_subgroup_extended_types,
        vulkan_memory_model: s.vulkan_memory_model,
        vulkan_memory_model_device_scope: s.vulkan_memory_model_device_scope,
        maintenance4: s.maintenance4 && device.api_version() >= Version::V1_3,
        subgroup_size_control: sized,
        compute_full_subgroups: sized,
        ..DeviceFeatures::empty()
    };
    Wanted {
        extensions,
        features,
        newer,
    }
}

/// Whether a shader can have subgroups of a size that is known. Where there is one size only nothing chooses it: drivers name no stages
/// for that, as RADV before GFX10.
fn has_size(chosen_in: Option<ShaderStages>, [least, most]: [Option<u32>; 2]) -> bool {
    let is_chosen = chosen_in.is_some_and(|stages| stages.intersects(ShaderStages::COMPUTE));
    is_chosen || least.is_some() && least == most
}

pub(super) fn features(f: &DeviceFeatures, p: &DeviceProperties, e: &DeviceExtensions) -> Features {
    let subgroup = |wanted: SubgroupFeatures| {
        p.subgroup_supported_operations
            .is_some_and(|s| s.contains(wanted))
            && p.subgroup_supported_stages
                .is_some_and(|s| s.intersects(ShaderStages::COMPUTE))
    };
    let arithmetic = SubgroupFeatures::BASIC
        | SubgroupFeatures::VOTE
        | SubgroupFeatures::ARITHMETIC
        | SubgroupFeatures::BALLOT;
    let rows = [
        (f.shader_float64, Features::FP64),
        (f.shader_int64, Features::INT64),
        (f.shader_int16, Features::INT16),
        (f.shader_int8, Features::INT8),
        (f.shader_float16, Features::FP16),
        (f.storage_buffer8_bit_access, Features::STORAGE8),
        (f.storage_buffer16_bit_access, Features::STORAGE16),
        (subgroup(arithmetic), Features::SUBGROUP_ARITHMETIC),
        (
            subgroup(SubgroupFeatures::SHUFFLE),
            Features::SUBGROUP_SHUFFLE,
        ),
        (
            e.khr_cooperative_matrix && f.cooperative_matrix && f.vulkan_memory_model,
            Features::COOPMAT,
        ),
        (
            f.vulkan_memory_model && f.vulkan_memory_model_device_scope,
            Features::MEMORY_MODEL,
        ),
        (
            f.subgroup_size_control && f.compute_full_subgroups,
            Features::SUBGROUP_SIZE_CONTROL,
        ),
        (f.shader_buffer_int64_atomics, Features::INT64_ATOMICS),
    ];
    rows.iter()
        .filter(|row| row.0)
        .fold(Features::NONE, |set, row| set.with(row.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subgroups_of_one_size_need_no_stage_that_chooses() {
        let (none, compute) = (ShaderStages::empty(), ShaderStages::COMPUTE);
        assert!(has_size(Some(none), [Some(64); 2]));
        assert!(has_size(Some(compute), [Some(32), Some(64)]));
        assert!(!has_size(Some(none), [Some(32), Some(64)]));
        assert!(!has_size(None, [None; 2]));
    }
}
