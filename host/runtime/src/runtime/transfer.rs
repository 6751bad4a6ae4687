//! Bytes between the host and the device.

use super::Runtime;
use crate::{Error, Kind, Result, Tensor, memory::Buffer};
use ash::vk::Handle;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Piece in which large tensors travel.
const PIECE: u64 = 32 << 20;
/// Largest write that travels inside the command buffer.
const INLINE: usize = 65_536;

impl Runtime {
    /// Like [`Runtime::download`], but gives up after spinning for `budget`; `None` then, and whenever the
    /// elements are not contiguous.
    ///
    /// # Errors
    /// As [`Runtime::download`].
    pub fn try_download(
        &self,
        tensor: &Tensor,
        limit: Option<u64>,
        budget: Duration,
    ) -> Result<Option<Vec<u8>>> {
        if !tensor.is_contiguous() {
            return Ok(None);
        }
        let size = tensor.dtype().size();
        let len = tensor.elements().min(limit.unwrap_or(u64::MAX)) * size;
        let (from, start) = (&*tensor.buffer, tensor.offset() * size);
        let mut bytes = Vec::with_capacity(len as usize);
        if self.tensors.is_cached() {
            if !self
                .stream
                .spin(from.last_write.load(Ordering::Relaxed), budget)?
            {
                return Ok(None);
            }
            append(&mut bytes, from, start, len)?;
            return Ok(Some(bytes));
        }
        if len == 0 {
            return Ok(Some(bytes));
        }
        let staging = self.readback.alloc(len, None)?;
        self.stream.copy((from, start), (&staging, 0), len, true)?;
        if !self.stream.spin(staging.last_use(), budget)? {
            return Ok(None);
        }
        append(&mut bytes, &staging, 0, len)?;
        Ok(Some(bytes))
    }

    /// A buffer, after giving memory back and waiting if need be.
    pub(super) fn alloc(&self, len: u64, idle_at: Option<u64>) -> Result<Arc<Buffer>> {
        match self.tensors.alloc(len, idle_at) {
            Err(error) if error.kind() == Kind::OutOfMemory => {
                self.trim()?;
                self.tensors.alloc(len, idle_at)
            }
            result => result,
        }
    }

    pub(super) fn write_new(&self, bytes: &[u8]) -> Result<Arc<Buffer>> {
        let len = bytes.len() as u64;
        let hint = self
            .tensors
            .is_mapped()
            .then(|| self.stream.completed_hint());
        let buffer = self.alloc(len, hint)?;
        if bytes.is_empty() {
            return Ok(buffer);
        }
        if let Some(to) = buffer.mapping()
            && (buffer.last_use() <= self.stream.completed_hint()
                || buffer.last_use() <= self.stream.completed()?)
        {
            // SAFETY: the mapping covers the buffer's `len` bytes, and no recorded command touches them any more.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        } else if bytes.len() < INLINE {
            // Blocks are multiples of 256 bytes, so the padding stays inside.
            let mut padded = bytes.to_vec();
            padded.resize(bytes.len().next_multiple_of(4), 0);
            self.stream.update(&buffer, &padded)?;
        } else {
            self.write_staged(&buffer, bytes)?;
        }
        Ok(buffer)
    }

    fn write_staged(&self, to: &Buffer, bytes: &[u8]) -> Result<()> {
        for (index, piece) in bytes.chunks(PIECE as usize).enumerate() {
            let staging = self
                .upload
                .alloc(piece.len() as u64, Some(self.stream.completed()?))?;
            self.stream.wait(staging.last_use())?;
            let mapping = mapping(&staging)?;
            // SAFETY: the staging buffer is mapped, as long as `piece`, and idle.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), mapping, piece.len()) };
            self.stream.copy(
                (&staging, 0),
                (to, index as u64 * PIECE),
                piece.len() as u64,
                false,
            )?;
        }
        Ok(())
    }

    /// The memory block that `tensor` lies in: slab, offset and size. For tests that look for stray writes.
    #[doc(hidden)]
    pub fn block(&self, tensor: &Tensor) -> (u64, u64, u64) {
        let (slab, offset) = tensor.buffer.location();
        (slab.as_raw(), offset, tensor.buffer.block())
    }

    /// The bytes of that block, beyond the tensor's end too.
    ///
    /// # Errors
    /// As [`Runtime::download`].
    #[doc(hidden)]
    pub fn download_block(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        let from = &*tensor.buffer;
        self.read_within(from, (0, from.block()), from.block())
    }

    /// Gives the first `len` bytes to `take`, where they can be read in place without a copy of them.
    pub(super) fn read_with<T>(
        &self,
        from: &Buffer,
        len: u64,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        if len > PIECE || len > from.len() {
            return Ok(take(&self.read(from, 0, len)?));
        }
        let staging;
        let (source, last) = if self.tensors.is_cached() {
            (from, from.last_write.load(Ordering::Relaxed))
        } else {
            staging = self.readback.alloc(len, None)?;
            self.stream.copy((from, 0), (&staging, 0), len, true)?;
            (&*staging, staging.last_use())
        };
        self.stream.wait(last)?;
        let mapping = mapping(source)?;
        // SAFETY: the buffer is mapped, at least `len` long, and the device is done with it.
        Ok(take(unsafe {
            std::slice::from_raw_parts(mapping, len as usize)
        }))
    }

    pub(super) fn read(&self, from: &Buffer, start: u64, len: u64) -> Result<Vec<u8>> {
        self.read_within(from, (start, len), from.len())
    }

    /// `limit` is where reading must stop: the buffer's length, or that of its block.
    fn read_within(&self, from: &Buffer, (start, len): (u64, u64), limit: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len as usize);
        if self.tensors.is_cached() {
            self.stream.wait(from.last_write.load(Ordering::Relaxed))?;
            append_within(&mut bytes, from, (start, len), limit)?;
            return Ok(bytes);
        }
        for at in (0..len).step_by(PIECE as usize) {
            let piece = PIECE.min(len - at);
            let staging = self.readback.alloc(piece, None)?;
            self.stream
                .copy((from, start + at), (&staging, 0), piece, true)?;
            self.stream.wait(staging.last_use())?;
            append(&mut bytes, &staging, 0, piece)?;
        }
        Ok(bytes)
    }
}

fn append(to: &mut Vec<u8>, from: &Buffer, start: u64, len: u64) -> Result<()> {
    append_within(to, from, (start, len), from.len())
}

fn append_within(
    to: &mut Vec<u8>,
    from: &Buffer,
    (start, len): (u64, u64),
    limit: u64,
) -> Result<()> {
    let mapping = mapping(from)?;
    let limit = limit.min(from.block());
    if start.checked_add(len).is_none_or(|end| end > limit) {
        return Err(Error::bad_input(format!(
            "bytes {start}+{len} of a buffer of {limit}"
        )));
    }
    // SAFETY: the range lies inside the buffer's block, which is mapped, and the caller waited for its last write.
    to.extend_from_slice(unsafe {
        std::slice::from_raw_parts(mapping.add(start as usize), len as usize)
    });
    Ok(())
}

fn mapping(buffer: &Buffer) -> Result<*mut u8> {
    buffer.mapping().ok_or_else(|| {
        Error::new(
            Kind::Vulkan,
            "the device has no memory that the host can map",
        )
    })
}
