//! The commands a queue records: dispatches, copies, fills and barriers.

use super::{
    DEVICE_STAGES, Open, State, Stream, mark,
    step::{Bound, Step},
};
use crate::{Result, memory::Buffer, pipeline::Pipelines};
use ash::vk;
use nx_vulkan_abi::plan::MAX_BINDINGS;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a transfer's barrier has to order the past before.
#[derive(Clone, Copy)]
enum Before {
    /// Everything recorded later.
    Device,
    /// Only the transfer, which is for the host to read.
    Host,
}

/// What a barrier orders the past before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Later {
    Commands,
    /// Commands, and the workgroup counts that they read.
    Counts,
}

impl Stream {
    /// Records a copy of `len` bytes. With `to_host` the host may read the copy once it is done; its barriers are then
    /// as narrow as that allows, for somebody is waiting.
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
        let before = if to_host {
            Before::Host
        } else {
            Before::Device
        };
        let what = ("copy", len);
        self.transfer(what, &[from.0], to.0, before, |fns, command_buffer| {
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
                self.barrier_to_host(command_buffer, vk::PipelineStageFlags::TRANSFER);
            }
        })
    }

    /// Records a write of `bytes`, at most 65,536 of them and a multiple of four, into the start of `to`.
    pub(crate) fn update(&self, to: &Buffer, bytes: &[u8]) -> Result<()> {
        let (buffer, offset) = to.location();
        let what = ("update", bytes.len() as u64);
        self.transfer(what, &[], to, Before::Device, |fns, command_buffer| {
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
        let what = ("fill", to.len());
        self.transfer(what, &[], to, Before::Device, |fns, command_buffer| {
            // SAFETY: blocks are multiples of 256 bytes, so rounding up to four bytes stays inside.
            unsafe {
                (fns.v1_0.cmd_fill_buffer)(
                    command_buffer,
                    buffer,
                    offset,
                    to.len().next_multiple_of(4),
                    0,
                );
            }
        })
    }

    /// Records a command that is known as `what`, of so many bytes.
    fn transfer(
        &self,
        (what, bytes): (&str, u64),
        from: &[&Buffer],
        to: &Buffer,
        before: Before,
        command: impl FnOnce(&vulkano::device::DeviceFunctions, vk::CommandBuffer),
    ) -> Result<()> {
        let mut open = self.open()?;
        let command_buffer = self.command_buffer(&mut open)?;
        let ordered = self.ordered(&open);
        let since = |last: &AtomicU64| last.load(Ordering::Relaxed) > ordered;
        if from.iter().any(|b| since(&b.last_write))
            || since(&to.last_write)
            || since(&to.last_read)
        {
            match before {
                Before::Device => self.barrier(&mut open, command_buffer),
                Before::Host => self.barrier_to_copy(command_buffer),
            }
        }
        command(self.device.vk.fns(), command_buffer);
        self.stamp_bytes(&mut open, command_buffer, what, bytes);
        open.sequence += 1;
        open.commands += 1;
        for buffer in from {
            mark(buffer, true, false, open.sequence);
        }
        mark(to, false, true, open.sequence);
        self.after_recording(open)
    }

    pub(super) fn dispatch(
        &self,
        state: &mut State,
        command_buffer: vk::CommandBuffer,
        pipelines: &Pipelines,
        step: &Step,
        buffers: &[Bound<'_>],
    ) {
        let fns = self.device.vk.fns();
        let layout = step.pipeline.layout();
        let mut infos = [vk::DescriptorBufferInfo::default(); MAX_BINDINGS];
        for (info, arg) in infos.iter_mut().zip(&step.args) {
            let Bound { buffer, start } = buffers[arg.buffer];
            let (handle, first) = buffer.location();
            let skipped = start + arg.offset;
            *info = vk::DescriptorBufferInfo {
                buffer: handle,
                offset: first + skipped,
                range: if arg.len == 0 {
                    buffer.len() - skipped
                } else {
                    arg.len
                },
            };
        }
        // SAFETY: the plan was validated against the pipeline's layout and the buffers' sizes; the command buffer
        // is in the recording state; the driver copies the descriptors and push constants during the calls.
        unsafe {
            if state.bound != step.pipeline.handle() {
                (fns.v1_0.cmd_bind_pipeline)(
                    command_buffer,
                    vk::PipelineBindPoint::COMPUTE,
                    step.pipeline.handle(),
                );
                state.bound = step.pipeline.handle();
            }
            if !step.args.is_empty() {
                (pipelines.push_descriptors())(
                    command_buffer,
                    step.pipeline.template(),
                    layout,
                    0,
                    infos.as_ptr().cast(),
                );
            }
            // They outlive a change of pipeline as long as their number stays the same.
            if !step.push.is_empty() && state.pushed[..] != step.push[..] {
                state.pushed.clear();
                state.pushed.extend_from_slice(&step.push);
                (fns.v1_0.cmd_push_constants)(
                    command_buffer,
                    layout,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    step.push.len() as u32,
                    step.push.as_ptr().cast(),
                );
            }
            match step.counts {
                None => {
                    let [x, y, z] = step.groups;
                    (fns.v1_0.cmd_dispatch)(command_buffer, x, y, z);
                }
                Some(counts) => {
                    let (handle, start) = buffers[counts.buffer].buffer.location();
                    let offset = start + counts.offset;
                    (fns.v1_0.cmd_dispatch_indirect)(command_buffer, handle, offset);
                }
            }
        }
    }

    /// Commands up to here need no barrier: one was recorded, or the host saw them done.
    pub(super) fn ordered(&self, open: &Open) -> u64 {
        open.ordered.max(self.completed_hint())
    }

    /// Orders everything recorded so far before everything recorded later.
    pub(super) fn barrier(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        self.order(command_buffer, Later::Commands);
        open.ordered = open.sequence;
    }

    /// As [`Stream::barrier`], also before what is recorded later reads its workgroup counts.
    pub(super) fn barrier_to_counts(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        self.order(command_buffer, Later::Counts);
        open.ordered = open.sequence;
    }

    /// Orders what the command buffer has before what it gets later.
    pub(super) fn order(&self, command_buffer: vk::CommandBuffer, later: Later) {
        let (mut to, mut access) = (
            DEVICE_STAGES,
            vk::AccessFlags::SHADER_READ
                | vk::AccessFlags::SHADER_WRITE
                | vk::AccessFlags::TRANSFER_READ
                | vk::AccessFlags::TRANSFER_WRITE,
        );
        if later == Later::Counts {
            to |= vk::PipelineStageFlags::DRAW_INDIRECT;
            access |= vk::AccessFlags::INDIRECT_COMMAND_READ;
        }
        self.pipeline_barrier(command_buffer, DEVICE_STAGES, to, access);
    }

    /// Orders everything recorded so far before one copy, and before nothing else.
    fn barrier_to_copy(&self, command_buffer: vk::CommandBuffer) {
        let access = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
        let to = vk::PipelineStageFlags::TRANSFER;
        self.pipeline_barrier(command_buffer, DEVICE_STAGES, to, access);
    }

    /// Makes what `from` has written so far visible to the host once it sees the commands done.
    pub(super) fn barrier_to_host(
        &self,
        command_buffer: vk::CommandBuffer,
        from: vk::PipelineStageFlags,
    ) {
        self.pipeline_barrier(
            command_buffer,
            from,
            vk::PipelineStageFlags::HOST,
            vk::AccessFlags::HOST_READ,
        );
    }

    fn pipeline_barrier(
        &self,
        command_buffer: vk::CommandBuffer,
        from: vk::PipelineStageFlags,
        to: vk::PipelineStageFlags,
        access: vk::AccessFlags,
    ) {
        let mut written = vk::AccessFlags::TRANSFER_WRITE;
        if from.contains(vk::PipelineStageFlags::COMPUTE_SHADER) {
            written |= vk::AccessFlags::SHADER_WRITE;
        }
        let barrier = vk::MemoryBarrier::default()
            .src_access_mask(written)
            .dst_access_mask(access);
        // SAFETY: the command buffer is in the recording state; the barrier outlives the call.
        unsafe {
            (self.device.vk.fns().v1_0.cmd_pipeline_barrier)(
                command_buffer,
                from,
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
}
