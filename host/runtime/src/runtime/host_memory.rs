//! Operands and results of kernels on the CPU: in the device's own memory where the host can read that fast, as on a CPU
//! device or one that shares the system's memory, otherwise copies.

use super::Runtime;
use crate::{
    Result, Tensor,
    host_memory::with_room,
    memory::{Buffer, Patience, would_wait},
    tensor::{Part, byte_len},
};
use nx_vulkan_abi::DType;
use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

/// The bytes of an operand.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Mapped(&'a [u8]),
    Copied(Vec<u8>),
}

impl Deref for Held<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Held::Mapped(bytes) => bytes,
            Held::Copied(bytes) => bytes,
        }
    }
}

/// A result that a kernel on the CPU writes.
#[derive(Debug)]
pub(super) enum Draft {
    /// The mapping covers the bytes, and nothing on the device uses them.
    Mapped {
        buffer: Arc<Buffer>,
        start: *mut u8,
        len: usize,
    },
    Bytes(Vec<u8>),
}

impl Draft {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match self {
            // SAFETY: as the variant says, and the buffer is this draft's alone.
            Draft::Mapped { start, len, .. } => unsafe {
                std::slice::from_raw_parts_mut(*start, *len)
            },
            Draft::Bytes(bytes) => bytes,
        }
    }
}

impl Runtime {
    /// The bytes of a part of a buffer, after the commands that write it.
    pub(super) fn hold<'a>(
        &self,
        from: &'a Buffer,
        part: Part,
        patience: Patience,
    ) -> Result<Held<'a>> {
        let Part { start, len, .. } = part;
        let is_copied = !self.tensors.is_cached() || start + len > from.len();
        let written = from.last_write.load(Ordering::Relaxed);
        let is_done = written <= self.stream.completed_hint();
        if patience == Patience::Never && (is_copied || !is_done) {
            return Err(would_wait());
        }
        if is_copied {
            return self.read(from, start, len).map(Held::Copied);
        }
        self.stream.wait(written)?;
        let bytes = from.mapped()?;
        // SAFETY: the buffer is mapped, holds the part, lives as long as the slice, and its last write is done.
        Ok(Held::Mapped(unsafe {
            std::slice::from_raw_parts(bytes.add(start as usize), len as usize)
        }))
    }

    /// Room for a result, of zeros where it is `blank`.
    pub(super) fn draft(
        &self,
        dtype: DType,
        shape: &[u64],
        blank: bool,
        patience: Patience,
    ) -> Result<Draft> {
        let len = byte_len(dtype, shape)?;
        if !self.tensors.is_cached() && patience == Patience::Never {
            return Err(would_wait());
        }
        if !self.tensors.is_cached() {
            let mut bytes = with_room(len)?;
            bytes.resize(len as usize, 0);
            return Ok(Draft::Bytes(bytes));
        }
        let idle = self.stream.completed_hint();
        let buffer = self.alloc(len, Some(idle), patience)?;
        if patience == Patience::Never && buffer.last_use() > idle {
            return Err(would_wait());
        }
        self.stream.wait(buffer.last_use())?;
        let (start, len) = (buffer.mapped()?, len as usize);
        if blank {
            // SAFETY: the mapping covers the buffer, and no recorded command touches it any more.
            unsafe { start.write_bytes(0, len) };
        }
        Ok(Draft::Mapped { buffer, start, len })
    }

    /// The tensor of a draft whose bytes are written.
    pub(super) fn finish(&self, draft: Draft, dtype: DType, shape: &[u64]) -> Result<Tensor> {
        match draft {
            Draft::Mapped { buffer, .. } => Ok(Tensor::contiguous(buffer, dtype, shape)),
            Draft::Bytes(bytes) => self.upload(dtype, shape, &bytes),
        }
    }
}
