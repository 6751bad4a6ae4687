//! Slabs: memory as the driver gives it.

use super::budget::Share;
use crate::{Result, device::Device};
use ash::vk;
use std::sync::Arc;

/// Bytes of memory that is the buffer's alone, at most. NVIDIA's driver 580 maps it in larger pages, so that random reads of 16 MiB
/// take half as long; in memory of a GiB they took twice as long.
const MOST_DEDICATED: u64 = 512 << 20;

/// Mapped memory is aligned to this at least (Vulkan, `minMemoryMapAlignment`).
const LEAST_ALIGNMENT: usize = 64;

/// A `VkDeviceMemory` with one `VkBuffer` over all of it.
#[derive(Debug)]
pub(super) struct RawSlab {
    device: Arc<Device>,
    memory: vk::DeviceMemory,
    pub(super) buffer: vk::Buffer,
    pub(super) mapping: usize,
    pub(super) size: u64,
    _share: Share,
}

impl RawSlab {
    pub(super) fn new(
        device: &Arc<Device>,
        memory_type: u32,
        mapped: bool,
        size: u64,
        share: Share,
    ) -> Result<RawSlab> {
        let _inside = device.enter()?;
        let fns = device.vk.fns();
        let info = buffer_info(size);
        let mut slab = RawSlab {
            device: device.clone(),
            memory: vk::DeviceMemory::null(),
            buffer: vk::Buffer::null(),
            mapping: 0,
            size,
            _share: share,
        };
        let check = |what: &str, code: vk::Result| device.check(what, code);
        // SAFETY: the infos are complete and live through the calls; on failure `slab`'s Drop frees what was made.
        unsafe {
            check(
                "vkCreateBuffer",
                (fns.v1_0.create_buffer)(
                    device.handle(),
                    &info,
                    std::ptr::null(),
                    &mut slab.buffer,
                ),
            )?;
            let mut needs = vk::MemoryRequirements::default();
            (fns.v1_0.get_buffer_memory_requirements)(device.handle(), slab.buffer, &mut needs);
            let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(slab.buffer);
            let mut allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(memory_type);
            if size <= MOST_DEDICATED {
                allocate = allocate.push_next(&mut dedicated);
            }
            check(
                "vkAllocateMemory",
                (fns.v1_0.allocate_memory)(
                    device.handle(),
                    &allocate,
                    std::ptr::null(),
                    &mut slab.memory,
                ),
            )?;
            check(
                "vkBindBufferMemory",
                (fns.v1_0.bind_buffer_memory)(device.handle(), slab.buffer, slab.memory, 0),
            )?;
            if mapped {
                let mut pointer = std::ptr::null_mut();
                check(
                    "vkMapMemory",
                    (fns.v1_0.map_memory)(
                        device.handle(),
                        slab.memory,
                        0,
                        vk::WHOLE_SIZE,
                        vk::MemoryMapFlags::empty(),
                        &mut pointer,
                    ),
                )?;
                // Mesa's drivers on the CPU hand on what mmap gives, -1 where the address space is full, and call it success.
                if pointer.is_null() || !(pointer as usize).is_multiple_of(LEAST_ALIGNMENT) {
                    check("vkMapMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY)?;
                }
                slab.mapping = pointer as usize;
            }
        }
        Ok(slab)
    }
}

fn buffer_info(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(
        vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST,
    )
}

/// The memory types that slabs may lie in, a bit each. Drivers have some for other things, and it is the same for all buffers of one
/// usage (Vulkan, `VkMemoryRequirements`).
pub(super) fn memory_types(device: &Arc<Device>) -> Result<u32> {
    let _inside = device.enter()?;
    let fns = device.vk.fns();
    let (mut buffer, mut needs) = (vk::Buffer::null(), vk::MemoryRequirements::default());
    // SAFETY: the info is complete and lives through the call; nobody else knows the buffer, which is destroyed where it was made.
    unsafe {
        let create = fns.v1_0.create_buffer;
        let code = create(
            device.handle(),
            &buffer_info(4096),
            std::ptr::null(),
            &mut buffer,
        );
        device.check("vkCreateBuffer", code)?;
        (fns.v1_0.get_buffer_memory_requirements)(device.handle(), buffer, &mut needs);
        (fns.v1_0.destroy_buffer)(device.handle(), buffer, std::ptr::null());
    }
    Ok(needs.memory_type_bits)
}

impl Drop for RawSlab {
    fn drop(&mut self) {
        let Some(_inside) = self.device.enter_to_destroy() else {
            return;
        };
        let fns = self.device.vk.fns();
        // SAFETY: both handles are ours; the pool drops a slab only when no recorded work uses it. Null is allowed.
        unsafe {
            (fns.v1_0.destroy_buffer)(self.device.handle(), self.buffer, std::ptr::null());
            (fns.v1_0.free_memory)(self.device.handle(), self.memory, std::ptr::null());
        }
    }
}
