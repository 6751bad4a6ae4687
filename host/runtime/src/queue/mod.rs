//! The asynchronous queue: ops are recorded into an open command buffer and submitted in batches.
//!
//! Every recorded command gets a sequence number; a submission signals the timeline semaphore with the last
//! one it holds, so "done up to n" is one counter. A buffer remembers the numbers of its last read and write,
//! and a barrier is recorded only where an op depends on something since the last one.

mod commands;
mod timer;

use crate::{
    Error, Result,
    device::Device,
    memory::Buffer,
    pipeline::{Pipeline, Pipelines},
};
use ash::vk;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
pub(crate) use timer::Quiet;
use timer::Timer;
use vulkano::VulkanObject;

/// Commands after which an open command buffer is submitted.
const BATCH: u32 = 64;
/// An idle GPU gets work at once if it had none for this long; shorter gaps are left to the timer. A submission wakes
/// the driver's threads, which costs as much as recording many commands, so a busy GPU gets it in batches.
const IDLE: Duration = Duration::from_micros(30);
/// How long a wait spins before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// One compute dispatch, ready to record.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) groups: [u32; 3],
    pub(crate) args: Vec<StepArg>,
    pub(crate) push: Vec<u8>,
    /// Whether it depends on an earlier step of the same plan.
    pub(crate) barrier: bool,
}

/// Buffer argument of a step: which of the call's buffers, which range, how it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepArg {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
    /// 0 for the rest of the buffer.
    pub(crate) len: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The queue of one device. Safe to use from any number of threads.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    pool: vk::CommandPool,
    timeline: vk::Semaphore,
    completed: AtomicU64,
    open: Mutex<Open>,
    timer: Timer,
    timeout: Duration,
    submissions: AtomicU64,
    when_quiet: Quiet,
    /// Whether the host reads tensors in place, so that every submission must end visible to it.
    host_reads: bool,
}

#[derive(Debug)]
struct Open {
    command_buffer: Option<vk::CommandBuffer>,
    commands: u32,
    /// Number of the last recorded command.
    sequence: u64,
    submitted: u64,
    /// Commands up to here are ordered before whatever is recorded next.
    ordered: u64,
    bound: vk::Pipeline,
    /// The push constants that are in place.
    pushed: Vec<u8>,
    used: VecDeque<(u64, vk::CommandBuffer)>,
    /// When it was last submitted, or the GPU was seen at work.
    last_look: Instant,
    /// Why a submission failed, once one has.
    failure: Option<Error>,
}

impl Stream {
    /// The queue of `device`. With `host_reads` the host reads tensors' memory in place.
    pub(crate) fn new(
        device: &Arc<Device>,
        timeout: Duration,
        host_reads: bool,
        when_quiet: Quiet,
    ) -> Result<Arc<Stream>> {
        let fns = device.vk.fns();
        let mut stream = Stream {
            device: device.clone(),
            pool: vk::CommandPool::null(),
            timeline: vk::Semaphore::null(),
            completed: AtomicU64::new(0),
            open: Mutex::new(Open {
                command_buffer: None,
                commands: 0,
                sequence: 0,
                submitted: 0,
                ordered: 0,
                bound: vk::Pipeline::null(),
                pushed: Vec::new(),
                used: VecDeque::new(),
                last_look: Instant::now(),
                failure: None,
            }),
            timer: Timer::default(),
            timeout,
            submissions: AtomicU64::new(0),
            when_quiet,
            host_reads,
        };
        let pool_info = vk::CommandPoolCreateInfo::default()
            .flags(
                vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER
                    | vk::CommandPoolCreateFlags::TRANSIENT,
            )
            .queue_family_index(device.queue.queue_family_index());
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let semaphore_info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the infos are complete; Drop frees what was made.
        unsafe {
            device.check(
                "vkCreateCommandPool",
                (fns.v1_0.create_command_pool)(
                    device.handle(),
                    &pool_info,
                    std::ptr::null(),
                    &mut stream.pool,
                ),
            )?;
            device.check(
                "vkCreateSemaphore",
                (fns.v1_0.create_semaphore)(
                    device.handle(),
                    &semaphore_info,
                    std::ptr::null(),
                    &mut stream.timeline,
                ),
            )?;
        }
        let stream = Arc::new(stream);
        Timer::start(&stream)?;
        Ok(stream)
    }

    /// Records the steps of one plan over `buffers`; returns at once. The call's effects are ordered after
    /// everything recorded before it.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn record(
        &self,
        pipelines: &Pipelines,
        steps: &[Step],
        buffers: &[&Buffer],
    ) -> Result<()> {
        let mut open = self.lock();
        let start = open.sequence;
        for step in steps {
            let command_buffer = self.command_buffer(&mut open)?;
            let ordered = self.ordered(&open);
            let external = step.args.iter().any(|arg| {
                let buffer = buffers[arg.buffer];
                let depends = |last: &AtomicU64| {
                    let last = last.load(Ordering::Relaxed);
                    last > ordered && last <= start
                };
                depends(&buffer.last_write) || (arg.writes && depends(&buffer.last_read))
            });
            if external || (step.barrier && open.ordered < open.sequence) {
                self.barrier(&mut open, command_buffer);
            }
            self.dispatch(&mut open, command_buffer, pipelines, step, buffers);
            open.sequence += 1;
            open.commands += 1;
            for arg in &step.args {
                mark(buffers[arg.buffer], arg.reads, arg.writes, open.sequence);
            }
        }
        self.after_recording(open)
    }

    /// Submits what is recorded.
    pub(crate) fn flush(&self) -> Result<()> {
        self.submit(&mut self.lock())
    }

    /// Number of the last recorded command.
    pub(crate) fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// Highest number up to which all commands are done.
    pub(crate) fn completed(&self) -> Result<u64> {
        let mut value = 0;
        // SAFETY: the semaphore is a live timeline semaphore of this device.
        let code = unsafe {
            (self.device.vk.fns().v1_2.get_semaphore_counter_value)(
                self.device.handle(),
                self.timeline,
                &mut value,
            )
        };
        self.device.check("vkGetSemaphoreCounterValue", code)?;
        if value == u64::MAX {
            // A lost device may report any value.
            self.device.mark_lost();
            return Err(self.device.lost_error());
        }
        self.completed.fetch_max(value, Ordering::Relaxed);
        Ok(value)
    }

    /// The value `completed` last returned, without asking the driver.
    pub(crate) fn completed_hint(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Waits until command `number` is done. Submits it first if need be.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`] when the device fails or does not finish within the timeout.
    pub(crate) fn wait(&self, number: u64) -> Result<()> {
        if self.spin(number, SPIN)? {
            Ok(())
        } else {
            self.sleep(number)
        }
    }

    /// Submits command `number` if need be and spins until it is done; false when it is not within `budget`.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub(crate) fn spin(&self, number: u64, budget: Duration) -> Result<bool> {
        if self.completed_hint() >= number {
            return Ok(true);
        }
        {
            let mut open = self.lock();
            if open.submitted < number {
                self.submit(&mut open)?;
            }
        }
        let start = Instant::now();
        loop {
            if self.completed()? >= number {
                return Ok(true);
            }
            if start.elapsed() >= budget {
                return Ok(false);
            }
            std::hint::spin_loop();
        }
    }

    fn sleep(&self, number: u64) -> Result<()> {
        let (semaphores, values) = ([self.timeline], [number]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let fns = self.device.vk.fns();
        // SAFETY: the info outlives the call.
        let code = unsafe {
            (fns.v1_2.wait_semaphores)(self.device.handle(), &info, self.timeout.as_nanos() as u64)
        };
        match code {
            vk::Result::TIMEOUT => {
                self.device.mark_lost();
                Err(self.device.lost_error().context(format!(
                    "work did not finish within {} s",
                    self.timeout.as_secs_f32()
                )))
            }
            code => {
                self.device.check("vkWaitSemaphores", code)?;
                self.completed().map(|_| ())
            }
        }
    }

    /// Submissions so far.
    pub(crate) fn submissions(&self) -> u64 {
        self.submissions.load(Ordering::Relaxed)
    }

    fn after_recording(&self, mut open: MutexGuard<'_, Open>) -> Result<()> {
        if open.commands >= BATCH {
            self.submit(&mut open)?;
        } else if open.last_look.elapsed() > IDLE {
            open.last_look = Instant::now();
            if self.completed()? >= open.submitted {
                self.submit(&mut open)?;
            }
        }
        drop(open);
        self.timer.notify();
        Ok(())
    }

    fn command_buffer(&self, open: &mut Open) -> Result<vk::CommandBuffer> {
        if let Some(command_buffer) = open.command_buffer {
            return Ok(command_buffer);
        }
        if self.device.is_lost() {
            return Err(self.device.lost_error());
        }
        if let Some(error) = &open.failure {
            return Err(error.clone());
        }
        let fns = self.device.vk.fns();
        let reusable = match open.used.front() {
            Some((done, _)) if *done <= self.completed_hint() || *done <= self.completed()? => {
                open.used.pop_front()
            }
            _ => None,
        };
        let command_buffer = match reusable {
            Some((_, command_buffer)) => command_buffer,
            None => {
                let info = vk::CommandBufferAllocateInfo::default()
                    .command_pool(self.pool)
                    .level(vk::CommandBufferLevel::PRIMARY)
                    .command_buffer_count(1);
                let mut command_buffer = vk::CommandBuffer::null();
                // SAFETY: the pool is ours and used under the lock that is held.
                let code = unsafe {
                    (fns.v1_0.allocate_command_buffers)(
                        self.device.handle(),
                        &info,
                        &mut command_buffer,
                    )
                };
                self.device.check("vkAllocateCommandBuffers", code)?;
                command_buffer
            }
        };
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not in use; beginning it resets it.
        let code = unsafe { (fns.v1_0.begin_command_buffer)(command_buffer, &info) };
        self.device.check("vkBeginCommandBuffer", code)?;
        open.command_buffer = Some(command_buffer);
        open.bound = vk::Pipeline::null();
        open.pushed.clear();
        Ok(command_buffer)
    }

    fn submit(&self, open: &mut Open) -> Result<()> {
        let Some(command_buffer) = open.command_buffer.take() else {
            return match &open.failure {
                Some(error) => Err(error.clone()),
                None => Ok(()),
            };
        };
        let fns = self.device.vk.fns();
        if self.host_reads {
            self.barrier_to_host(command_buffer, commands::DEVICE_STAGES);
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
            self.device.mark_lost();
            open.failure = Some(error.clone());
            return Err(error);
        }
        open.used.push_back((open.sequence, command_buffer));
        open.submitted = open.sequence;
        open.last_look = Instant::now();
        self.submissions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(buffer: &Buffer, reads: bool, writes: bool, sequence: u64) {
    if reads {
        buffer.last_read.store(sequence, Ordering::Relaxed);
    }
    if writes {
        buffer.last_write.store(sequence, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Stream {
    fn drop(&mut self) {
        let last = self.sequence();
        if !self.device.is_lost() && self.wait(last).is_err() {
            // The device is gone; destroying its objects is still allowed.
            self.device.mark_lost();
        }
        let fns = self.device.vk.fns();
        // SAFETY: all submitted work is done or the device is lost; both handles are ours.
        unsafe {
            (fns.v1_0.destroy_command_pool)(self.device.handle(), self.pool, std::ptr::null());
            (fns.v1_0.destroy_semaphore)(self.device.handle(), self.timeline, std::ptr::null());
        }
    }
}
