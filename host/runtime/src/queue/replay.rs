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
    /// By step whether each run records it anew; empty where that is none.
    pub(crate) anew: &'a [bool],
    pub(crate) buffers: Vec<Bound<'a>>,
}

/// Commands that were recorded once. All buffers in them have to live, and nobody else may write them, whenever they run.
#[derive(Debug)]
pub(crate) struct Captured {
    stream: Weak<Stream>,
    parts: Vec<Part>,
    /// The requests, each with the number of its last command.
    names: Vec<(u64, Arc<str>)>,
    /// The last command of the last run.
    last: AtomicU64,
}

/// What runs one after the other.
#[derive(Debug)]
enum Part {
    Piece(Piece),
    /// A command that each run records anew.
    Anew {
        /// Which of the calls that have some.
        call: usize,
        step: usize,
        /// What it is ordered behind all others for.
        later: Option<Later>,
    },
}

/// As many commands as a batch might have when they were recorded.
#[derive(Debug)]
struct Piece {
    command_buffer: vk::CommandBuffer,
    commands: u32,
}

/// A command that is being captured.
struct Command<'a> {
    wave: u32,
    call: &'a Call<'a>,
    step: usize,
    /// Which of the calls that have some it is one of, where each run records it anew.
    anew: Option<usize>,
    /// Whether it comes behind those of its wave that touch the same in each run.
    is_behind: bool,
}

impl Command<'_> {
    fn step(&self) -> &Step {
        &self.call.steps[self.step]
    }
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
    pub(crate) own: &'a mut dyn Iterator<Item = &'a Buffer>,
    /// The calls of which commands are recorded anew, in the order that they were captured in.
    pub(crate) anew: &'a [Call<'a>],
    /// Copied after it.
    pub(crate) after: &'a [Copy<'a>],
    /// Whether the host reads in place what is copied after it.
    pub(crate) reports: bool,
}

impl Stream {
    /// Records `calls`, to be run by [`Stream::replay`], wave by wave. Nothing runs yet. With `all_anew` each run records every
    /// command, in the same order and with the same barriers, so that these can be stamped.
    ///
    /// # Errors
    /// Only when the device is lost or out of memory for command buffers.
    pub(crate) fn capture(
        self: &Arc<Self>,
        pipelines: &Pipelines,
        calls: &[Call<'_>],
        all_anew: bool,
    ) -> Result<Captured> {
        let mut captured = Captured {
            stream: Arc::downgrade(self),
            parts: Vec::new(),
            names: Vec::with_capacity(calls.len()),
            last: AtomicU64::new(0),
        };
        let mut open = self.open()?;
        let recorded = self.capture_into(&mut captured, &mut open, pipelines, (calls, all_anew));
        // What was made by then is given up without the lock.
        drop(open);
        recorded.map(|()| captured)
    }

    fn capture_into(
        &self,
        captured: &mut Captured,
        open: &mut Open,
        pipelines: &Pipelines,
        (calls, all_anew): (&[Call<'_>], bool),
    ) -> Result<()> {
        self.device.usable()?;
        let mut commands: Vec<Command<'_>> = Vec::new();
        let mut renewed = 0;
        for call in calls {
            let is_anew = |step: usize| call.anew.get(step) == Some(&true);
            let own = call.waves.iter().enumerate();
            commands.extend(own.map(|(step, &wave)| Command {
                wave,
                call,
                step,
                anew: (all_anew || is_anew(step)).then_some(renewed),
                is_behind: is_anew(step),
            }));
            renewed += usize::from(all_anew || !call.anew.is_empty());
        }
        // Those of one wave stay in the order that they came in, what is recorded once before the others.
        commands.sort_by_key(|command| (command.wave, command.is_behind));
        let most = self.batch.load(Ordering::Relaxed);
        let mut state = State::default();
        let mut sequence = 0;
        for wave in commands.chunk_by(|a, b| a.wave == b.wave) {
            // The first one is ordered after all that was before, but for its workgroup counts.
            let mut later = match wave.iter().any(|command| command.step().counts.is_some()) {
                true => Some(Later::Counts),
                false => (sequence > 0).then_some(Later::Commands),
            };
            for command in wave {
                let is_full = captured.open().is_none_or(|piece| piece.commands >= most);
                if command.anew.is_some() || is_full {
                    self.end(captured.open())?;
                }
                if let Some(call) = command.anew {
                    captured.parts.push(Part::Anew {
                        call,
                        step: command.step,
                        later: later.take(),
                    });
                } else if is_full {
                    let command_buffer = self.secondary(open)?;
                    captured.parts.push(Part::Piece(Piece {
                        command_buffer,
                        commands: 0,
                    }));
                    self.begin(command_buffer)?;
                    state = State::default();
                }
                if let Some(piece) = captured.open() {
                    if let Some(later) = later.take() {
                        self.order(piece.command_buffer, later);
                    }
                    let buffers = &command.call.buffers;
                    let step = command.step();
                    self.dispatch(&mut state, piece.command_buffer, pipelines, step, buffers);
                    piece.commands += 1;
                }
                sequence += 1;
                let name = command.call.name;
                match captured.names.last_mut() {
                    Some((last, known)) if Arc::ptr_eq(known, name) => *last = sequence,
                    _ => captured.names.push((sequence, name.clone())),
                }
            }
        }
        self.end(captured.open())
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

    fn end(&self, piece: Option<&mut Piece>) -> Result<()> {
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
    pub(crate) fn replay(
        &self,
        pipelines: &Pipelines,
        captured: &Captured,
        around: Around<'_>,
    ) -> Result<()> {
        let fns = self.device.vk.fns();
        let mut open = self.open()?;
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
            self.stamp_bytes(&mut open, command_buffer, "fill", len);
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
        around.own.for_each(|buffer| mark(buffer, true, true, last));
        let done = self.completed_hint();
        for (end, name) in &captured.names {
            open.names.note(start + end, name, done);
        }
        for part in &captured.parts {
            if open.commands >= self.batch.load(Ordering::Relaxed) {
                self.submit(&mut open)?;
                command_buffer = self.command_buffer(&mut open).inspect_err(|error| {
                    // Half of it was submitted, and nobody can wait for the other half.
                    self.device
                        .mark_lost(format!("recorded work could not be submitted: {error}"));
                })?;
            }
            let commands = match part {
                Part::Piece(piece) => {
                    let execute = fns.v1_0.cmd_execute_commands;
                    // SAFETY: the piece was recorded to the end, for use by several at once; a command buffer is open.
                    unsafe { execute(command_buffer, 1, &piece.command_buffer) };
                    open.state = State::default();
                    // A profile that has just begun knows nothing of what is in it.
                    self.stamp_start(&mut open, command_buffer);
                    piece.commands
                }
                Part::Anew { call, step, later } => {
                    let call = &around.anew[*call];
                    if let Some(later) = later {
                        self.order(command_buffer, *later);
                    }
                    let (state, own) = (&mut open.state, &call.steps[*step]);
                    self.dispatch(state, command_buffer, pipelines, own, &call.buffers);
                    let step = (*step, call.steps);
                    self.stamp_step(&mut open, command_buffer, call.name, step);
                    1
                }
            };
            open.sequence += u64::from(commands);
            open.commands += commands;
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
            self.stamp_bytes(open, command_buffer, "copy", copy.len);
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

    /// The piece that the next command goes to.
    fn open(&mut self) -> Option<&mut Piece> {
        match self.parts.last_mut() {
            Some(Part::Piece(piece)) => Some(piece),
            Some(Part::Anew { .. }) | None => None,
        }
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().filter_map(|part| match part {
            Part::Piece(piece) => Some(piece),
            Part::Anew { .. } => None,
        })
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // With the queue its command buffers have gone.
        if let Some(stream) = self.stream.upgrade() {
            let last = self.last.load(Ordering::Relaxed);
            // Those of a lost device are not used again.
            if let Ok(mut open) = stream.open() {
                open.retired
                    .extend(self.pieces().map(|piece| (last, piece.command_buffer)));
            }
        }
    }
}
