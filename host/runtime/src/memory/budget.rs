//! The budget: how much memory all pools together may take, so that an error comes before the system runs out.

use crate::{config::MemoryBudget, device::Device};
use ash::vk;
use nx_vulkan_ops::memory;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use vulkano::VulkanObject;

/// Of a device's own memory, in thousandths.
const OF_DEVICE: u16 = 900;
/// Of the memory that it shares with everybody else.
const OF_SYSTEM: u16 = 750;

/// What the host does with a pool's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Tensors.
    Tensors,
    /// Tensors that everybody who asks for the same value shares. No buffer that anything writes lies in their slabs.
    Literals,
    /// Reading results back.
    Readback,
    /// Writing data that tensors' memory cannot take directly.
    Upload,
}

impl Use {
    const COUNT: usize = 4;

    pub(super) fn name(self) -> &'static str {
        match self {
            Use::Tensors => "tensors",
            Use::Literals => "literals",
            Use::Readback => "reading back",
            Use::Upload => "uploading",
        }
    }
}

/// What a device's pools may take and have taken, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    taken: [AtomicU64; Use::COUNT],
    total: AtomicU64,
}

/// The memory of a device that nx_vulkan may take and has taken, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct BudgetStats {
    /// What all of it together may take from the driver.
    pub limit: u64,
    /// Taken in all.
    pub taken: u64,
    /// Of that, for reading results back.
    pub readback: u64,
    /// Of that, for writing data that cannot be written in place.
    pub upload: u64,
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    usage: Use,
    bytes: u64,
}

impl Budget {
    /// The budget for `wanted` on a device with tensors in that heap.
    pub(crate) fn new(device: &Device, wanted: MemoryBudget, heap: u32) -> Arc<Budget> {
        let heaps = &device.vk.physical_device().memory_properties().memory_heaps;
        let system = device.shares_memory().then(|| left(device, heap)).flatten();
        Arc::new(Budget::of(wanted, heaps[heap as usize].size, system))
    }

    fn of(wanted: MemoryBudget, heap: u64, system: Option<u64>) -> Budget {
        let part = |bytes: u64, share: u16| {
            (u128::from(bytes) * u128::from(share.min(1000)) / 1000) as u64
        };
        let limit = match (wanted, system) {
            (MemoryBudget::Bytes(bytes), _) => bytes,
            (MemoryBudget::Share(share), system) => {
                part(heap.min(system.unwrap_or(u64::MAX)), share)
            }
            (MemoryBudget::Auto, None) => part(heap, OF_DEVICE),
            (MemoryBudget::Auto, Some(system)) => {
                part(heap, OF_DEVICE).min(part(system, OF_SYSTEM))
            }
        };
        Budget {
            limit,
            taken: Default::default(),
            total: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> BudgetStats {
        let of = |usage: Use| self.taken[usage as usize].load(Ordering::Relaxed);
        BudgetStats {
            limit: self.limit,
            taken: self.total.load(Ordering::Relaxed),
            readback: of(Use::Readback),
            upload: of(Use::Upload),
        }
    }

    /// A share of `bytes`, where so much is left.
    pub(super) fn take(self: &Arc<Self>, usage: Use, bytes: u64) -> Option<Share> {
        let mut total = self.total.load(Ordering::Relaxed);
        loop {
            let sum = total.checked_add(bytes)?;
            if sum > self.limit {
                return None;
            }
            let set =
                self.total
                    .compare_exchange_weak(total, sum, Ordering::Relaxed, Ordering::Relaxed);
            match set {
                Ok(_) => break,
                Err(now) => total = now,
            }
        }
        self.taken[usage as usize].fetch_add(bytes, Ordering::Relaxed);
        Some(Share {
            budget: self.clone(),
            usage,
            bytes,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken[self.usage as usize].fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What others leave of a heap: by the driver's own account, or where the device shares the system's memory by the
/// system's if it gives one. `None` where nobody tells.
pub(super) fn left(device: &Device, heap: u32) -> Option<u64> {
    let by_driver = || left_by_driver(device, heap);
    match device.shares_memory() {
        true => shared(memory::told(), by_driver, memory::available),
        false => by_driver(),
    }
}

/// What is left of the system's memory: as it tells, or else the driver, or else by a guess from its size.
fn shared(
    told: Option<u64>,
    by_driver: impl FnOnce() -> Option<u64>,
    guess: impl FnOnce() -> Option<u64>,
) -> Option<u64> {
    told.or_else(by_driver).or_else(guess)
}

fn left_by_driver(device: &Device, heap: u32) -> Option<u64> {
    let physical = device.vk.physical_device();
    if !physical.supported_extensions().ext_memory_budget {
        return None;
    }
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    let fns = physical.instance().fns();
    // SAFETY: the device has the extension, and both structures live through the call.
    unsafe {
        (fns.v1_1.get_physical_device_memory_properties2)(physical.handle(), &mut properties);
    }
    let heap = heap as usize;
    Some(budget.heap_budget[heap].saturating_sub(budget.heap_usage[heap]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_cpu_leaves_the_system_a_quarter_of_what_is_free() {
        let limit = |wanted, heap, system| Budget::of(wanted, heap, system).limit;
        use MemoryBudget::{Auto, Bytes, Share};
        assert_eq!(limit(Auto, 80 * GIB, None), 72 * GIB);
        assert_eq!(limit(Auto, 32 * GIB, Some(20 * GIB)), 15 * GIB);
        assert_eq!(limit(Auto, 10 * GIB, Some(20 * GIB)), 9 * GIB);
        assert_eq!(limit(Share(500), 32 * GIB, Some(20 * GIB)), 10 * GIB);
        assert_eq!(limit(Share(2000), 32 * GIB, None), 32 * GIB);
        assert_eq!(limit(Share(500), u64::MAX, None), u64::MAX / 2);
        assert_eq!(limit(Bytes(5), 32 * GIB, Some(GIB)), 5);
    }

    #[test]
    fn the_driver_tells_what_is_left_where_the_system_does_not() {
        let (driver, guess) = (|| Some(2), || Some(3));
        assert_eq!(shared(Some(1), driver, guess), Some(1));
        assert_eq!(shared(None, driver, guess), Some(2));
        assert_eq!(shared(None, || None, guess), Some(3));
    }

    #[test]
    fn shares_never_exceed_the_limit_and_come_back() {
        let budget = Arc::new(Budget::of(MemoryBudget::Bytes(100), 0, None));
        let first = budget.take(Use::Tensors, 60).unwrap();
        assert!(budget.take(Use::Upload, 41).is_none());
        assert!(budget.take(Use::Upload, u64::MAX).is_none());
        let second = budget.take(Use::Upload, 40).unwrap();
        assert_eq!((budget.stats().taken, budget.stats().upload), (100, 40));
        drop((first, second));
        assert_eq!((budget.stats().taken, budget.stats().upload), (0, 0));
    }
}
