//! How an attention is cut up, fits to an H200 with driver 580.159.04.

use super::problem::{BLOCK, Problem};
use nx_vulkan_abi::{DeviceInfo, Refusal};
use nx_vulkan_pack_kit::grid;

/// Bytes of shared memory that the results of a subgroup pass through, and what it tells of 16 rows.
const STAGED: u32 = 16 * 17 * 16;
const TOPS: u32 = 16 * 8;
/// Keys that a subgroup takes at a time, 16 by 16: of more it would keep too much in registers.
pub(super) const KEY_TILES: u32 = 2;
/// From so many keys on two tiles of rows pay: each key is loaded for twice the rows.
const MANY_KEYS: u32 = 256;
/// The same, which keep more subgroups than four for the same rows busy.
const LONG: u32 = 1024;

/// How it is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Rows of a subgroup, 16 by 16.
    pub(super) row_tiles: u32,
    /// Subgroups of a workgroup with rows of their own.
    pub(super) sides: u32,
    /// Subgroups of a workgroup for the same rows, each with a part of the keys.
    pub(crate) parts: u32,
    /// Keys of a part.
    pub(crate) chunk: u32,
}

impl Shape {
    /// # Errors
    /// A decline where a workgroup is larger than the device takes.
    pub(crate) fn of(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Shape, Refusal> {
        let units = u64::from(device.compute_units.max(8));
        let tiles = u64::from(problem.batches) * u64::from(problem.rows.div_ceil(16));
        let is_narrow = problem.depth.max(problem.width) <= BLOCK;
        let (row_tiles, sides, parts) = match () {
            () if is_narrow && problem.keys >= MANY_KEYS && tiles >= 6 * units => (2, 2, 2),
            () if tiles <= units && problem.keys >= LONG => (1, 1, 8),
            () if tiles <= 2 * units => (1, 1, 4),
            () => (1, 1, 2),
        };
        let shape = Shape::cut(problem.keys, row_tiles, sides, parts);
        let fits = |shape: &Shape| {
            grid::invocations(device) >= shape.invocations()
                && device.shared_bytes >= shape.shared_bytes()
        };
        let least = Shape::cut(problem.keys, 1, 1, 1);
        let mut choices = [shape, least].into_iter();
        choices.find(fits).ok_or_else(|| {
            Refusal::decline(format!(
                "a workgroup has {} invocations, more than the device takes",
                least.invocations()
            ))
        })
    }

    /// As many parts as have keys.
    fn cut(keys: u32, row_tiles: u32, sides: u32, parts: u32) -> Shape {
        let chunk = keys.div_ceil(parts).next_multiple_of(16 * KEY_TILES);
        Shape {
            row_tiles,
            sides,
            parts: keys.div_ceil(chunk),
            chunk,
        }
    }

    /// Rows of a workgroup.
    pub(super) fn rows(&self) -> u32 {
        16 * self.row_tiles * self.sides
    }

    pub(super) fn invocations(&self) -> u32 {
        32 * self.sides * self.parts
    }

    fn shared_bytes(&self) -> u32 {
        match self.parts {
            1 => 0,
            parts => self.sides * parts * (STAGED + self.row_tiles * TOPS),
        }
    }
}
