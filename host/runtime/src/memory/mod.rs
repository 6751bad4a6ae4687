//! Device memory: slabs taken from the driver, blocks handed out of them, statistics.
//!
//! A block that is freed may be handed out again at once, even while the GPU still uses it: the queue orders
//! the new use after the old one. Each free block therefore remembers the last use recorded for it.

mod slab;

use crate::{Error, Kind, Result, device::Device};
use ash::vk;
use slab::RawSlab;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Every block starts at a multiple of this many bytes, which no device's offset alignment exceeds.
pub(crate) const ALIGN: u64 = 256;
const FIRST_SLAB: u64 = 64 << 20;
const LARGEST_SLAB: u64 = 1 << 30;
/// Blocks up to this size are reused in turns of [`ROTATION`].
const SMALL: u64 = 64 << 10;
const ROTATION: usize = 16;
/// Blocks above this size are multiples of it, so that they waste little.
const LARGE: u64 = 2 << 20;

/// What the host does with a pool's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Tensors.
    Tensors,
    /// Reading results back.
    Readback,
    /// Writing data that tensors' memory cannot take directly.
    Upload,
}

/// Memory of one Vulkan memory type.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Arc<Device>,
    memory_type: u32,
    mapped: bool,
    cached: bool,
    max_allocation: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slabs: Vec<Option<Slab>>,
    /// Blocks that were freed, by their rounded size: `(slab, offset, last use)`.
    bins: HashMap<u64, VecDeque<Free>>,
    binned: u64,
    stats: Stats,
}

#[derive(Debug)]
struct Slab {
    raw: Arc<RawSlab>,
    /// Free ranges by offset: `(length, last use)`.
    free: BTreeMap<u64, (u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Free {
    slab: usize,
    offset: u64,
    last_use: u64,
}

/// Memory of a pool, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Taken from the driver.
    pub allocated: u64,
    /// In live buffers.
    pub in_use: u64,
    /// Highest `in_use` so far.
    pub peak: u64,
    /// Number of live buffers.
    pub buffers: u64,
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
}

impl Pool {
    /// The pool of the memory type that suits `usage` best.
    pub(crate) fn new(device: &Arc<Device>, usage: Use) -> Result<Arc<Pool>> {
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
                Use::Tensors => has(F::DEVICE_LOCAL).then_some(
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
        let best = (0..properties.memory_types.len())
            .filter(|&i| score(i).is_some())
            .max_by_key(|&i| (score(i), std::cmp::Reverse(i)))
            .ok_or_else(|| {
                Error::new(
                    Kind::NoDevice,
                    format!("{} has no memory for {usage:?}", device.summary().name),
                )
            })?;
        let flags = properties.memory_types[best].property_flags;
        let mapped = flags.contains(F::HOST_VISIBLE) && flags.contains(F::HOST_COHERENT);
        Ok(Arc::new(Pool {
            device: device.clone(),
            memory_type: best as u32,
            mapped,
            cached: mapped && flags.contains(F::HOST_CACHED),
            max_allocation: {
                let limits = physical.properties();
                let buffer = limits.max_buffer_size.unwrap_or(u64::MAX);
                limits
                    .max_memory_allocation_size
                    .unwrap_or(1 << 30)
                    .min(buffer)
            },
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
        self.lock().stats
    }

    /// A buffer of `len` bytes with undefined content. With `idle_at`, a block whose last use is at most that
    /// sequence number is preferred, so that the host may write it at once.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] naming the size and what is in use.
    pub(crate) fn alloc(self: &Arc<Self>, len: u64, idle_at: Option<u64>) -> Result<Arc<Buffer>> {
        let block = round(len).ok_or_else(|| self.out_of_memory(len, &self.lock()))?;
        let mut state = self.lock();
        let found = match state.take_binned(block, idle_at) {
            Some(free) => free,
            None => match state.carve(block) {
                Some(free) => free,
                None => {
                    self.grow(&mut state, block, len)?;
                    state
                        .carve(block)
                        .ok_or_else(|| self.out_of_memory(len, &state))?
                }
            },
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
        }))
    }

    /// Gives every slab without a live buffer whose last use is at most `completed` back to the driver.
    pub(crate) fn trim(&self, completed: u64) {
        self.lock().trim(completed);
    }

    fn grow(&self, state: &mut State, block: u64, len: u64) -> Result<()> {
        if block > self.max_allocation {
            return Err(self.out_of_memory(len, state));
        }
        // Blocks waiting in bins of other sizes may merge into what is needed.
        if state.binned >= block && state.binned * 2 >= state.stats.allocated - state.stats.in_use {
            state.merge_bins();
            if state.fits(block) {
                return Ok(());
            }
        }
        let next = (state.stats.allocated)
            .clamp(FIRST_SLAB, LARGEST_SLAB)
            .min(self.max_allocation);
        let whole = block.max(next);
        let slab = RawSlab::new(&self.device, self.memory_type, self.mapped, whole)
            .or_else(|_| RawSlab::new(&self.device, self.memory_type, self.mapped, block))
            .map_err(|e| match e.kind() {
                Kind::DeviceLost => e,
                _ => self.out_of_memory(len, state),
            })?;
        let size = slab.size;
        let slab = Slab {
            raw: Arc::new(slab),
            free: BTreeMap::from([(0, (size, 0))]),
        };
        state.stats.allocated += size;
        match state.slabs.iter().position(Option::is_none) {
            Some(index) => state.slabs[index] = Some(slab),
            None => state.slabs.push(Some(slab)),
        }
        Ok(())
    }

    fn out_of_memory(&self, len: u64, state: &State) -> Error {
        let s = state.stats;
        Error::new(
            Kind::OutOfMemory,
            format!(
                "{} has no room for {len} bytes: {} bytes are in use by {} buffers, {} bytes are allocated, the largest allocation it allows is {} bytes",
                self.device.summary().name,
                s.in_use,
                s.buffers,
                s.allocated,
                self.max_allocation
            ),
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_binned(&mut self, block: u64, idle_at: Option<u64>) -> Option<Free> {
        let bin = self.bins.get_mut(&block)?;
        // Small blocks rotate, so that an op seldom has to wait for the last user of its result's memory; of
        // large ones the latest is taken, so that few exist.
        let index = match idle_at {
            Some(done) => bin.iter().take(ROTATION).position(|f| f.last_use <= done),
            None if block > SMALL => bin.len().checked_sub(1),
            None => (bin.len() >= ROTATION).then_some(0),
        }?;
        self.binned -= block;
        bin.remove(index)
    }

    /// Best fit over the free ranges of all slabs.
    fn carve(&mut self, block: u64) -> Option<Free> {
        let (_, slab, offset) = self
            .slabs
            .iter()
            .enumerate()
            .filter_map(|(i, slab)| Some((i, slab.as_ref()?)))
            .flat_map(|(i, slab)| {
                slab.free
                    .iter()
                    .map(move |(&offset, &(len, _))| (len, i, offset))
            })
            .filter(|&(len, ..)| len >= block)
            .min()?;
        let free = &mut self.slabs[slab].as_mut()?.free;
        let (len, last_use) = free.remove(&offset)?;
        if len > block {
            free.insert(offset + block, (len - block, last_use));
        }
        Some(Free {
            slab,
            offset,
            last_use,
        })
    }

    fn fits(&self, block: u64) -> bool {
        self.slabs
            .iter()
            .flatten()
            .any(|s| s.free.values().any(|&(len, _)| len >= block))
    }

    fn merge_bins(&mut self) {
        for (block, bin) in self.bins.drain() {
            for free in bin {
                if let Some(slab) = self.slabs[free.slab].as_mut() {
                    insert_merged(&mut slab.free, free.offset, block, free.last_use);
                }
            }
        }
        self.binned = 0;
    }

    fn trim(&mut self, completed: u64) {
        self.merge_bins();
        for entry in &mut self.slabs {
            let empty = entry.as_ref().is_some_and(|slab| {
                slab.free
                    .get(&0)
                    .is_some_and(|&(len, used)| len == slab.raw.size && used <= completed)
            });
            if empty && let Some(slab) = entry.take() {
                self.stats.allocated -= slab.raw.size;
            }
        }
    }
}

fn insert_merged(
    free: &mut BTreeMap<u64, (u64, u64)>,
    mut offset: u64,
    mut len: u64,
    mut last: u64,
) {
    if let Some((next_len, used)) = free.remove(&(offset + len)) {
        len += next_len;
        last = last.max(used);
    }
    if let Some((&before, &(before_len, used))) = free.range(..offset).next_back()
        && before + before_len == offset
    {
        offset = before;
        len += before_len;
        last = last.max(used);
    }
    free.insert(offset, (len, last));
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
        let mut state = self.pool.lock();
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

    #[test]
    fn neighbouring_free_ranges_merge_and_keep_the_latest_use() {
        let mut free = BTreeMap::new();
        insert_merged(&mut free, 0, 256, 1);
        insert_merged(&mut free, 512, 256, 7);
        insert_merged(&mut free, 256, 256, 3);
        assert_eq!(free, BTreeMap::from([(0, (768, 7))]));
    }
}
