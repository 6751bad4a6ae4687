//! Tensors by the address of their elements: for those who read memory in place, and of memory that somebody names.

use super::Runtime;
use crate::{
    Error, Result, Tensor,
    host_memory::{self, with_room},
    memory::{Buffer, Patience},
    tensor::byte_len,
};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::show_shape;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

/// The buffers whose address somebody was told, by that address.
#[derive(Debug, Default)]
pub(super) struct Lent(Mutex<BTreeMap<usize, Weak<Buffer>>>);

impl Lent {
    fn add(&self, start: usize, buffer: &Arc<Buffer>) {
        let mut lent = self.0.lock();
        // Each time as many have come as there were, so that this costs little and the map stays short.
        if lent.len().is_power_of_two() {
            lent.retain(|_, buffer| buffer.strong_count() > 0);
        }
        lent.insert(start, Arc::downgrade(buffer));
    }

    /// The live buffer around `len` bytes at `address`, and where it starts.
    fn around(&self, address: usize, len: u64) -> Option<(Arc<Buffer>, usize)> {
        let lent = self.0.lock();
        let below = lent.range(..=address).rev();
        let mut live = below.filter_map(|(&start, buffer)| Some((start, buffer.upgrade()?)));
        let (start, buffer) = live.next()?;
        let end = ((address - start) as u64).checked_add(len)?;
        (end <= buffer.len()).then_some((buffer, start))
    }
}

impl Runtime {
    /// The tensor in memory that the host reads and writes in place, and the address of its first element there. They lie in
    /// row-major order and are complete. The memory lives as long as a handle to the tensor that this gives, which is the
    /// given one where that lies so already. Kernels do not notice what the host writes there.
    ///
    /// # Errors
    /// As [`Runtime::download`].
    pub fn expose(&self, tensor: &Tensor) -> Result<(Tensor, usize)> {
        self.device.usable()?;
        let exposed = self.within_reach(tensor)?;
        let buffer = &exposed.buffer;
        // From now on its bytes may change at any time. What waits is made of those that are there now.
        buffer.lend();
        self.settle_readers(buffer)?;
        self.stream.wait(buffer.last_use())?;
        tensor.faults.check(&self.stream)?;
        let start = buffer.mapped()? as usize;
        self.lent.add(start, buffer);
        let skipped = exposed.offset() * exposed.dtype().size();
        let address = start + skipped as usize;
        Ok((exposed, address))
    }

    /// The same elements in row-major order in memory that the host reads, and that no other value lies in.
    fn within_reach(&self, tensor: &Tensor) -> Result<Tensor> {
        let is_read_in_place = self.tensors.is_cached() || tensor.buffer.is_for_readback();
        let is_own = tensor.is_contiguous() && !tensor.buffer.is_shared();
        if is_read_in_place && is_own {
            return Ok(tensor.clone());
        }
        let packed = if is_own {
            tensor.clone()
        } else {
            self.copy(tensor)?
        };
        if self.tensors.is_cached() {
            return Ok(packed);
        }
        // Device memory that the host cannot read, or only slowly.
        let (len, start) = (packed.byte_len(), packed.offset() * packed.dtype().size());
        let buffer = self.alloc_in(&self.readback, len, None, Patience::Waits)?;
        self.stream.make_room()?;
        self.stream
            .copy((&packed.buffer, start), (&buffer, 0), len, true)?;
        Ok(Tensor::contiguous(buffer, tensor.dtype(), tensor.shape()))
    }

    /// A tensor of the elements at `address`. Where [`Runtime::expose`] gave that memory out, it is the tensor's too, and
    /// lives as long as one of both does; any other memory of this process is copied.
    ///
    /// # Errors
    /// Bad input where so many elements cannot be read there, or the tensor that lay there is gone;
    /// [`Kind::OutOfMemory`](crate::Kind::OutOfMemory).
    pub fn tensor_at(&self, address: usize, dtype: DType, shape: &[u64]) -> Result<Tensor> {
        self.device.usable()?;
        let len = byte_len(dtype, shape)?;
        let refused = |why: &str| {
            let shape = show_shape(shape);
            Error::bad_input(format!(
                "expected the address of a tensor {dtype}{shape}, got: {address:#x}, {why}"
            ))
        };
        if let Some((buffer, start)) = self.lent.around(address, len) {
            let skipped = (address - start) as u64;
            if !skipped.is_multiple_of(dtype.size()) {
                return Err(refused("which lies between two of its elements"));
            }
            let (before, count) = (skipped / dtype.size(), len / dtype.size());
            let all = Tensor::contiguous(buffer, dtype, &[before + count]);
            return self.reshape(&all.slice(&[before], &[count], &[1])?, shape);
        }
        let pools = [&self.tensors, &self.literals, &self.readback, &self.upload];
        if pools.iter().any(|pool| pool.covers(address, len)) {
            return Err(refused("where no tensor lies whose pointer was asked for"));
        }
        let mut bytes = with_room(len)?;
        host_memory::read(address, len as usize, &mut bytes)?;
        self.upload(dtype, shape, &bytes)
    }
}
