//! Commands that are recorded once and run any number of times, in secondary command buffers: a driver takes a microsecond and more
//! to record a dispatch, and next to nothing to run one again.

use super::{
    Open, State, Stream,
    commands::Later,
    mark,
    step::{Bound, Step},
};
use crate::{Result, memory::Buffer, pipeline::Pipelines};
use ash::vk;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

/// The steps of one plan, the [waves](super::waves) that they run in, and the buffers that they run over.
pub(crate) struct Call<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) steps: &'a [Step],
    pub(crate) waves: &'a [u32],
    pub(crate) buffers: Vec<Bound<'a>>,
}

/// Commands that were recorded once. All buffers in them have to live, and nobody else may write them, whenever they run.
#[derive(Debug)]
pub(crate) struct Captured {
    stream: Weak<Stream>,
    pieces: Vec<Piece>,
    /// The requests, each with the number of its last command.
    names: Vec<(u64, Arc<str>)>,
    /// The last command of the last run.
    last: AtomicU64,
}

/// As many commands as a batch might have when they were recorded.
#[derive(Debug)]
struct Piece {
    command_buffer: vk::CommandBuffer,
    commands: u32,
}

/// Bytes that are copied before or after a run, from the first one of a buffer on.
pub(crate) struct Copy<'a> {
    pub(crate) from: &'a Buffer,
    /// The first byte in `from`.
    pub(crate) start: u64,
    pub(crate) to: &'a Buffer,
    pub(crate) len: u64,
}

/// What belongs to one run of captured commands.
pub(crate) struct Around<'a> {
    /// Copied before it.
    pub(crate) before: &'a [Copy<'a>],
    /// Filled with zeros before it.
    pub(crate) zeroed: &'a [&'a Buffer],
    /// What the commands read and nobody writes.
    pub(crate) reads: &'a mut dyn Iterator<Item = &'a Buffer>,
    /// What they read and write.
    pub(crate) own: &'a [Arc<Buffer>],
    /// Copied after it.
    pub(crate) after: &'a [Copy<'a>],
    /// Whether the host reads in place what is copied after it.
    pub(crate) reports: bool,
}

impl Stream {
    /// Records `calls`, to be run by [`Stream::replay`], wave by wave. Nothing runs yet.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn capture(
        self: &Arc<Self>,
        pipelines: &Pipelines,
        calls: &[Call<'_>],
    ) -> Result<Captured> {
        let mut captured = Captured {
            stream: Arc::downgrade(self),
            pieces: Vec::new(),
            names: Vec::with_capacity(calls.len()),
            last: AtomicU64::new(0),
        };
        let mut open = self.open.lock();
        let recorded = self.capture_into(&mut captured, &mut open, pipelines, calls);
        // What was made by then is given up without the lock.
        drop(open);
        recorded.map(|()| captured)
    }

    fn capture_into(
        &self,
        captured: &mut Captured,
        open: &mut Open,
        pipelines: &Pipelines,
        calls: &[Call<'_>],
    ) -> Result<()> {
        self.device.usable()?;
        let mut commands: Vec<(u32, &Call<'_>, &Step)> = Vec::new();
        for call in calls {
            let own = call.waves.iter().zip(call.steps);
            commands.extend(own.map(|(wave, step)| (*wave, call, step)));
        }
        // Those of one wave stay in the order that they came in.
        commands.sort_by_key(|(wave, ..)| *wave);
        let most = self.batch.load(Ordering::Relaxed);
        let mut state = State::default();
        let mut sequence = 0;
        for wave in commands.chunk_by(|a, b| a.0 == b.0) {
            // The first one is ordered after all that was before, but for its workgroup counts.
            let mut later = match wave.iter().any(|(_, _, step)| step.counts.is_some()) {
                true => Some(Later::Counts),
                false => (sequence > 0).then_some(Later::Commands),
            };
            for (_, call, step) in wave {
                let full = |piece: &Piece| piece.commands >= most;
                if captured.pieces.last().is_none_or(full) {
                    self.end(captured.pieces.last())?;
                    let command_buffer = self.secondary(open)?;
                    captured.pieces.push(Piece {
                        command_buffer,
                        commands: 0,
                    });
                    self.begin(command_buffer)?;
                    state = State::default();
                }
                let Some(piece) = captured.pieces.last_mut() else {
                    continue;
                };
                if let Some(later) = later.take() {
                    self.order(piece.command_buffer, later);
                }
                self.dispatch(
                    &mut state,
                    piece.command_buffer,
                    pipelines,
                    step,
                    &call.buffers,
                );
                piece.commands += 1;
                sequence += 1;
                match captured.names.last_mut() {
                    Some((last, name)) if Arc::ptr_eq(name, call.name) => *last = sequence,
                    _ => captured.names.push((sequence, call.name.clone())),
                }
            }
        }
        self.end(captured.pieces.last())
    }

    /// A secondary command buffer that nothing is recorded in.
    fn secondary(&self, open: &mut Open) -> Result<vk::CommandBuffer> {
        let done = self.completed_hint();
        if let Some(at) = open.retired.iter().position(|(last, _)| *last <= done) {
            return Ok(open.retired.swap_remove(at).1);
        }
        self.allocate(vk::CommandBufferLevel::SECONDARY)
    }

    fn begin(&self, command_buffer: vk::CommandBuffer) -> Result<()> {
        let inheritance = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
            .inheritance_info(&inheritance);
        let begin = self.device.vk.fns().v1_0.begin_command_buffer;
        // SAFETY: the command buffer is not in use; beginning it resets it; the infos outlive the call.
        let code = unsafe { begin(command_buffer, &info) };
        self.device.check("vkBeginCommandBuffer", code)
    }

    fn end(&self, piece: Option<&Piece>) -> Result<()> {
        let Some(piece) = piece else { return Ok(()) };
        // SAFETY: the command buffer is in the recording state.
        let code = unsafe { (self.device.vk.fns().v1_0.end_command_buffer)(piece.command_buffer) };
        self.device.check("vkEndCommandBuffer", code)
    }

    /// Runs captured commands, and what belongs to this run; returns at once. All of it is ordered after everything recorded
    /// before, and before everything recorded later.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn replay(&self, captured: &Captured, around: Around<'_>) -> Result<()> {
        let fns = self.device.vk.fns();
        let mut open = self.open.lock();
        let mut command_buffer = self.command_buffer(&mut open)?;
        if !around.before.is_empty() || !around.zeroed.is_empty() {
            self.barrier_where_needed(&mut open, command_buffer);
            self.copies(&mut open, command_buffer, around.before);
        }
        for &buffer in around.zeroed {
            let (handle, offset) = buffer.location();
            let len = buffer.len().next_multiple_of(4);
            // SAFETY: blocks are multiples of 256 bytes, so rounding up to four bytes stays inside; a command buffer is open.
            unsafe { (fns.v1_0.cmd_fill_buffer)(command_buffer, handle, offset, len, 0) };
            open.sequence += 1;
            open.commands += 1;
        }
        self.barrier_where_needed(&mut open, command_buffer);
        let start = open.sequence;
        let last = start + captured.commands();
        // Whatever comes of it: from the first piece on they may be in use.
        captured.last.store(last, Ordering::Relaxed);
        around
            .reads
            .for_each(|buffer| mark(buffer, true, false, last));
        for buffer in around.own {
            mark(buffer, true, true, last);
        }
        let done = self.completed_hint();
        for (end, name) in &captured.names {
            open.names.note(start + end, name, done);
        }
        for piece in &captured.pieces {
            if open.commands >= self.batch.load(Ordering::Relaxed) {
                self.submit(&mut open)?;
                command_buffer = self.command_buffer(&mut open).inspect_err(|error| {
                    // Half of it was submitted, and nobody can wait for the other half.
                    self.device
                        .mark_lost(format!("recorded work could not be submitted: {error}"));
                })?;
            }
            // SAFETY: the piece was recorded to the end, for use by several at once; a command buffer is open.
            unsafe { (fns.v1_0.cmd_execute_commands)(command_buffer, 1, &piece.command_buffer) };
            open.state = State::default();
            open.sequence += u64::from(piece.commands);
            open.commands += piece.commands;
        }
        if !around.after.is_empty() {
            self.barrier_where_needed(&mut open, command_buffer);
            self.copies(&mut open, command_buffer, around.after);
        }
        open.reports |= around.reports;
        self.after_recording(open)
    }

    fn barrier_where_needed(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        if self.ordered(open) < open.sequence {
            self.barrier(open, command_buffer);
        }
    }

    /// Copies that do not depend on each other, nor on anything since the last barrier.
    fn copies(&self, open: &mut Open, command_buffer: vk::CommandBuffer, copies: &[Copy<'_>]) {
        let copy_buffer = self.device.vk.fns().v1_0.cmd_copy_buffer;
        for copy in copies.iter().filter(|copy| copy.len > 0) {
            let ((from, start), (to, offset)) = (copy.from.location(), copy.to.location());
            let region = vk::BufferCopy {
                src_offset: start + copy.start,
                dst_offset: offset,
                size: copy.len,
            };
            // SAFETY: both ranges lie in live buffers of this device; a command buffer is open.
            unsafe { copy_buffer(command_buffer, from, to, 1, &region) };
            open.sequence += 1;
            open.commands += 1;
            mark(copy.from, true, false, open.sequence);
            mark(copy.to, false, true, open.sequence);
        }
    }
}

impl Captured {
    /// How many commands a run has.
    pub(crate) fn commands(&self) -> u64 {
        self.names.last().map_or(0, |(last, _)| *last)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // With the queue its command buffers have gone.
        if let Some(stream) = self.stream.upgrade() {
            let last = self.last.load(Ordering::Relaxed);
            let pieces = self.pieces.iter();
            let mut open = stream.open.lock();
            open.retired
                .extend(pieces.map(|piece| (last, piece.command_buffer)));
        }
    }
}
