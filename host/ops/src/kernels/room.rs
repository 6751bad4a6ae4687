//! Memory that kernels take for operands which repeat few bytes often: allocations that fail end the process.

use super::kernel::Kernel;
use crate::{
    memory,
    view::{View, count},
};

/// Bytes that nobody is asked for.
const FEW: u64 = 1 << 30;
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
    if bytes <= FEW {
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
