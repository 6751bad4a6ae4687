//! Memory that kernels take on the way: allocations that fail end the process.

use super::kernel::Kernel;
use crate::{
    memory,
    view::{View, count},
};

/// Bytes that nobody is asked for: of estimates, and of what will be taken.
const FEW: u64 = 1 << 30;
const FEW_TAKEN: u64 = 1 << 26;
/// Bytes that no machine has.
const MOST: u64 = 1 << 46;

/// Refuses operands that a kernel could not lay out in the memory that there is.
pub(super) fn expect(kernel: Kernel, inputs: &[View]) -> Result<(), String> {
    let repeated = inputs.iter().filter_map(|view| {
        let (elements, size) = (count(view.shape).unwrap_or(u64::MAX), view.dtype.size());
        let is_repeated = elements > view.bytes.len() as u64 / size.max(1);
        is_repeated.then(|| kernel.room(elements, size))
    });
    let bytes = repeated.fold(0, u64::saturating_add);
    ask(bytes, FEW)
}

/// Refuses to take so many bytes where there is no such memory.
pub(super) fn take(bytes: usize) -> Result<(), String> {
    ask(bytes as u64, FEW_TAKEN)
}

fn ask(bytes: u64, few: u64) -> Result<(), String> {
    if bytes <= few {
        return Ok(());
    }
    let memory = memory::available().unwrap_or(MOST);
    match bytes <= memory {
        true => Ok(()),
        false => Err(format!(
            "it may take {bytes} bytes on the way, and the host has {memory}"
        )),
    }
}
