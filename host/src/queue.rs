//! The asynchronous queue: ops are recorded into an open command buffer and submitted in batches.
//!
//! Every recorded command gets a sequence number; a submission signals the timeline semaphore with the last
//! one it holds, so "done up to n" is one counter. A buffer remembers the numbers of its last read and write,
//! and a barrier is recorded only where an op depends on something since the last one.

use crate::{
    Error, Kind, Result,
    device::Device,
    memory::Buffer,
    pipeline::{Pipeline, Pipelines},
};
use ash::vk;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use vulkano::VulkanObject;

/// Commands after which an open command buffer is submitted.
const BATCH: u32 = 48;
/// An idle GPU gets work at once if it had none for this long; shorter gaps are left to the timer.
const IDLE: Duration = Duration::from_micros(30);
/// How often the timer looks at an open command buffer.
const TICK: Duration = Duration::from_micros(60);
/// Ticks without work after which the timer sleeps until it is woken.
const QUIET_TICKS: u32 = 40;
const DEVICE_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
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

/// Work for the timer's thread while nothing is being recorded.
pub(crate) struct Quiet(pub(crate) Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Quiet")
    }
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
    used: VecDeque<(u64, vk::CommandBuffer)>,
    last_submit: Instant,
    /// Why a submission failed, once one has.
    failure: Option<Error>,
}

#[derive(Debug, Default)]
struct Timer {
    sleeping: AtomicBool,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Streams whose timers must stop before the driver's own exit handlers run.
static LIVE: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

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
                used: VecDeque::new(),
                last_submit: Instant::now(),
                failure: None,
            }),
            timer: Timer::default(),
            timeout,
            submissions: AtomicU64::new(0),
            when_quiet,
            host_reads,
        };
        let pool_info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(device.queue.queue_family_index());
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let semaphore_info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the infos are complete; Drop frees what was made.
        unsafe {
            device.check(
                "vkCreateCommandPool",
                (fns.v1_0.create_command_pool)(device.handle(), &pool_info, std::ptr::null(), &mut stream.pool),
            )?;
            device.check(
                "vkCreateSemaphore",
                (fns.v1_0.create_semaphore)(device.handle(), &semaphore_info, std::ptr::null(), &mut stream.timeline),
            )?;
        }
        let stream = Arc::new(stream);
        let weak = Arc::downgrade(&stream);
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-timer".to_owned())
            .spawn({
                let weak = weak.clone();
                move || run_timer(&weak)
            })
            .map_err(|e| Error::new(Kind::Io, format!("the submission timer could not be started: {e}")))?;
        *lock(&stream.timer.thread) = Some(thread);
        stop_at_exit(weak);
        Ok(stream)
    }

    /// Ends the timer's thread, so that nothing of the queue runs in the background any more.
    pub(crate) fn stop_timer(&self) {
        self.timer.stop.store(true, Ordering::Release);
        self.timer.notify();
        if let Some(thread) = lock(&self.timer.thread).take() {
            // A timer that panicked has stopped too.
            drop(thread.join());
        }
    }

    /// Records the steps of one plan over `buffers`; returns at once. The call's effects are ordered after
    /// everything recorded before it.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn record(&self, pipelines: &Pipelines, steps: &[Step], buffers: &[&Buffer]) -> Result<()> {
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

    /// Records a copy of `len` bytes. With `to_host` the host may read the copy once it is done.
    pub(crate) fn copy(
        &self,
        from: (&Buffer, u64),
        to: (&Buffer, u64),
        len: u64,
        to_host: bool,
    ) -> Result<()> {
        let regions = [vk::BufferCopy {
            src_offset: from.0.location().1 + from.1,
            dst_offset: to.0.location().1 + to.1,
            size: len,
        }];
        self.transfer(&[from.0], to.0, |fns, command_buffer| {
            // SAFETY: both ranges lie in live buffers of this device; a command buffer is open.
            unsafe {
                (fns.v1_0.cmd_copy_buffer)(
                    command_buffer,
                    from.0.location().0,
                    to.0.location().0,
                    1,
                    regions.as_ptr(),
                );
            }
            if to_host {
                self.barrier_to_host(command_buffer);
            }
        })
    }

    /// Records a write of `bytes`, at most 65,536 of them and a multiple of four, into the start of `to`.
    pub(crate) fn update(&self, to: &Buffer, bytes: &[u8]) -> Result<()> {
        let (buffer, offset) = to.location();
        self.transfer(&[], to, |fns, command_buffer| {
            // SAFETY: the range lies in a live buffer; the driver copies `bytes` during the call.
            unsafe {
                (fns.v1_0.cmd_update_buffer)(
                    command_buffer,
                    buffer,
                    offset,
                    bytes.len() as u64,
                    bytes.as_ptr().cast(),
                );
            }
        })
    }

    /// Records a fill of the whole buffer with zeros.
    pub(crate) fn zero(&self, to: &Buffer) -> Result<()> {
        let (buffer, offset) = to.location();
        self.transfer(&[], to, |fns, command_buffer| {
            // SAFETY: blocks are multiples of 256 bytes, so rounding up to four bytes stays inside.
            unsafe {
                (fns.v1_0.cmd_fill_buffer)(command_buffer, buffer, offset, to.len().next_multiple_of(4), 0);
            }
        })
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
            (self.device.vk.fns().v1_2.get_semaphore_counter_value)(self.device.handle(), self.timeline, &mut value)
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
        if self.spin(number, SPIN)? { Ok(()) } else { self.sleep(number) }
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
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
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

    fn transfer(
        &self,
        from: &[&Buffer],
        to: &Buffer,
        command: impl FnOnce(&vulkano::device::DeviceFunctions, vk::CommandBuffer),
    ) -> Result<()> {
        let mut open = self.lock();
        let command_buffer = self.command_buffer(&mut open)?;
        let ordered = self.ordered(&open);
        let since = |last: &AtomicU64| last.load(Ordering::Relaxed) > ordered;
        if from.iter().any(|b| since(&b.last_write)) || since(&to.last_write) || since(&to.last_read) {
            self.barrier(&mut open, command_buffer);
        }
        command(self.device.vk.fns(), command_buffer);
        open.sequence += 1;
        open.commands += 1;
        for buffer in from {
            mark(buffer, true, false, open.sequence);
        }
        mark(to, false, true, open.sequence);
        self.after_recording(open)
    }

    fn dispatch(
        &self,
        open: &mut Open,
        command_buffer: vk::CommandBuffer,
        pipelines: &Pipelines,
        step: &Step,
        buffers: &[&Buffer],
    ) {
        let fns = self.device.vk.fns();
        let layout = step.pipeline.layout();
        let mut infos = [vk::DescriptorBufferInfo::default(); crate::plan::MAX_BINDINGS];
        for (info, arg) in infos.iter_mut().zip(&step.args) {
            let buffer = buffers[arg.buffer];
            let (handle, start) = buffer.location();
            *info = vk::DescriptorBufferInfo {
                buffer: handle,
                offset: start + arg.offset,
                range: if arg.len == 0 { buffer.len() - arg.offset } else { arg.len },
            };
        }
        let mut write = vk::WriteDescriptorSet::default().descriptor_type(vk::DescriptorType::STORAGE_BUFFER);
        write.descriptor_count = 1;
        let mut writes = [write; crate::plan::MAX_BINDINGS];
        for (binding, write) in writes.iter_mut().enumerate().take(step.args.len()) {
            write.dst_binding = binding as u32;
            write.p_buffer_info = &infos[binding];
        }
        // SAFETY: the plan was validated against the pipeline's layout and the buffers' sizes; the command buffer
        // is in the recording state; the driver copies the descriptors and push constants during the calls.
        unsafe {
            if open.bound != step.pipeline.handle() {
                (fns.v1_0.cmd_bind_pipeline)(
                    command_buffer,
                    vk::PipelineBindPoint::COMPUTE,
                    step.pipeline.handle(),
                );
                open.bound = step.pipeline.handle();
            }
            if !step.args.is_empty() {
                (pipelines.push_descriptor())(
                    command_buffer,
                    vk::PipelineBindPoint::COMPUTE,
                    layout,
                    0,
                    step.args.len() as u32,
                    writes.as_ptr(),
                );
            }
            if !step.push.is_empty() {
                (fns.v1_0.cmd_push_constants)(
                    command_buffer,
                    layout,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    step.push.len() as u32,
                    step.push.as_ptr().cast(),
                );
            }
            let [x, y, z] = step.groups;
            (fns.v1_0.cmd_dispatch)(command_buffer, x, y, z);
        }
    }

    /// Commands up to here need no barrier: one was recorded, or the host saw them done.
    fn ordered(&self, open: &Open) -> u64 {
        open.ordered.max(self.completed_hint())
    }

    /// Orders everything recorded so far before everything recorded later.
    fn barrier(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        let access = vk::AccessFlags::SHADER_READ
            | vk::AccessFlags::SHADER_WRITE
            | vk::AccessFlags::TRANSFER_READ
            | vk::AccessFlags::TRANSFER_WRITE;
        self.pipeline_barrier(command_buffer, DEVICE_STAGES, access);
        open.ordered = open.sequence;
    }

    /// Makes what was written so far visible to the host once it sees the commands done.
    fn barrier_to_host(&self, command_buffer: vk::CommandBuffer) {
        self.pipeline_barrier(command_buffer, vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ);
    }

    fn pipeline_barrier(
        &self,
        command_buffer: vk::CommandBuffer,
        to: vk::PipelineStageFlags,
        access: vk::AccessFlags,
    ) {
        let barrier = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(access);
        // SAFETY: the command buffer is in the recording state; the barrier outlives the call.
        unsafe {
            (self.device.vk.fns().v1_0.cmd_pipeline_barrier)(
                command_buffer,
                DEVICE_STAGES,
                to,
                vk::DependencyFlags::empty(),
                1,
                &barrier,
                0,
                std::ptr::null(),
                0,
                std::ptr::null(),
            );
        }
    }

    fn after_recording(&self, mut open: MutexGuard<'_, Open>) -> Result<()> {
        if open.commands >= BATCH || open.last_submit.elapsed() > IDLE {
            self.submit(&mut open)?;
        }
        drop(open);
        self.timer.notify();
        Ok(())
    }

    /// Submits an open command buffer if there is one. Returns whether the timer has to look again soon.
    fn tick(&self) -> bool {
        let Ok(mut open) = self.open.try_lock() else { return true };
        if open.commands == 0 {
            return false;
        }
        if let Err(error) = self.submit(&mut open) {
            open.failure.get_or_insert(error);
        }
        true
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
            Some((done, _)) if *done <= self.completed_hint() || *done <= self.completed()? => open.used.pop_front(),
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
                    (fns.v1_0.allocate_command_buffers)(self.device.handle(), &info, &mut command_buffer)
                };
                self.device.check("vkAllocateCommandBuffers", code)?;
                command_buffer
            }
        };
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not in use; beginning it resets it.
        let code = unsafe { (fns.v1_0.begin_command_buffer)(command_buffer, &info) };
        self.device.check("vkBeginCommandBuffer", code)?;
        open.command_buffer = Some(command_buffer);
        open.bound = vk::Pipeline::null();
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
            self.barrier_to_host(command_buffer);
        }
        // SAFETY: the command buffer is in the recording state.
        let code = unsafe { (fns.v1_0.end_command_buffer)(command_buffer) };
        open.commands = 0;
        let result = self.device.check("vkEndCommandBuffer", code).and_then(|()| {
            let (command_buffers, signals, values) = ([command_buffer], [self.timeline], [open.sequence]);
            let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
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
        open.last_submit = Instant::now();
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

fn run_timer(stream: &Weak<Stream>) {
    let mut quiet = 0;
    while let Some(stream) = stream.upgrade() {
        if stream.timer.stop.load(Ordering::Acquire) {
            return;
        }
        quiet = if stream.tick() { 0 } else { quiet + 1 };
        if quiet < QUIET_TICKS {
            drop(stream);
            std::thread::sleep(TICK);
        } else {
            (stream.when_quiet.0)();
            stream.timer.sleep();
            quiet = 0;
        }
    }
}

/// A driver tears itself down in an exit handler; a thread of ours that is inside it then would crash the process.
/// Ours is registered after the driver's, so it runs first.
fn stop_at_exit(stream: Weak<Stream>) {
    extern "C" fn stop_all() {
        for stream in lock(&LIVE).drain(..).filter_map(|weak| weak.upgrade()) {
            stream.stop_timer();
        }
    }
    static REGISTER: Once = Once::new();
    // SAFETY: the handler is a plain function of a library that stays loaded.
    REGISTER.call_once(|| unsafe {
        libc::atexit(stop_all);
    });
    let mut live = lock(&LIVE);
    live.retain(|weak| weak.strong_count() > 0);
    live.push(stream);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Timer {
    fn notify(&self) {
        if self.sleeping.load(Ordering::Acquire) {
            let _guard = lock(&self.lock);
            self.wake.notify_one();
        }
    }

    /// Sleeps until something is recorded. The time limit covers work recorded just before `sleeping` was set.
    fn sleep(&self) {
        let guard = lock(&self.lock);
        self.sleeping.store(true, Ordering::Release);
        let result = self.wake.wait_timeout(guard, Duration::from_millis(100));
        self.sleeping.store(false, Ordering::Release);
        drop(result);
    }
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
