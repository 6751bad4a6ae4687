//! Parts of buffers: the bytes that a tensor's elements lie in, all that kernels are told of its buffer.

/// Where a part may begin: every device binds buffers from there.
const ALIGN: u64 = 256;

/// The bytes between the first and the last element of a tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first byte, a multiple of 256.
    pub(crate) start: u64,
    /// Up to the last element's end.
    pub(crate) len: u64,
    /// The tensor's first element, in elements from `start` on.
    pub(crate) first: u64,
}

impl Part {
    /// The part that elements of `size` bytes take, a power of two up to 16, of which the first is element `offset` of the buffer.
    pub(super) fn of(size: u64, shape: &[u64], strides: &[i64], offset: u64) -> Part {
        if shape.contains(&0) {
            return Part::default();
        }
        let (mut low, mut high) = (offset, offset);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let way = (extent - 1).wrapping_mul(stride.unsigned_abs());
            match stride < 0 {
                true => low = low.wrapping_sub(way),
                false => high = high.wrapping_add(way),
            }
        }
        let start = low * size / ALIGN * ALIGN;
        Part {
            start,
            len: (high + 1) * size - start,
            first: offset - start / size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, len: u64, first: u64) -> Part {
        Part { start, len, first }
    }

    #[test]
    fn a_part_holds_every_element_and_begins_where_devices_bind() {
        assert_eq!(Part::of(4, &[3, 5], &[5, 1], 0), part(0, 60, 0));
        assert_eq!(Part::of(4, &[], &[], 64), part(256, 4, 0));
        assert_eq!(Part::of(4, &[], &[], 63), part(0, 256, 63));
        assert_eq!(
            Part::of(8, &[3, 5, 9], &[-20, 1, 0], 100),
            part(256, 584, 68)
        );
        assert_eq!(Part::of(16, &[4], &[-1], 1003), part(15872, 192, 11));
        assert_eq!(Part::of(1, &[u64::MAX], &[0], 5), part(0, 6, 5));
    }

    #[test]
    fn steps_that_are_never_taken_do_not_count() {
        assert_eq!(Part::of(4, &[1, 2], &[i64::MIN, 1], 7), part(0, 36, 7));
        assert_eq!(
            Part::of(4, &[0, 1 << 60], &[1 << 60, 1], 0),
            Part::default()
        );
    }
}
