//! Device memory: slabs taken from the driver, blocks handed out of them, statistics.
//!
//! A block that is freed may be handed out again at once, even while the GPU still uses it: the queue orders
//! the new use after the old one. Each free block therefore remembers the last use recorded for it.

mod blocks;
mod budget;
mod growth;
mod kept;
mod made;
mod slab;

use crate::{
    Error, Kind, Result,
    device::{self, Device},
};
use ash::vk;
pub use blocks::Stats;
use blocks::{Free, State};
pub use budget::BudgetStats;
pub(crate) use budget::{Budget, Use};
use kept::Forms;
pub use kept::KeptStats;
pub(crate) use kept::{Found, Kept, Key};
pub(crate) use made::Made;
use parking_lot::Mutex;
use slab::RawSlab;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Every block starts at a multiple of this many bytes, which no device's offset alignment exceeds.
pub(crate) const ALIGN: u64 = 256;
/// Blocks above this size are multiples of it, so that they waste little.
const LARGE: u64 = 2 << 20;
const TOO_LARGE: &str = "it is more than one allocation may have";

/// That a call needs [`Patience::Waits`].
pub(crate) fn would_wait() -> Error {
    Error::new(Kind::WouldWait, "this call would have to wait")
}

/// Whether a call may wait: for the device, and for the driver where that may take long. On the schedulers of a VM it
/// must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It fails with [`Kind::WouldWait`] instead.
    Never,
    /// It may.
    Waits,
}

/// What was done without patience; `None` where it needs some.
pub(crate) fn now<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == Kind::WouldWait => Ok(None),
        result => result.map(Some),
    }
}

/// Memory of one Vulkan memory type.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Arc<Device>,
    usage: Use,
    budget: Arc<Budget>,
    memory_type: u32,
    heap: u32,
    mapped: bool,
    cached: bool,
    max_allocation: u64,
    /// Held by the one who asks the driver for more.
    growing: Mutex<()>,
    state: Mutex<State>,
}

/// A range of device memory. Dropping it gives the range back to its pool.
#[derive(Debug)]
pub(crate) struct Buffer {
    pool: Arc<Pool>,
    slab: Arc<RawSlab>,
    slab_index: usize,
    offset: u64,
    block: u64,
    len: u64,
    /// Sequence number of the last recorded read and write, kept by the queue.
    pub(crate) last_read: AtomicU64,
    pub(crate) last_write: AtomicU64,
    /// What kernels made of its content.
    forms: Forms,
}

impl Pool {
    /// The pool of the memory type that suits `usage` best. `budget` gets the size of its heap.
    pub(crate) fn new(
        device: &Arc<Device>,
        usage: Use,
        budget: impl FnOnce(u32) -> Arc<Budget>,
    ) -> Result<Arc<Pool>> {
        use vulkano::memory::MemoryPropertyFlags as F;
        let physical = device.vk.physical_device();
        let properties = physical.memory_properties();
        let largest_local = properties
            .memory_types
            .iter()
            .filter(|t| t.property_flags.contains(F::DEVICE_LOCAL))
            .map(|t| properties.memory_heaps[t.heap_index as usize].size)
            .max()
            .unwrap_or(0);
        let score = |i: usize| {
            let t = &properties.memory_types[i];
            let has = |flag| t.property_flags.contains(flag);
            let visible = has(F::HOST_VISIBLE) && has(F::HOST_COHERENT);
            let excluded = has(F::PROTECTED) || has(F::DEVICE_COHERENT) || has(F::LAZILY_ALLOCATED);
            let whole_heap = properties.memory_heaps[t.heap_index as usize].size >= largest_local;
            let rank = match usage {
                // Host-visible device memory takes uploads without a copy, where it spans the whole heap.
                Use::Tensors | Use::Literals => has(F::DEVICE_LOCAL).then_some(
                    4 * i32::from(whole_heap)
                        + 2 * i32::from(visible)
                        + i32::from(visible && has(F::HOST_CACHED)),
                ),
                Use::Readback => visible.then_some(
                    4 * i32::from(has(F::HOST_CACHED)) + i32::from(!has(F::DEVICE_LOCAL)),
                ),
                Use::Upload => visible.then_some(
                    4 * i32::from(!has(F::DEVICE_LOCAL)) + i32::from(!has(F::HOST_CACHED)),
                ),
            };
            rank.filter(|_| !excluded)
        };
        let allowed = slab::memory_types(device)?;
        let best = (0..properties.memory_types.len())
            .filter(|&i| allowed >> i & 1 == 1 && score(i).is_some())
            .max_by_key(|&i| (score(i), std::cmp::Reverse(i)))
            .ok_or_else(|| {
                Error::new(
                    Kind::NoDevice,
                    format!("{} has no memory for {usage:?}", device.summary().name),
                )
            })?;
        let flags = properties.memory_types[best].property_flags;
        let heap = properties.memory_types[best].heap_index;
        let mapped = flags.contains(F::HOST_VISIBLE) && flags.contains(F::HOST_COHERENT);
        Ok(Arc::new(Pool {
            device: device.clone(),
            usage,
            budget: budget(heap),
            memory_type: best as u32,
            heap,
            mapped,
            cached: mapped && flags.contains(F::HOST_CACHED),
            max_allocation: device::max_allocation(physical.properties()),
            growing: Mutex::default(),
            state: Mutex::default(),
        }))
    }

    /// Whether the host can write the memory directly.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped
    }

    /// Whether the host can read the memory fast.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached
    }

    pub(crate) fn stats(&self) -> Stats {
        self.state.lock().stats
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Whether any of `len` bytes at an address are memory of this pool.
    pub(crate) fn covers(&self, address: usize, len: u64) -> bool {
        let end = (address as u64).saturating_add(len);
        self.state.lock().slabs.iter().flatten().any(|slab| {
            let start = slab.raw.mapping as u64;
            start != 0 && (address as u64) < start + slab.raw.size && start < end
        })
    }

    /// A buffer of `len` bytes with undefined content. With `idle_at`, a block whose last use is at most that
    /// sequence number is preferred, so that the host may write it at once.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] naming the size and what is in use; [`Kind::WouldWait`] without patience when it takes more
    /// than the pool has; [`Kind::DeviceLost`].
    pub(crate) fn alloc(
        self: &Arc<Self>,
        len: u64,
        idle_at: Option<u64>,
        patience: Patience,
    ) -> Result<Arc<Buffer>> {
        self.device.usable()?;
        let block = round(len).ok_or_else(|| self.out_of_memory(len, TOO_LARGE))?;
        let mut state = self.state.lock();
        let found = loop {
            if let Some(found) = state.find(block, idle_at) {
                break found;
            }
            if patience == Patience::Never {
                return Err(would_wait());
            }
            drop(state);
            self.grow(block, len, idle_at)?;
            state = self.state.lock();
        };
        state.stats.in_use += block;
        state.stats.buffers += 1;
        state.stats.peak = state.stats.peak.max(state.stats.in_use);
        let slab = state.slabs[found.slab]
            .as_ref()
            .expect("a free block lies in a live slab")
            .raw
            .clone();
        Ok(Arc::new(Buffer {
            pool: self.clone(),
            slab,
            slab_index: found.slab,
            offset: found.offset,
            block,
            len,
            last_read: AtomicU64::new(found.last_use),
            last_write: AtomicU64::new(found.last_use),
            forms: Forms::default(),
        }))
    }

    /// Gives every slab without a live buffer whose last use is at most `completed` back to the driver.
    pub(crate) fn trim(&self, completed: u64) {
        let empty = self.state.lock().take_empty(completed);
        // The driver takes its time, and nobody else has to wait for it.
        drop(empty);
    }
}

/// Size of the block for `len` bytes: steps of a quarter power of two, so that blocks of like sizes are reused.
fn round(len: u64) -> Option<u64> {
    let len = len.max(1);
    let step = if len > 16 * LARGE {
        LARGE
    } else {
        (len.checked_next_power_of_two()? / 8).max(ALIGN)
    };
    len.checked_next_multiple_of(step)
}

impl Buffer {
    /// Bytes the buffer was asked for.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds a value that others may read too, so that nobody may write it.
    pub(crate) fn is_shared(&self) -> bool {
        self.pool.usage == Use::Literals
    }

    /// Bytes of the block it lies in, at least [`Buffer::len`].
    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// The `VkBuffer` it lies in, and its first byte there.
    pub(crate) fn location(&self) -> (vk::Buffer, u64) {
        (self.slab.buffer, self.offset)
    }

    pub(crate) fn last_use(&self) -> u64 {
        self.last_read
            .load(Ordering::Relaxed)
            .max(self.last_write.load(Ordering::Relaxed))
    }

    /// Whether it lies in memory for reading back, which every host maps.
    pub(crate) fn is_for_readback(&self) -> bool {
        self.pool.usage == Use::Readback
    }

    /// As [`Buffer::mapping`].
    ///
    /// # Errors
    /// [`Kind::Vulkan`] where the memory is not mapped.
    pub(crate) fn mapped(&self) -> Result<*mut u8> {
        let unmapped = || {
            let text = "the device has no memory that the host can map";
            Error::new(Kind::Vulkan, text)
        };
        self.mapping().ok_or_else(unmapped)
    }

    /// Start of the mapping, where the memory is mapped.
    pub(crate) fn mapping(&self) -> Option<*mut u8> {
        (self.slab.mapping != 0).then(|| (self.slab.mapping + self.offset as usize) as *mut u8)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let free = Free {
            slab: self.slab_index,
            offset: self.offset,
            last_use: self.last_use(),
        };
        let mut state = self.pool.state.lock();
        state.stats.in_use -= self.block;
        state.stats.buffers -= 1;
        state.binned += self.block;
        state.bins.entry(self.block).or_default().push_back(free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_waste_at_most_a_quarter() {
        for len in [
            1,
            255,
            256,
            257,
            1000,
            4096,
            70_000,
            1 << 20,
            (40 << 20) + 3,
            5 << 30,
        ] {
            let block = round(len).unwrap();
            assert!(
                block >= len && block.is_multiple_of(ALIGN),
                "{len} -> {block}"
            );
            assert!(
                block <= (len + len / 4).max(ALIGN + len),
                "{len} -> {block}"
            );
        }
        assert_eq!(round(u64::MAX), None);
    }
}
