//! What results come to.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of all results so far.
#[derive(Debug, Default)]
pub(crate) struct Made(AtomicU64);

impl Made {
    /// Adds `bytes`; whether that takes their sum to another multiple of `part`.
    pub(crate) fn add(&self, bytes: u64, part: u64) -> bool {
        let part = part.max(1);
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        before.wrapping_add(bytes) / part != before / part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_told_once() {
        let made = Made::default();
        let told = [60, 39, 1, 99, 1, 250, 0, 49, 1].map(|bytes| made.add(bytes, 100));
        let expected = [false, false, true, false, true, true, false, false, true];
        assert_eq!(told, expected);
        assert!(!made.add(0, 0));
    }
}
