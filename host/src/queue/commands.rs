//! The commands a queue records: dispatches, copies, fills and barriers.

use super::{Open, Step, Stream, mark};
use crate::{Result, memory::Buffer, pipeline::Pipelines};
use ash::vk;
use std::sync::atomic::{AtomicU64, Ordering};

const DEVICE_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);

impl Stream {
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
        if from.iter().any(|b| since(&b.last_write))
            || since(&to.last_write)
            || since(&to.last_read)
        {
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

    pub(super) fn dispatch(
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
                range: if arg.len == 0 {
                    buffer.len() - arg.offset
                } else {
                    arg.len
                },
            };
        }
        let mut write =
            vk::WriteDescriptorSet::default().descriptor_type(vk::DescriptorType::STORAGE_BUFFER);
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
    pub(super) fn ordered(&self, open: &Open) -> u64 {
        open.ordered.max(self.completed_hint())
    }

    /// Orders everything recorded so far before everything recorded later.
    pub(super) fn barrier(&self, open: &mut Open, command_buffer: vk::CommandBuffer) {
        let access = vk::AccessFlags::SHADER_READ
            | vk::AccessFlags::SHADER_WRITE
            | vk::AccessFlags::TRANSFER_READ
            | vk::AccessFlags::TRANSFER_WRITE;
        self.pipeline_barrier(command_buffer, DEVICE_STAGES, access);
        open.ordered = open.sequence;
    }

    /// Makes what was written so far visible to the host once it sees the commands done.
    pub(super) fn barrier_to_host(&self, command_buffer: vk::CommandBuffer) {
        self.pipeline_barrier(
            command_buffer,
            vk::PipelineStageFlags::HOST,
            vk::AccessFlags::HOST_READ,
        );
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
}
