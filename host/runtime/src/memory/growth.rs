//! How a pool gets more memory from the driver, and why it does not.

use super::{
    Pool, TOO_LARGE,
    budget::{self, Use},
    slab::RawSlab,
};
use crate::{Error, Kind, Result};

const FIRST_SLAB: u64 = 64 << 20;
/// The slabs of literals, which are few and small.
const LITERAL_SLAB: u64 = 1 << 20;
const LARGEST_SLAB: u64 = 512 << 20;

/// Why a slab was not made.
#[derive(Debug)]
enum Refusal {
    Budget,
    /// So much is left by others.
    Others(u64),
    Driver(Error),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Budget => f.write_str("that is beyond the budget"),
            Refusal::Others(left) => write!(f, "others leave {left} bytes of that memory"),
            Refusal::Driver(error) => error.fmt(f),
        }
    }
}

impl Pool {
    /// Makes room for a block, where another thread has not done so meanwhile.
    pub(super) fn grow(&self, block: u64, len: u64, idle_at: Option<u64>) -> Result<()> {
        let _turn = self.growing.lock();
        let next = {
            let mut state = self.state.lock();
            if state.has(block, idle_at) {
                return Ok(());
            }
            if block > self.max_allocation {
                drop(state);
                return Err(self.out_of_memory(len, TOO_LARGE));
            }
            // Blocks waiting in bins of other sizes may merge into what is needed.
            if state.binned >= block
                && state.binned * 2 >= state.stats.allocated - state.stats.in_use
            {
                state.merge_bins();
                if state.fits(block) {
                    return Ok(());
                }
            }
            let next = match self.usage {
                Use::Literals => LITERAL_SLAB,
                _ => state.stats.allocated.clamp(FIRST_SLAB, LARGEST_SLAB),
            };
            next.min(self.max_allocation)
        };
        let sizes = [block.max(next), block];
        let sizes = &sizes[usize::from(sizes[0] == block)..];
        let mut refusal = None;
        for &size in sizes {
            match self.slab(size) {
                Ok(slab) => {
                    self.state.lock().add(slab);
                    return Ok(());
                }
                Err(Refusal::Driver(error)) if error.kind() == Kind::DeviceLost => {
                    return Err(error);
                }
                Err(why) => refusal = Some(why),
            }
        }
        let why = refusal.map_or_else(String::new, |why| why.to_string());
        Err(self.out_of_memory(len, &why))
    }

    fn slab(&self, size: u64) -> std::result::Result<RawSlab, Refusal> {
        let share = self.budget.take(self.usage, size).ok_or(Refusal::Budget)?;
        if let Some(left) = budget::left(&self.device, self.heap)
            && left < size
        {
            return Err(Refusal::Others(left));
        }
        let (memory_type, mapped) = (self.memory_type, self.mapped);
        RawSlab::new(&self.device, memory_type, mapped, size, share).map_err(Refusal::Driver)
    }

    pub(super) fn out_of_memory(&self, len: u64, why: &str) -> Error {
        let (own, all) = (self.stats(), self.budget.stats());
        Error::new(
            Kind::OutOfMemory,
            format!(
                "{} has no room for {len} bytes: {why}; {} bytes are in use by {} buffers for {}, for which {} bytes are \
                 allocated; all together {} bytes are, {} of them to read back and {} to upload, and the budget is {} \
                 bytes; the largest allocation the device allows is {} bytes",
                self.device.summary().name,
                own.in_use,
                own.buffers,
                self.usage.name(),
                own.allocated,
                all.taken,
                all.readback,
                all.upload,
                all.limit,
                self.max_allocation
            ),
        )
    }
}
