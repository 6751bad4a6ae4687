//! Memory that kernels take for operands which repeat few bytes often: allocations that fail end the process.

use super::kernel::Kernel;
use crate::view::{View, count};
use std::sync::OnceLock;

/// Refuses operands that a kernel could not lay out in the memory that there is.
pub(super) fn expect(kernel: Kernel, inputs: &[View]) -> Result<(), String> {
    let repeated = inputs.iter().filter_map(|view| {
        let elements = count(view.shape).unwrap_or(u64::MAX);
        let stored = view.bytes.len() as u64 / view.dtype.size().max(1);
        (elements > stored).then(|| kernel.room(elements))
    });
    let bytes = repeated.fold(0, u64::saturating_add);
    let memory = memory();
    match bytes <= memory {
        true => Ok(()),
        false => Err(format!(
            "it may take {bytes} bytes on the way, and the host has {memory}"
        )),
    }
}

/// Bytes of memory that this process may have at most.
fn memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let granted = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
        let granted = granted.trim().parse().unwrap_or(u64::MAX);
        installed().min(granted)
    })
}

#[cfg(unix)]
fn installed() -> u64 {
    // SAFETY: sysconf takes a number and touches no memory.
    let [pages, size] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    match [pages, size].map(u64::try_from) {
        [Ok(pages), Ok(size)] => pages.saturating_mul(size),
        _ => u64::MAX,
    }
}

#[cfg(not(unix))]
fn installed() -> u64 {
    u64::MAX
}
