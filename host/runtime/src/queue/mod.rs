//! The asynchronous queue: ops are recorded into an open command buffer and submitted in batches.
//!
//! Every recorded command gets a sequence number; a submission signals the timeline semaphore with the last
//! one it holds, so "done up to n" is one counter. A buffer remembers the numbers of its last read and write,
//! and a barrier is recorded only where an op depends on something since the last one.

mod background;
mod batch;
mod commands;
mod named;
mod progress;
mod replay;
mod stamps;
mod step;
#[cfg(test)]
mod tests;
mod timer;
mod wait;
mod waves;

use crate::{Error, Result, device::Device, exit, memory::Buffer, pipeline::Pipelines};
use ash::vk;
use batch::STUCK;
use named::Names;
use parking_lot::{Mutex, MutexGuard};
use progress::Clock;
pub(crate) use replay::{Around, Call, Captured, Copy};
use stamps::Stamps;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
pub(crate) use step::{Bound, Counts, Label, Step, StepArg};
pub(crate) use timer::Quiet;
use timer::Timer;
pub(crate) use waves::Order;

/// An idle GPU gets work if it had none for this long; shorter gaps are left to the timer. A submission wakes the
/// driver's threads, which costs as much as recording several commands, so a busy GPU gets it in batches.
const IDLE: Duration = Duration::from_micros(30);
/// An idle GPU gets the first command of a burst at once, then two, four and at last this many: what issues commands more
/// slowly than they run is not held up by submissions, and little is left to do when it ends.
const EAGER: u32 = 16;

const DEVICE_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);

/// The queue of one device. Safe to use from any number of threads.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    pool: vk::CommandPool,
    timeline: vk::Semaphore,
    completed: AtomicU64,
    /// Number of the last recorded command, as of the last call that recorded.
    recorded: AtomicU64,
    /// Submissions that were not seen done when the last one was made.
    in_flight: AtomicUsize,
    /// Commands that a batch may have now.
    batch: AtomicU32,
    open: Mutex<Open>,
    clock: Mutex<Clock>,
    timer: Timer,
    /// How long a command may take.
    timeout: Duration,
    submissions: AtomicU64,
    when_quiet: Quiet,
    /// Whether the host reads tensors in place, so that every submission must end visible to it.
    host_reads: bool,
    /// Whether a profile is on.
    is_stamped: AtomicBool,
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
    /// Whether a command wrote what the host reads in place.
    reports: bool,
    state: State,
    /// Command buffers that are run again and again, each with the number after which it was given up.
    retired: Vec<(u64, vk::CommandBuffer)>,
    used: VecDeque<(u64, vk::CommandBuffer)>,
    names: Names,
    /// When it was last submitted, or the GPU was seen at work.
    last_look: Instant,
    /// With so many commands it is submitted to an idle GPU.
    eager: u32,
    /// Why a submission failed, once one has.
    failure: Option<Error>,
    /// The profile that is on.
    stamps: Option<Box<Stamps>>,
    /// Pools of stamps, which serve one profile after the other.
    pools: Vec<vk::QueryPool>,
}

/// What stays in force from one command of a command buffer to the next.
#[derive(Debug, Default)]
struct State {
    bound: vk::Pipeline,
    /// The push constants that are in place.
    pushed: Vec<u8>,
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
        let clock = Clock::new(Instant::now(), device.summary().kind);
        let mut stream = Stream {
            device: device.clone(),
            pool: vk::CommandPool::null(),
            timeline: vk::Semaphore::null(),
            completed: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            open: Mutex::new(Open {
                command_buffer: None,
                commands: 0,
                sequence: 0,
                submitted: 0,
                ordered: 0,
                reports: false,
                state: State::default(),
                retired: Vec::new(),
                used: VecDeque::new(),
                names: Names::default(),
                last_look: Instant::now(),
                eager: 1,
                failure: None,
                stamps: None,
                pools: Vec::new(),
            }),
            batch: AtomicU32::new(clock.batch),
            clock: Mutex::new(clock),
            timer: Timer::default(),
            timeout,
            submissions: AtomicU64::new(0),
            when_quiet,
            host_reads,
            is_stamped: AtomicBool::new(false),
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
        stream.start_timer()?;
        exit::stop_at_exit(Arc::<Stream>::downgrade(&stream));
        Ok(stream)
    }

    /// Records the steps of one plan over `buffers`, which are known as `name`; returns at once. The call's effects are
    /// ordered after everything recorded before it.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn record(
        &self,
        pipelines: &Pipelines,
        name: &Arc<str>,
        steps: &[Step],
        buffers: &[Bound<'_>],
    ) -> Result<()> {
        let mut open = self.open()?;
        let mut command_buffer = self.command_buffer(&mut open)?;
        let batch = self.batch.load(Ordering::Relaxed);
        let first = open.sequence + 1;
        for (index, step) in steps.iter().enumerate() {
            if open.commands >= batch {
                // A plan may have thousands: all in one batch would take longer than drivers and whoever looks allow one.
                command_buffer = self.next_command_buffer(&mut open)?;
            }
            let ordered = self.ordered(&open);
            let external = step.args.iter().any(|arg| {
                let buffer = buffers[arg.buffer].buffer;
                let depends = |last: &AtomicU64| last.load(Ordering::Relaxed) > ordered;
                depends(&buffer.last_write) || (arg.writes && depends(&buffer.last_read))
            });
            if step.counts.is_some() {
                self.barrier_to_counts(&mut open, command_buffer);
            } else if external || (step.barrier && open.ordered < open.sequence) {
                self.barrier(&mut open, command_buffer);
            }
            self.dispatch(&mut open.state, command_buffer, pipelines, step, buffers);
            self.stamp_step(&mut open, command_buffer, name, (index, steps));
            open.sequence += 1;
            open.commands += 1;
            open.reports |= step.reports;
        }
        // Only now: a step that used a buffer must not hide from the next one what others did to it before. What the
        // steps do to each other, their own flag says.
        for (number, step) in (first..).zip(steps) {
            for arg in &step.args {
                mark(buffers[arg.buffer].buffer, arg.reads, arg.writes, number);
            }
            if let Some(counts) = step.counts {
                mark(buffers[counts.buffer].buffer, true, false, number);
            }
        }
        let last = open.sequence;
        open.names.note(last, name, self.completed_hint());
        self.after_recording(open)
    }

    /// Submits what is recorded.
    pub(crate) fn flush(&self) -> Result<()> {
        self.submit(&mut *self.open()?)
    }

    /// Number of the last recorded command.
    pub(crate) fn sequence(&self) -> u64 {
        let recorded = |_| self.recorded.load(Ordering::Relaxed);
        self.open().map_or_else(recorded, |open| open.sequence)
    }

    /// The same, where nobody else is inside the queue.
    pub(crate) fn try_sequence(&self) -> Option<u64> {
        self.open.try_lock_for(STUCK).map(|open| open.sequence)
    }

    /// Submissions so far.
    pub(crate) fn submissions(&self) -> u64 {
        self.submissions.load(Ordering::Relaxed)
    }

    fn after_recording(&self, mut open: MutexGuard<'_, Open>) -> Result<()> {
        self.recorded.store(open.sequence, Ordering::Relaxed);
        if open.commands >= self.batch.load(Ordering::Relaxed) {
            self.submit(&mut open)?;
        } else if open.commands >= open.eager && open.last_look.elapsed() > IDLE {
            open.last_look = Instant::now();
            if self.counter()? >= open.submitted {
                self.submit(&mut open)?;
                open.eager = (2 * open.eager).min(EAGER);
            }
        }
        drop(open);
        self.timer.notify();
        Ok(())
    }
}

impl Open {
    /// The last numbers of the submissions that have commands after `done`, in order.
    fn unfinished(&self, done: u64) -> impl ExactSizeIterator<Item = u64> {
        let finished = self.used.partition_point(|(last, _)| *last <= done);
        self.used.range(finished..).map(|(last, _)| *last)
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

impl Drop for Stream {
    fn drop(&mut self) {
        // What is destroyed must be done with; what never gets done is kept.
        if self.wait(self.sequence()).is_err() {
            return;
        }
        let Some(_inside) = self.device.enter_to_destroy() else {
            return;
        };
        let fns = self.device.vk.fns();
        self.open.get_mut().destroy_pools(&self.device);
        // SAFETY: all submitted work is done; both handles are ours.
        unsafe {
            (fns.v1_0.destroy_command_pool)(self.device.handle(), self.pool, std::ptr::null());
            (fns.v1_0.destroy_semaphore)(self.device.handle(), self.timeline, std::ptr::null());
        }
    }
}
