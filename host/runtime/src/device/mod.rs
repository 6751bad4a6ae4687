//! The Vulkan device: finding one, opening it, and what it can do.

mod create;
mod facts;
pub(crate) mod fragments;
mod instance;
mod lost;
mod matrices;
mod newer;

use self::fragments::Fragments;
pub use crate::config::DeviceChoice;
use crate::{Result, exit, profile::Ticks, shader::Target};
pub(crate) use facts::max_allocation;
use facts::{Facts, features, kind, wanted};
pub use instance::validation_messages;
use instance::{INSTALL, instance, layers, no_device};
use nx_vulkan_abi::{DeviceInfo, Features};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use vulkano::{
    Version, VulkanObject,
    device::{Device as VkDevice, Queue, QueueFlags, physical::PhysicalDevice},
    instance::Instance,
};

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
    /// Products of cooperative matrices, as the driver lists them.
    pub matrices: Vec<String>,
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
    /// How lanes hold cooperative matrices, once that is known.
    fragments: OnceLock<Fragments>,
    /// Why it was lost, once it is.
    lost: OnceLock<String>,
}

/// The Vulkan loader crashes when two threads open devices at the same time (seen with 1.4.309).
static TURN: Mutex<()> = Mutex::new(());

/// Every Vulkan device of the machine, best first.
///
/// # Errors
/// [`Kind::NoDevice`] when there is no loader or no driver.
pub fn list() -> Result<Vec<DeviceSummary>> {
    let _turn = TURN.lock();
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
        let _turn = TURN.lock();
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
        let wanted = wanted(&physical, layers(physical.instance()));
        let (vk, queue) = create::create(&physical, family, &wanted)
            .map_err(|e| no_device(format!("{} could not be opened: {e}", summary.name)))?;
        let queue = queue.ok_or_else(|| no_device("the device has no queue".to_owned()))?;
        let facts = Facts::new(&physical, &wanted);
        Ok(Arc::new(Device {
            vk,
            queue,
            summary,
            facts,
            fragments: OnceLock::new(),
            lost: OnceLock::new(),
        }))
    }

    /// Name, kind, UUID, driver.
    pub fn summary(&self) -> &DeviceSummary {
        &self.summary
    }

    /// Limits and capabilities, as packs see them.
    pub fn info(&self) -> DeviceInfo<'_> {
        let info = self.facts.info(&self.summary.name);
        let known = match self.fragments.get() {
            Some(Fragments::Known) => Features::COOPMAT_ORDER,
            _ => Features::NONE,
        };
        DeviceInfo {
            features: info.features.with(known),
            ..info
        }
    }

    /// Tells it how lanes hold cooperative matrices.
    pub(crate) fn learn(&self, fragments: Fragments) {
        self.fragments.get_or_init(|| fragments);
    }

    /// What shaders are compiled for.
    pub(crate) fn target(&self) -> Target {
        match self.facts.newer_target {
            true => Target::Newer,
            false => Target::Older,
        }
    }

    /// What the stamps of its time mean, where its queue has a clock.
    pub(crate) fn ticks(&self) -> Option<Ticks> {
        let physical = self.vk.physical_device();
        let family = self.queue.queue_family_index() as usize;
        let bits = physical.queue_family_properties()[family].timestamp_valid_bits?;
        Some(Ticks {
            mask: u64::MAX >> u64::BITS.saturating_sub(bits),
            period: physical.properties().timestamp_period.into(),
        })
    }

    /// Whether the driver can be asked about pipelines that were made for it.
    pub(crate) fn tells_of_pipelines(&self) -> bool {
        self.facts.tells_of_pipelines
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

fn summarise(index: usize, device: &Arc<PhysicalDevice>) -> DeviceSummary {
    let p = device.properties();
    let uuid = p.device_uuid.unwrap_or_default();
    let driver = [p.driver_name.clone(), p.driver_info.clone()];
    let wanted = wanted(device, layers(device.instance()));
    let enabled = features(&wanted.features, p, &wanted.extensions).with(wanted.newer.features());
    DeviceSummary {
        index,
        name: p.device_name.clone(),
        kind: kind(device).0,
        uuid: uuid.iter().map(|b| format!("{b:02x}")).collect(),
        driver: driver.into_iter().flatten().collect::<Vec<_>>().join(" "),
        api: p.api_version.to_string(),
        memory: local_memory(device),
        features: enabled.names(),
        matrices: matrices::texts(device, enabled),
        unusable: unusable(device),
    }
}

/// Bytes of memory that is the device's own.
fn local_memory(device: &PhysicalDevice) -> u64 {
    let local = vulkano::memory::MemoryHeapFlags::DEVICE_LOCAL;
    let heaps = device.memory_properties().memory_heaps.iter();
    heaps
        .filter(|heap| heap.flags.intersects(local))
        .map(|heap| heap.size)
        .sum()
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

/// The position of the chosen device in what [`list`] gives.
///
/// # Errors
/// [`Kind::NoDevice`] where there is none, which names those of the machine.
pub fn choose(choice: &DeviceChoice, all: &[DeviceSummary]) -> Result<usize> {
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
            let has_it = |d: &&DeviceSummary| d.name.to_lowercase().contains(&name);
            // The same device may have another driver, which can be used.
            let usable = all.iter().filter(|d| d.unusable.is_none()).find(has_it);
            usable.or_else(|| all.iter().find(has_it)).map(|d| d.index)
        }
        DeviceChoice::Uuid(uuid) => {
            let uuid = uuid.replace('-', "").to_lowercase();
            all.iter().position(|d| d.uuid == uuid)
        }
    };
    found.ok_or_else(|| {
        no_device(format!(
            "no device has {choice}; those of the machine: {}",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_chooses_what_can_be_used() {
        let device = |index, name: &str, unusable: Option<&str>| DeviceSummary {
            index,
            name: name.to_owned(),
            kind: "discrete",
            uuid: String::new(),
            driver: String::new(),
            api: String::new(),
            memory: 0,
            features: Vec::new(),
            matrices: Vec::new(),
            unusable: unusable.map(str::to_owned),
        };
        let all = [
            device(0, "Radeon (old)", Some("it has Vulkan 1.1")),
            device(1, "GeForce", None),
            device(2, "Radeon (new)", None),
        ];
        let named = |name: &str| choose(&DeviceChoice::Name(name.to_owned()), &all).ok();
        assert_eq!(named("radeon"), Some(2));
        assert_eq!(named("radeon (old"), Some(0), "there is no other");
        assert_eq!(named("arc"), None);
    }
}
