//! Spans: the part of a buffer that the elements of a walk lie in.

use std::ops::Range;

/// Where buffer arguments and ranges of params may start, in bytes: no device asks for more.
pub const ALIGN: u64 = 256;

/// The lowest and the highest element of a walk, counted from the start of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The lowest.
    pub low: i64,
    /// The highest.
    pub high: i64,
}

impl Span {
    /// From the element at `first` along axes, each with its extent, which is not 0, and its stride.
    pub fn of(first: i64, axes: impl IntoIterator<Item = (u64, i64)>) -> Span {
        let (low, high) = axes.into_iter().fold((first, first), |(low, high), axis| {
            let reach = axis.1.saturating_mul(axis.0 as i64 - 1);
            (
                low.saturating_add(reach.min(0)),
                high.saturating_add(reach.max(0)),
            )
        });
        Span { low, high }
    }

    /// The bytes of its elements, of `size` bytes each, from a start that every device takes; nothing where they reach
    /// out of any buffer.
    pub fn bytes(self, size: u64) -> Option<Range<u64>> {
        let bytes = |element: i64| u64::try_from(element).ok()?.checked_mul(size);
        let start = bytes(self.low)? / ALIGN * ALIGN;
        Some(start..bytes(self.high.checked_add(1)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_every_element_and_starts_aligned() {
        let span = Span::of(100, [(3, -20), (5, 1), (9, 0)]);
        assert_eq!(span, Span { low: 60, high: 104 });
        assert_eq!(span.bytes(8), Some(256..840));
        assert_eq!(Span::of(0, [(2, -1)]).bytes(4), None);
        assert_eq!(Span::of(1, [(u64::MAX >> 1, i64::MAX)]).bytes(4), None);
    }
}
