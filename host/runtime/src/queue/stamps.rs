//! Stamps of the device's time between commands, while a profile is on. Each stands at the end of what was recorded before it, so
//! that a command takes from one to the next.

use super::{Open, Stream, step::Step};
use crate::{
    Error, Kind, Result,
    profile::{Profile, ProfileRow},
};
use ash::vk;
use std::sync::{Arc, atomic::Ordering};

/// Stamps of a pool.
const POOL: usize = 1_024;
/// Commands that a profile keeps.
pub(super) const MOST: usize = 65_536;

/// A profile that is on.
#[derive(Debug)]
pub(super) struct Stamps {
    /// What was recorded, each with the number of the stamp at its end.
    rows: Vec<(usize, ProfileRow)>,
    /// Stamps so far.
    count: usize,
    pub(super) most: usize,
    dropped: u64,
}

impl Stamps {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }
}

impl Stream {
    /// Whether a profile is on.
    pub(crate) fn is_stamped(&self) -> bool {
        self.is_stamped.load(Ordering::Relaxed)
    }

    /// Has each command stamped from now on.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] where the device's queue has no clock, and bad input where that is done already.
    pub(crate) fn begin_stamps(&self) -> Result<()> {
        let name = &self.device.summary().name;
        if self.device.ticks().is_none() {
            let why = format!("{name} cannot be profiled: its queue has no timestamps");
            return Err(Error::new(Kind::Unsupported, why));
        }
        let mut open = self.open()?;
        if open.stamps.is_some() {
            let why = format!("expected no other profile of {name}, got: one that is on");
            return Err(Error::bad_input(why));
        }
        if open.pools.is_empty() {
            let pool = self.query_pool()?;
            open.pools.push(pool);
        }
        open.stamps = Some(Box::new(Stamps {
            rows: Vec::new(),
            count: 0,
            most: MOST,
            dropped: 0,
        }));
        if let Some(command_buffer) = open.command_buffer {
            self.stamp(&mut open, command_buffer);
        }
        self.is_stamped.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for what was recorded, and gives its times. No command is stamped from now on.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub(crate) fn end_stamps(&self) -> Result<Profile> {
        let mut open = self.open()?;
        let (last, pools) = (open.sequence, open.pools.clone());
        let stamps = open.stamps.as_mut().map(|stamps| {
            stamps.most = 0;
            (std::mem::take(&mut stamps.rows), stamps.dropped)
        });
        drop(open);
        let (rows, dropped) = stamps.unwrap_or_default();
        self.wait(last)?;
        let count = rows.last().map_or(0, |(end, _)| end + 1);
        let times = self.times(&pools, count)?;
        let ticks = self.device.ticks();
        let ticks = ticks.ok_or_else(|| self.device.lost_error())?;
        Ok(Profile::of(rows, &times, ticks, dropped))
    }

    /// Has no command stamped any more, whatever is known by then.
    pub(crate) fn forget_stamps(&self) {
        self.is_stamped.store(false, Ordering::Relaxed);
        // Of a lost device nothing is stamped.
        if let Ok(mut open) = self.open() {
            open.stamps = None;
        }
    }

    /// Stamps the start of what comes next, where a profile is on.
    pub(super) fn stamp_start(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        if open.stamps.as_ref().is_some_and(|stamps| !stamps.is_full()) {
            self.stamp(open, command_buffer);
        }
    }

    /// Stamps the end of a step that was just recorded, where a profile is on.
    pub(super) fn stamp_step(
        &self,
        open: &mut Open,
        command_buffer: vk::CommandBuffer,
        name: &Arc<str>,
        (index, steps): (usize, &[Step]),
    ) {
        let step = &steps[index];
        self.stamp_row(open, command_buffer, || ProfileRow {
            op: name.clone(),
            kernel: step.label.kernel.clone(),
            step: step.label.shader.clone(),
            index,
            steps: steps.len(),
            groups: step.counts.is_none().then_some(step.groups.into()),
            start_us: 0.0,
            us: 0.0,
        });
    }

    /// Stamps the end of a `copy`, `fill` or the like of so many bytes that was just recorded, where a profile is on.
    pub(super) fn stamp_bytes(
        &self,
        open: &mut Open,
        command_buffer: vk::CommandBuffer,
        what: &str,
        bytes: u64,
    ) {
        self.stamp_row(open, command_buffer, || ProfileRow {
            op: format!("{bytes} bytes").into(),
            kernel: "host".into(),
            step: what.into(),
            index: 0,
            steps: 0,
            groups: None,
            start_us: 0.0,
            us: 0.0,
        });
    }

    fn stamp_row(
        &self,
        open: &mut Open,
        command_buffer: vk::CommandBuffer,
        row: impl FnOnce() -> ProfileRow,
    ) {
        let Some(stamps) = &open.stamps else { return };
        let end = stamps.count;
        if !stamps.is_full() {
            self.stamp(open, command_buffer);
        }
        if let Some(stamps) = &mut open.stamps {
            match stamps.is_full() {
                true => stamps.dropped += 1,
                false => stamps.rows.push((end, row())),
            }
        }
    }

    /// Writes the next stamp. Where there is no pool for it the profile is full from then on.
    fn stamp(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        let Some(stamps) = &mut open.stamps else {
            return;
        };
        let (place, query) = (stamps.count / POOL, stamps.count % POOL);
        if open.pools.len() == place {
            match self.query_pool() {
                Ok(pool) => open.pools.push(pool),
                Err(_) => {
                    stamps.most = stamps.rows.len();
                    return;
                }
            }
        }
        stamps.count += 1;
        let (pool, fns) = (open.pools[place], self.device.vk.fns());
        // SAFETY: the primary command buffer is in the recording state, outside of a render pass; the pool lives as long as the
        // queue, and its queries are reset, in the order of the queue, before the first of them is written.
        unsafe {
            if query == 0 {
                (fns.v1_0.cmd_reset_query_pool)(command_buffer, pool, 0, POOL as u32);
            }
            (fns.v1_0.cmd_write_timestamp)(
                command_buffer,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                pool,
                query as u32,
            );
        }
    }

    fn query_pool(&self) -> Result<vk::QueryPool> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(POOL as u32);
        let mut pool = vk::QueryPool::null();
        let create = self.device.vk.fns().v1_0.create_query_pool;
        // SAFETY: the info is complete; the queue's Drop destroys the pool.
        let code = unsafe { create(self.device.handle(), &info, std::ptr::null(), &mut pool) };
        self.device.check("vkCreateQueryPool", code)?;
        Ok(pool)
    }

    /// The first `count` stamps, whose commands are done.
    fn times(&self, pools: &[vk::QueryPool], count: usize) -> Result<Vec<u64>> {
        let _inside = self.device.enter()?;
        let read = self.device.vk.fns().v1_0.get_query_pool_results;
        let mut times = vec![0u64; count];
        for (times, pool) in times.chunks_mut(POOL).zip(pools) {
            // SAFETY: the queries were written by commands that are done, and there is room for one word of each.
            let code = unsafe {
                read(
                    self.device.handle(),
                    *pool,
                    0,
                    times.len() as u32,
                    size_of_val(times),
                    times.as_mut_ptr().cast(),
                    size_of::<u64>() as u64,
                    vk::QueryResultFlags::TYPE_64,
                )
            };
            self.device.check("vkGetQueryPoolResults", code)?;
        }
        Ok(times)
    }
}

impl Open {
    /// Destroys the pools of stamps, of a queue whose work is done.
    pub(super) fn destroy_pools(&mut self, device: &crate::Device) {
        for pool in self.pools.drain(..) {
            let destroy = device.vk.fns().v1_0.destroy_query_pool;
            // SAFETY: what wrote to the pool is done, and it is ours.
            unsafe { destroy(device.handle(), pool, std::ptr::null()) };
        }
    }
}
