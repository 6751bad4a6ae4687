//! What is recorded and not yet submitted: one command buffer, for one thread at a time.

use super::{DEVICE_STAGES, Open, State, Stream};
use crate::Result;
use ash::vk;
use parking_lot::MutexGuard;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use vulkano::VulkanObject;

/// How long a thread waits for another one before it looks whether the device is lost.
pub(super) const STUCK: Duration = Duration::from_millis(50);

impl Stream {
    /// What is recorded now, once nobody else is at it. Whoever is may be stuck in the driver.
    pub(super) fn open(&self) -> Result<MutexGuard<'_, Open>> {
        loop {
            if let Some(open) = self.open.try_lock_for(STUCK) {
                return Ok(open);
            }
            // Nobody else may look meanwhile.
            self.look()?;
        }
    }

    /// The command buffer to record into. The lock that is held keeps the end of the process waiting.
    pub(super) fn command_buffer(&self, open: &mut Open) -> Result<vk::CommandBuffer> {
        self.device.usable()?;
        if let Some(command_buffer) = open.command_buffer {
            return Ok(command_buffer);
        }
        if let Some(error) = &open.failure {
            return Err(error.clone());
        }
        let fns = self.device.vk.fns();
        let reusable = match open.used.front() {
            Some((done, _)) if *done <= self.completed_hint() || *done <= self.counter()? => {
                open.used.pop_front()
            }
            _ => None,
        };
        let command_buffer = match reusable {
            Some((_, command_buffer)) => command_buffer,
            None => self.allocate(vk::CommandBufferLevel::PRIMARY)?,
        };
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not in use; beginning it resets it.
        let code = unsafe { (fns.v1_0.begin_command_buffer)(command_buffer, &info) };
        self.device.check("vkBeginCommandBuffer", code)?;
        open.command_buffer = Some(command_buffer);
        open.state = State::default();
        self.stamp_start(open, command_buffer);
        Ok(command_buffer)
    }

    /// The command buffer for what is left of a plan whose first commands are submitted by it.
    pub(super) fn next_command_buffer(&self, open: &mut Open) -> Result<vk::CommandBuffer> {
        self.submit(open)?;
        // Nobody is told what the first commands wrote, so that nothing may follow them.
        self.command_buffer(open).inspect_err(|error| {
            self.device
                .mark_lost(format!("work was submitted in part: {error}"));
        })
    }

    pub(super) fn allocate(&self, level: vk::CommandBufferLevel) -> Result<vk::CommandBuffer> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(level)
            .command_buffer_count(1);
        let mut command_buffer = vk::CommandBuffer::null();
        let allocate = self.device.vk.fns().v1_0.allocate_command_buffers;
        // SAFETY: the pool is ours and used under the lock that is held.
        let code = unsafe { allocate(self.device.handle(), &info, &mut command_buffer) };
        self.device.check("vkAllocateCommandBuffers", code)?;
        Ok(command_buffer)
    }

    /// Submits what is recorded, if anything is.
    pub(super) fn submit(&self, open: &mut Open) -> Result<()> {
        self.device.usable()?;
        let Some(command_buffer) = open.command_buffer.take() else {
            return match &open.failure {
                Some(error) => Err(error.clone()),
                None => Ok(()),
            };
        };
        let fns = self.device.vk.fns();
        if self.host_reads || std::mem::take(&mut open.reports) {
            self.barrier_to_host(command_buffer, DEVICE_STAGES);
        }
        // SAFETY: the command buffer is in the recording state.
        let code = unsafe { (fns.v1_0.end_command_buffer)(command_buffer) };
        open.commands = 0;
        let result = self
            .device
            .check("vkEndCommandBuffer", code)
            .and_then(|()| {
                let (command_buffers, signals, values) =
                    ([command_buffer], [self.timeline], [open.sequence]);
                let mut timeline =
                    vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
                let info = vk::SubmitInfo::default()
                    .command_buffers(&command_buffers)
                    .signal_semaphores(&signals)
                    .push_next(&mut timeline);
                // SAFETY: the queue is locked for the call; everything the info points to outlives it.
                let code = self.device.queue.with(|_guard| unsafe {
                    (fns.v1_0.queue_submit)(self.device.queue.handle(), 1, &info, vk::Fence::null())
                });
                self.device.check("vkQueueSubmit", code)
            });
        if let Err(error) = result {
            // Work is lost: nothing after this can be trusted.
            self.device
                .mark_lost(format!("work could not be submitted: {error}"));
            open.failure = Some(error.clone());
            return Err(error);
        }
        open.used.push_back((open.sequence, command_buffer));
        open.submitted = open.sequence;
        open.last_look = Instant::now();
        let in_flight = open.unfinished(self.completed_hint()).len();
        self.in_flight.store(in_flight, Ordering::Relaxed);
        self.submissions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
