//! What a pool has: its slabs, the ranges of them that are free, and the blocks that were freed.

use super::slab::RawSlab;
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Blocks up to this size are reused in turns of [`ROTATION`].
const SMALL: u64 = 64 << 10;
const ROTATION: usize = 16;
/// Bytes of freed blocks beyond which one that the device still uses is taken where an idle one is asked for.
const MOST_BUSY: u64 = 1 << 30;

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

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) slabs: Vec<Option<Slab>>,
    /// Blocks that were freed, by their rounded size: `(slab, offset, last use)`.
    pub(super) bins: FxHashMap<u64, VecDeque<Free>>,
    pub(super) binned: u64,
    pub(super) stats: Stats,
}

#[derive(Debug)]
pub(super) struct Slab {
    pub(super) raw: Arc<RawSlab>,
    /// Free ranges by offset: `(length, last use)`.
    pub(super) free: BTreeMap<u64, (u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Free {
    pub(super) slab: usize,
    pub(super) offset: u64,
    pub(super) last_use: u64,
}

impl State {
    /// Takes a free block: one that was freed, or a new one out of a slab.
    pub(super) fn find(&mut self, block: u64, idle_at: Option<u64>) -> Option<Free> {
        if let Some(free) = self.take_binned(block, idle_at) {
            return Some(free);
        }
        // Whoever writes far ahead of the device waits for its own blocks, before it takes everybody's memory.
        let crowded = idle_at.is_some() && self.binned > MOST_BUSY;
        let busy = crowded.then(|| self.take_oldest(block)).flatten();
        let free = busy.or_else(|| self.carve(block));
        // Better one that is in use than another slab.
        free.or_else(|| idle_at.is_none().then(|| self.take_oldest(block)).flatten())
    }

    /// Whether [`State::find`] would find one.
    pub(super) fn has(&mut self, block: u64, idle_at: Option<u64>) -> bool {
        let bin = self.bins.get(&block);
        let crowded = idle_at.is_none() || self.binned > MOST_BUSY;
        let binned = bin
            .is_some_and(|bin| !bin.is_empty() && (crowded || next(bin, block, idle_at).is_some()));
        binned || self.fits(block)
    }

    fn take_oldest(&mut self, block: u64) -> Option<Free> {
        let oldest = self.bins.get_mut(&block)?.pop_front()?;
        self.binned -= block;
        Some(oldest)
    }

    pub(super) fn take_binned(&mut self, block: u64, idle_at: Option<u64>) -> Option<Free> {
        let bin = self.bins.get_mut(&block)?;
        let index = next(bin, block, idle_at)?;
        self.binned -= block;
        bin.remove(index)
    }

    /// Best fit over the free ranges of all slabs.
    pub(super) fn carve(&mut self, block: u64) -> Option<Free> {
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

    pub(super) fn fits(&self, block: u64) -> bool {
        self.slabs
            .iter()
            .flatten()
            .any(|s| s.free.values().any(|&(len, _)| len >= block))
    }

    pub(super) fn merge_bins(&mut self) {
        for (block, bin) in self.bins.drain() {
            for free in bin {
                if let Some(slab) = self.slabs[free.slab].as_mut() {
                    insert_merged(&mut slab.free, free.offset, block, free.last_use);
                }
            }
        }
        self.binned = 0;
    }

    /// Takes out every slab without a live buffer whose last use is at most `completed`.
    pub(super) fn take_empty(&mut self, completed: u64) -> Vec<Slab> {
        self.merge_bins();
        let empty = |slab: &Slab| {
            slab.free
                .get(&0)
                .is_some_and(|&(len, used)| len == slab.raw.size && used <= completed)
        };
        let taken: Vec<Slab> = self
            .slabs
            .iter_mut()
            .filter_map(|entry| entry.take_if(|slab| empty(slab)))
            .collect();
        self.stats.allocated -= taken.iter().map(|slab| slab.raw.size).sum::<u64>();
        taken
    }

    /// Adds a slab that is free from end to end.
    pub(super) fn add(&mut self, raw: RawSlab) {
        let size = raw.size;
        let slab = Slab {
            raw: Arc::new(raw),
            free: BTreeMap::from([(0, (size, 0))]),
        };
        self.stats.allocated += size;
        match self.slabs.iter().position(Option::is_none) {
            Some(index) => self.slabs[index] = Some(slab),
            None => self.slabs.push(Some(slab)),
        }
    }
}

/// Which block of a bin is taken next, if any.
fn next(bin: &VecDeque<Free>, block: u64, idle_at: Option<u64>) -> Option<usize> {
    // Small blocks rotate, so that an op seldom has to wait for the last user of its result's memory; of
    // large ones the latest is taken, so that few exist, and what a CPU wrote there is still in its caches.
    let late = bin.len().saturating_sub(ROTATION);
    match idle_at {
        Some(done) if block > SMALL => (late..bin.len()).rev().find(|&i| bin[i].last_use <= done),
        Some(done) => bin.iter().take(ROTATION).position(|f| f.last_use <= done),
        None if block > SMALL => bin.len().checked_sub(1),
        None => (bin.len() >= ROTATION).then_some(0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_free_ranges_merge_and_keep_the_latest_use() {
        let mut free = BTreeMap::new();
        insert_merged(&mut free, 0, 256, 1);
        insert_merged(&mut free, 512, 256, 7);
        insert_merged(&mut free, 256, 256, 3);
        assert_eq!(free, BTreeMap::from([(0, (768, 7))]));
    }

    /// Who asks for more memory is answered by the one and looks by the other until both agree.
    #[test]
    fn what_is_said_to_be_there_is_found() {
        for block in [SMALL, 2 * SMALL] {
            for (count, idle) in (0..50).flat_map(|count| (0..50).map(move |idle| (count, idle))) {
                for idle_at in [None, Some(1)] {
                    let free = |at| Free {
                        slab: 0,
                        offset: 0,
                        last_use: if at == idle { 1 } else { 2 },
                    };
                    let mut state = State::default();
                    state.bins.insert(block, (0..count).map(free).collect());
                    state.binned = count * block;
                    let has = state.has(block, idle_at);
                    let found = state.find(block, idle_at).is_some();
                    assert_eq!(has, found, "{block} {count} {idle} {idle_at:?}");
                }
            }
        }
    }

    #[test]
    fn of_large_blocks_the_latest_idle_one_is_taken() {
        let freed = |last_use| Free {
            slab: 0,
            offset: 0,
            last_use,
        };
        let mut state = State::default();
        let last = |state: &mut State, block, idle| {
            state.bins.insert(block, [1, 2, 3, 4].map(freed).into());
            state.binned = 4 * block;
            state.take_binned(block, idle).map(|free| free.last_use)
        };
        assert_eq!(last(&mut state, 2 * SMALL, None), Some(4));
        assert_eq!(last(&mut state, 2 * SMALL, Some(3)), Some(3));
        assert_eq!(last(&mut state, SMALL, Some(3)), Some(1));
        assert_eq!(last(&mut state, 2 * SMALL, Some(0)), None);
    }
}
