//! Bytes between the host and the device.

use super::Runtime;
use crate::{
    Error, Kind, Result, Tensor,
    faults::{self, Site, Word},
    host_memory::{Sink, room, with_room},
    memory::{Buffer, Patience, Pool, now, would_wait},
    tensor::byte_len,
};
use ash::vk::Handle;
use nx_vulkan_abi::DType;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Piece in which large tensors travel.
const PIECE: u64 = 32 << 20;
/// Memory for pieces beyond which those that are under way are waited for.
const MOST_STAGING: u64 = 256 << 20;
/// Largest write that travels inside the command buffer.
const INLINE: usize = 65_536;

impl Runtime {
    /// The first `limit` elements (all without a limit), row-major. Waits for the work they depend on.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`], [`Kind::OutOfMemory`]; [`Kind::Arithmetic`] or bad input when an op on the way to it met an
    /// integer that it has no result for.
    pub fn download(&self, tensor: &Tensor, limit: Option<u64>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.download_to(tensor, limit, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`Runtime::download`], to memory of the caller's kind.
    ///
    /// # Errors
    /// As [`Runtime::download`]; what was written by then is void.
    pub fn download_to(
        &self,
        tensor: &Tensor,
        limit: Option<u64>,
        to: &mut dyn Sink,
    ) -> Result<()> {
        let packed;
        let tensor = if tensor.is_contiguous() {
            tensor
        } else {
            packed = self.contiguous(&tensor.leading(limit.unwrap_or(u64::MAX))?)?;
            &packed
        };
        let size = tensor.dtype().size();
        let count = tensor.elements().min(limit.unwrap_or(u64::MAX));
        let (start, len) = (tensor.offset() * size, count * size);
        self.read_within(&tensor.buffer, (start, len), tensor.buffer.len(), to)?;
        tensor.faults.check(&self.stream)
    }

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
        let mut bytes = with_room(len)?;
        if self.tensors.is_cached() {
            if !self
                .stream
                .spin(from.last_write.load(Ordering::Relaxed), budget)?
            {
                return Ok(None);
            }
            append(&mut bytes, from, start, len)?;
            return Ok(tensor.faults.check_now(&self.stream)?.then_some(bytes));
        }
        if len == 0 {
            return Ok(Some(bytes));
        }
        if self.stream.full()?.is_some() {
            return Ok(None);
        }
        let Some(staging) = now(self.readback.alloc(len, None, Patience::Never))? else {
            return Ok(None);
        };
        self.stream.copy((from, start), (&staging, 0), len, true)?;
        if !self.stream.spin(staging.last_use(), budget)? {
            return Ok(None);
        }
        append(&mut bytes, &staging, 0, len)?;
        Ok(tensor.faults.check_now(&self.stream)?.then_some(bytes))
    }

    /// A buffer; with patience after giving memory back and waiting, if need be.
    pub(super) fn alloc(
        &self,
        len: u64,
        idle_at: Option<u64>,
        patience: Patience,
    ) -> Result<Arc<Buffer>> {
        self.alloc_in(&self.tensors, len, idle_at, patience)
    }

    /// As [`Runtime::alloc`], of other memory.
    pub(super) fn alloc_in(
        &self,
        pool: &Arc<Pool>,
        len: u64,
        idle_at: Option<u64>,
        patience: Patience,
    ) -> Result<Arc<Buffer>> {
        let alloc = || pool.alloc(len, idle_at, patience);
        match alloc() {
            Err(error) if error.kind() == Kind::OutOfMemory && patience == Patience::Waits => {
                // Not the one without the other: what is recorded may hold what is kept.
                if (self.replays.forget(true) | self.kept.shed())
                    && let Ok(buffer) = alloc()
                {
                    return Ok(buffer);
                }
                self.give_back()?;
                match alloc() {
                    Err(error) if error.kind() == Kind::OutOfMemory => {
                        self.trim()?;
                        alloc()
                    }
                    result => result,
                }
            }
            result => result,
        }
    }

    /// A word of 0 that the host can read.
    pub(super) fn fault_word(&self, site: &Arc<Site>, patience: Patience) -> Result<Arc<Word>> {
        let completed = self.stream.completed_hint();
        let buffer = self.alloc_in(&self.readback, faults::BYTES, Some(completed), patience)?;
        if buffer.last_use() <= completed {
            let to = buffer.mapped()?;
            // SAFETY: the mapping covers the buffer, and no recorded command touches it any more.
            unsafe { to.write_bytes(0, faults::BYTES as usize) };
        } else {
            self.stream.update(&buffer, &[0; faults::BYTES as usize])?;
        }
        Ok(Word::new(buffer, site))
    }

    /// A buffer for so many words that the host can read.
    pub(super) fn board(&self, words: usize, patience: Patience) -> Result<Arc<Buffer>> {
        let len = words as u64 * faults::STRIDE;
        self.alloc_in(&self.readback, len, None, patience)
    }

    pub(super) fn write_new(&self, bytes: &[u8], patience: Patience) -> Result<Arc<Buffer>> {
        let len = bytes.len() as u64;
        let hint = self
            .tensors
            .is_mapped()
            .then(|| self.stream.completed_hint());
        let buffer = self.alloc(len, hint, patience)?;
        self.fill(&buffer, bytes, patience)?;
        Ok(buffer)
    }

    /// A scalar in memory that no kernel can be given to write.
    pub(super) fn write_literal(
        &self,
        dtype: DType,
        element: &[u8],
        patience: Patience,
    ) -> Result<Tensor> {
        let expected = byte_len(dtype, &[])?;
        if element.len() as u64 != expected {
            return Err(Error::bad_input(format!(
                "a tensor {dtype}[] has {expected} bytes, got: {}",
                element.len()
            )));
        }
        let idle = self.stream.completed_hint();
        let buffer = self.alloc_in(&self.literals, expected, Some(idle), patience)?;
        self.fill(&buffer, element, patience)?;
        Ok(Tensor::contiguous(buffer, dtype, &[]))
    }

    fn fill(&self, buffer: &Buffer, bytes: &[u8], patience: Patience) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(to) = buffer.mapping()
            && (buffer.last_use() <= self.stream.completed_hint()
                || buffer.last_use() <= self.stream.completed()?)
        {
            // SAFETY: the mapping covers the buffer's `len` bytes, and no recorded command touches them any more.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        } else if bytes.len() < INLINE {
            self.make_room(patience)?;
            // Blocks are multiples of 256 bytes, so the padding stays inside.
            let mut padded = bytes.to_vec();
            padded.resize(bytes.len().next_multiple_of(4), 0);
            self.stream.update(buffer, &padded)?;
        } else {
            self.write_staged(buffer, bytes, patience)?;
        }
        Ok(())
    }

    /// Waits where the caller is too far ahead of the device.
    ///
    /// # Errors
    /// [`Kind::WouldWait`] without patience; [`Kind::DeviceLost`].
    pub(super) fn make_room(&self, patience: Patience) -> Result<()> {
        match patience {
            Patience::Waits => self.stream.make_room(),
            Patience::Never => self.stream.full()?.map_or(Ok(()), |_| Err(would_wait())),
        }
    }

    fn write_staged(&self, to: &Buffer, bytes: &[u8], patience: Patience) -> Result<()> {
        if patience == Patience::Never {
            return Err(would_wait());
        }
        for (index, piece) in bytes.chunks(PIECE as usize).enumerate() {
            self.stream.make_room()?;
            // Idle memory is looked for, and with enough of it under way the oldest is waited for.
            let idle = (self.upload.stats().allocated < MOST_STAGING)
                .then(|| self.stream.completed())
                .transpose()?;
            let len = piece.len() as u64;
            let staging = self.alloc_in(&self.upload, len, idle, Patience::Waits)?;
            self.stream.wait(staging.last_use())?;
            let mapping = staging.mapped()?;
            // SAFETY: the staging buffer is mapped, as long as `piece`, and idle.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), mapping, piece.len()) };
            self.stream
                .copy((&staging, 0), (to, index as u64 * PIECE), len, false)?;
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
        let mut bytes = Vec::new();
        self.read_within(from, (0, from.block()), from.block(), &mut bytes)?;
        Ok(bytes)
    }

    /// Number of commands that were recorded so far. For tests that look for what was left out.
    #[doc(hidden)]
    pub fn recorded(&self) -> u64 {
        self.stream.sequence()
    }

    /// A tensor of `len` bytes whose content is undefined.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`].
    pub fn reserve(&self, len: u64) -> Result<Tensor> {
        let buffer = self.alloc(len, None, Patience::Waits)?;
        Ok(Tensor::contiguous(buffer, DType::U8, &[len]))
    }

    /// Waits for the tensor's buffer and gives its first `len` bytes to `take`, where they can be read in place without a
    /// copy of them.
    ///
    /// # Errors
    /// As [`Runtime::download`].
    pub fn download_with<T>(
        &self,
        tensor: &Tensor,
        len: u64,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        self.read_with(&tensor.buffer, len, take)
    }

    fn read_with<T>(&self, from: &Buffer, len: u64, take: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if len > PIECE || len > from.len() {
            return Ok(take(&self.read(from, 0, len)?));
        }
        let staging;
        let (source, last) = if self.tensors.is_cached() {
            (from, from.last_write.load(Ordering::Relaxed))
        } else {
            staging = self.alloc_in(&self.readback, len, None, Patience::Waits)?;
            self.stream.copy((from, 0), (&staging, 0), len, true)?;
            (&*staging, staging.last_use())
        };
        self.stream.wait(last)?;
        let mapping = source.mapped()?;
        // SAFETY: the buffer is mapped, at least `len` long, and the device is done with it.
        Ok(take(unsafe {
            std::slice::from_raw_parts(mapping, len as usize)
        }))
    }

    pub(super) fn read(&self, from: &Buffer, start: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_within(from, (start, len), from.len(), &mut bytes)?;
        Ok(bytes)
    }

    /// `limit` is where reading must stop: the buffer's length, or that of its block.
    fn read_within(
        &self,
        from: &Buffer,
        (start, len): (u64, u64),
        limit: u64,
        to: &mut dyn Sink,
    ) -> Result<()> {
        room(to, len)?;
        if self.tensors.is_cached() {
            self.stream.wait(from.last_write.load(Ordering::Relaxed))?;
            return append_within(to, from, (start, len), limit);
        }
        for at in (0..len).step_by(PIECE as usize) {
            let piece = PIECE.min(len - at);
            let staging = self.alloc_in(&self.readback, piece, None, Patience::Waits)?;
            self.stream
                .copy((from, start + at), (&staging, 0), piece, true)?;
            self.stream.wait(staging.last_use())?;
            append(to, &staging, 0, piece)?;
        }
        Ok(())
    }
}

fn append(to: &mut dyn Sink, from: &Buffer, start: u64, len: u64) -> Result<()> {
    append_within(to, from, (start, len), from.len())
}

fn append_within(
    to: &mut dyn Sink,
    from: &Buffer,
    (start, len): (u64, u64),
    limit: u64,
) -> Result<()> {
    let mapping = from.mapped()?;
    let limit = limit.min(from.block());
    if start.checked_add(len).is_none_or(|end| end > limit) {
        return Err(Error::bad_input(format!(
            "bytes {start}+{len} of a buffer of {limit}"
        )));
    }
    // SAFETY: the range lies inside the buffer's block, which is mapped, and the caller waited for its last write.
    to.append(unsafe { std::slice::from_raw_parts(mapping.add(start as usize), len as usize) });
    Ok(())
}
