//! The Vulkan device: finding one, opening it, and what it can do.

mod instance;
mod lost;

use crate::{Error, Kind, Result, exit};
pub use instance::validation_messages;
use instance::{INSTALL, instance};
use nx_vulkan_abi::{DeviceInfo, DeviceKind, Features};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vulkano::{
    Version, VulkanObject,
    device::{
        Device as VkDevice, DeviceCreateInfo, DeviceExtensions, DeviceFeatures, Queue,
        QueueCreateInfo, QueueFlags,
        physical::{PhysicalDevice, PhysicalDeviceType, SubgroupFeatures},
    },
    instance::Instance,
};

/// Which device to open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The first of [`list`]: discrete, then integrated, virtual, CPU.
    #[default]
    Auto,
    /// By its position in [`list`].
    Index(usize),
    /// By a part of its name, case-insensitive.
    Name(String),
    /// By its UUID in hexadecimal, with or without dashes.
    Uuid(String),
}

/// One device of the machine.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DeviceSummary {
    /// Position in the list, for [`DeviceChoice::Index`].
    pub index: usize,
    /// Name the driver reports.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub kind: &'static str,
    /// UUID in hexadecimal.
    pub uuid: String,
    /// Driver name and version as text.
    pub driver: String,
    /// Vulkan version of the device.
    pub api: String,
    /// Device-local memory, in bytes.
    pub memory: u64,
    /// Capabilities packs may ask for.
    pub features: Vec<&'static str>,
    /// Why nx_vulkan cannot use the device, if it cannot.
    pub unusable: Option<String>,
}

/// An open device with its one queue.
#[derive(Debug)]
pub struct Device {
    pub(crate) vk: Arc<VkDevice>,
    pub(crate) queue: Arc<Queue>,
    summary: DeviceSummary,
    facts: Facts,
    /// Why it was lost, once it is.
    lost: OnceLock<String>,
}

/// Owned form of the ABI's `DeviceInfo`.
#[derive(Debug, Clone)]
struct Facts {
    vendor: u32,
    device: u32,
    driver: u32,
    api: u32,
    kind: DeviceKind,
    subgroup_size: u32,
    min_subgroup_size: u32,
    max_subgroup_size: u32,
    shared_bytes: u32,
    push_bytes: u32,
    max_invocations: u32,
    compute_units: u32,
    max_workgroup_size: [u32; 3],
    max_groups: [u32; 3],
    max_buffer_range: u64,
    buffer_align: u64,
    features: Features,
    robust_pipelines: bool,
    bounds_bindings: bool,
}

/// The Vulkan loader crashes when two threads open devices at the same time (seen with 1.4.309).
static TURN: Mutex<()> = Mutex::new(());

/// Every Vulkan device of the machine, best first.
///
/// # Errors
/// [`Kind::NoDevice`] when there is no loader or no driver.
pub fn list() -> Result<Vec<DeviceSummary>> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let _inside = exit::enter().ok_or_else(exit::error)?;
    Ok(enumerate(&instance(false)?)?
        .iter()
        .enumerate()
        .map(|(i, d)| summarise(i, d))
        .collect())
}

impl Device {
    /// Opens the chosen device.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] when there is no loader, no driver, no such device, or it lacks what nx_vulkan needs.
    pub fn open(choice: &DeviceChoice, validation: bool) -> Result<Arc<Device>> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let _inside = exit::enter().ok_or_else(exit::error)?;
        let all = enumerate(&instance(validation)?)?;
        let summaries: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(i, d)| summarise(i, d))
            .collect();
        let index = choose(choice, &summaries)?;
        let physical = all[index].clone();
        let summary = summaries[index].clone();
        if let Some(why) = &summary.unusable {
            return Err(no_device(format!("{} cannot be used: {why}", summary.name)));
        }
        let family = queue_family(&physical)
            .ok_or_else(|| no_device(format!("{} has no compute queue", summary.name)))?;
        let (extensions, enabled) = wanted(&physical);
        let (vk, mut queues) = VkDevice::new(
            physical.clone(),
            DeviceCreateInfo {
                queue_create_infos: vec![QueueCreateInfo {
                    queue_family_index: family,
                    ..Default::default()
                }],
                enabled_extensions: extensions,
                enabled_features: enabled,
                ..Default::default()
            },
        )
        .map_err(|e| no_device(format!("{} could not be opened: {e}", summary.name)))?;
        let queue = queues
            .next()
            .ok_or_else(|| no_device("the device has no queue".to_owned()))?;
        let facts = facts(&physical, &enabled);
        Ok(Arc::new(Device {
            vk,
            queue,
            summary,
            facts,
            lost: OnceLock::new(),
        }))
    }

    /// Name, kind, UUID, driver.
    pub fn summary(&self) -> &DeviceSummary {
        &self.summary
    }

    /// Limits and capabilities, as packs see them.
    pub fn info(&self) -> DeviceInfo<'_> {
        let f = &self.facts;
        DeviceInfo {
            name: self.summary.name.as_str().into(),
            vendor: f.vendor,
            device: f.device,
            driver: f.driver,
            api: f.api,
            kind: f.kind,
            subgroup_size: f.subgroup_size,
            min_subgroup_size: f.min_subgroup_size,
            max_subgroup_size: f.max_subgroup_size,
            shared_bytes: f.shared_bytes,
            push_bytes: f.push_bytes,
            max_invocations: f.max_invocations,
            compute_units: f.compute_units,
            max_workgroup_size: f.max_workgroup_size,
            max_groups: f.max_groups,
            max_buffer_range: f.max_buffer_range,
            buffer_align: f.buffer_align,
            features: f.features,
            ..DeviceInfo::default()
        }
    }

    pub(crate) fn handle(&self) -> ash::vk::Device {
        self.vk.handle()
    }

    pub(crate) fn pipeline_cache_uuid(&self) -> [u8; 16] {
        self.vk.physical_device().properties().pipeline_cache_uuid
    }

    pub(crate) fn robust_pipelines(&self) -> bool {
        self.facts.robust_pipelines
    }

    /// Whether a pipeline may ask that accesses stay inside of their binding.
    pub(crate) fn bounds_bindings(&self) -> bool {
        self.facts.bounds_bindings
    }

    /// Whether this is a CPU or shares the memory of one.
    pub(crate) fn shares_memory(&self) -> bool {
        matches!(self.summary.kind, "cpu" | "integrated")
    }
}

fn no_device(message: String) -> Error {
    Error::new(Kind::NoDevice, message)
}

fn enumerate(instance: &Arc<Instance>) -> Result<Vec<Arc<PhysicalDevice>>> {
    let mut all: Vec<_> = instance
        .enumerate_physical_devices()
        .map_err(|e| {
            no_device(format!(
                "the Vulkan devices could not be listed ({e}); {INSTALL}"
            ))
        })?
        .collect();
    all.sort_by_key(|d| kind(d).2);
    if all.is_empty() {
        return Err(no_device(format!(
            "the Vulkan loader found no device; {INSTALL}"
        )));
    }
    Ok(all)
}

/// `(name, VkPhysicalDeviceType, order of preference)`.
fn kind(device: &PhysicalDevice) -> (&'static str, u32, u32) {
    match device.properties().device_type {
        PhysicalDeviceType::DiscreteGpu => ("discrete", 2, 0),
        PhysicalDeviceType::IntegratedGpu => ("integrated", 1, 1),
        PhysicalDeviceType::VirtualGpu => ("virtual", 3, 2),
        PhysicalDeviceType::Cpu => ("cpu", 4, 3),
        _ => ("other", 0, 4),
    }
}

fn summarise(index: usize, device: &Arc<PhysicalDevice>) -> DeviceSummary {
    let p = device.properties();
    let uuid = p.device_uuid.unwrap_or_default();
    let driver = [p.driver_name.clone(), p.driver_info.clone()];
    let heaps = &device.memory_properties().memory_heaps;
    let local = heaps.iter().filter(|h| {
        h.flags
            .intersects(vulkano::memory::MemoryHeapFlags::DEVICE_LOCAL)
    });
    DeviceSummary {
        index,
        name: p.device_name.clone(),
        kind: kind(device).0,
        uuid: uuid.iter().map(|b| format!("{b:02x}")).collect(),
        driver: driver.into_iter().flatten().collect::<Vec<_>>().join(" "),
        api: p.api_version.to_string(),
        memory: local.map(|h| h.size).sum(),
        features: features(
            device.supported_features(),
            p,
            device.supported_extensions(),
        )
        .names(),
        unusable: unusable(device),
    }
}

/// Why the device cannot run nx_vulkan, if so.
fn unusable(device: &PhysicalDevice) -> Option<String> {
    let features = device.supported_features();
    if device.api_version() < Version::V1_2 {
        return Some(format!(
            "it has Vulkan {}, and 1.2 is needed",
            device.api_version()
        ));
    }
    if !features.timeline_semaphore {
        return Some("it has no timeline semaphores".to_owned());
    }
    if !device.supported_extensions().khr_push_descriptor {
        return Some("it has no VK_KHR_push_descriptor".to_owned());
    }
    None
}

fn choose(choice: &DeviceChoice, all: &[DeviceSummary]) -> Result<usize> {
    let known = || {
        all.iter()
            .map(|d| format!("{}: {} ({})", d.index, d.name, d.uuid))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = match choice {
        DeviceChoice::Auto => all.iter().position(|d| d.unusable.is_none()).or(Some(0)),
        DeviceChoice::Index(index) => (*index < all.len()).then_some(*index),
        DeviceChoice::Name(name) => {
            let name = name.to_lowercase();
            all.iter()
                .position(|d| d.name.to_lowercase().contains(&name))
        }
        DeviceChoice::Uuid(uuid) => {
            let uuid = uuid.replace('-', "").to_lowercase();
            all.iter().position(|d| d.uuid == uuid)
        }
    };
    found.ok_or_else(|| {
        no_device(format!(
            "no device matches {choice:?}; the machine has {}",
            known()
        ))
    })
}

fn queue_family(device: &PhysicalDevice) -> Option<u32> {
    let families = device.queue_family_properties();
    let compute = |wants_graphics: bool| {
        families.iter().position(|f| {
            f.queue_flags.intersects(QueueFlags::COMPUTE)
                && f.queue_flags.intersects(QueueFlags::GRAPHICS) == wants_graphics
        })
    };
    compute(false).or_else(|| compute(true)).map(|i| i as u32)
}

/// Extensions and features to enable: what nx_vulkan needs, and of what packs can use all the device has.
fn wanted(device: &PhysicalDevice) -> (DeviceExtensions, DeviceFeatures) {
    let (s, e) = (device.supported_features(), device.supported_extensions());
    let robust = e.ext_pipeline_robustness && s.pipeline_robustness;
    let bounded = robust && e.ext_robustness2 && s.robust_buffer_access2;
    let coopmat = e.khr_cooperative_matrix && s.cooperative_matrix && s.vulkan_memory_model;
    let extensions = DeviceExtensions {
        khr_push_descriptor: true,
        ext_pipeline_robustness: robust,
        ext_robustness2: bounded,
        khr_cooperative_matrix: coopmat,
        khr_portability_subset: e.khr_portability_subset,
        ext_memory_budget: e.ext_memory_budget,
        ..DeviceExtensions::empty()
    };
    let enabled = DeviceFeatures {
        timeline_semaphore: true,
        pipeline_robustness: robust,
        robust_buffer_access: (bounded || !robust) && s.robust_buffer_access,
        robust_buffer_access2: bounded,
        cooperative_matrix: coopmat,
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
        subgroup_size_control: s.subgroup_size_control && s.compute_full_subgroups,
        compute_full_subgroups: s.subgroup_size_control && s.compute_full_subgroups,
        ..DeviceFeatures::empty()
    };
    (extensions, enabled)
}

fn features(
    f: &DeviceFeatures,
    p: &vulkano::device::DeviceProperties,
    e: &DeviceExtensions,
) -> Features {
    let subgroup = |wanted: SubgroupFeatures| {
        p.subgroup_supported_operations
            .is_some_and(|s| s.contains(wanted))
            && p.subgroup_supported_stages
                .is_some_and(|s| s.intersects(vulkano::shader::ShaderStages::COMPUTE))
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
            e.khr_cooperative_matrix && f.cooperative_matrix,
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

fn facts(device: &PhysicalDevice, enabled: &DeviceFeatures) -> Facts {
    let p = device.properties();
    let features = features(enabled, p, device.supported_extensions());
    let controlled = |size: Option<u32>| {
        size.filter(|_| features.has(Features::SUBGROUP_SIZE_CONTROL))
            .unwrap_or(0)
    };
    Facts {
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
        compute_units: p.shader_sm_count.unwrap_or(0),
        max_workgroup_size: p.max_compute_work_group_size,
        max_groups: p.max_compute_work_group_count,
        max_buffer_range: p.max_storage_buffer_range.into(),
        buffer_align: p.min_storage_buffer_offset_alignment.as_devicesize(),
        features,
        robust_pipelines: enabled.pipeline_robustness,
        bounds_bindings: enabled.robust_buffer_access2,
    }
}
