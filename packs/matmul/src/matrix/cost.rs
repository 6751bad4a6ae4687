//! How a product is cut up, by a small model of the device, and whether matrix units pay at all.

use super::tile::Tile;
use crate::{
    cores::{
        Way,
        cost::{BYTES, DISPATCH, SPLITS, expect_large, plain_seconds},
    },
    problem::{Problem, binds_at_most},
    table::Rates,
};
use nx_vulkan_abi::{DeviceInfo, Features, Refusal};
use nx_vulkan_pack_kit::matrix::{expect_memory, memory};

/// What is left of the rate where an operand, or both, are taken apart as they are loaded: both, f16 of 3001 x 1003 x 2005, came to 51
/// TFLOP/s on an H200 with driver 580.159.04; one is an estimate.
const SLOW: [f64; 3] = [1.0, 0.4, 0.2];

/// How many times faster than the general units it has to be where the order of elements in a fragment is known: what `cores`
/// declines there is close, and on small products this kernel is slower than that.
const KNOWN_ORDER: f64 = 2.0;

/// How a product is cut up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub(super) tile: Tile,
    /// Parts of the contracted axis.
    pub(super) splits: u32,
    /// Elements of one part, a multiple of a step.
    pub(super) chunk: u32,
}

impl Shape {
    /// The fastest one.
    ///
    /// # Errors
    /// A decline where the general units are as fast, or where no tile fits the device.
    pub(super) fn of(
        problem: &Problem,
        way: Way,
        device: &DeviceInfo<'_>,
        rates: &Rates,
    ) -> Result<Shape, Refusal> {
        expect_large(problem, false)?;
        let units = f64::from(device.compute_units.max(8));
        let tiles = Tile::all(problem, way, device)?;
        let choices = tiles
            .into_iter()
            .flat_map(|tile| SPLITS.map(|splits| Shape::cut(problem, tile, splits)));
        let fits = |shape: &Shape| {
            let bytes = problem.partial_bytes(shape.splits);
            bytes <= binds_at_most(device) && bytes <= memory(device)
        };
        let choices = choices.filter(fits);
        let choices = choices.map(|shape| (shape, shape.seconds(problem, way, rates, units)));
        let Some((shape, seconds)) = choices.min_by(|x, y| x.1.total_cmp(&y.1)) else {
            return Err(expect_memory(4 * problem.elements(), device)
                .err()
                .unwrap_or_else(|| Refusal::decline("partial results are more than one binding")));
        };
        let otherwise = plain_seconds(problem, rates, units);
        let margin = match device.features.has(Features::COOPMAT_ORDER) {
            true => KNOWN_ORDER,
            false => 1.0,
        };
        if seconds * margin < otherwise {
            return Ok(shape);
        }
        Err(Refusal::decline(format!(
            "matrix units would take {:.1} us and the general ones {:.1} us",
            seconds * 1e6,
            otherwise * 1e6
        )))
    }

    fn cut(problem: &Problem, tile: Tile, splits: u32) -> Shape {
        let chunk = problem.k.div_ceil(splits).next_multiple_of(tile.depth);
        Shape {
            tile,
            splits: problem.k.div_ceil(chunk),
            chunk,
        }
    }

    /// Workgroups along m and n.
    pub(super) fn blocks(&self, problem: &Problem) -> [u32; 2] {
        let [m, n] = self.tile.block;
        [problem.m.div_ceil(m), problem.n.div_ceil(n)]
    }

    /// Workgroups in all.
    pub(super) fn jobs(&self, problem: &Problem) -> u64 {
        let [m, n] = self.blocks(problem).map(u64::from);
        m * n * u64::from(problem.batches) * u64::from(self.splits)
    }

    /// Estimated seconds: the product, and the sum of its parts.
    fn seconds(&self, problem: &Problem, way: Way, rates: &Rates, units: f64) -> f64 {
        let Tile { block, size, .. } = self.tile;
        let slow = SLOW[self.tile.slow_sides(problem, way)];
        let rate = rates.matrix * 1e9 * size.speed * slow;
        let flops = 2.0 * f64::from(block[0]) * f64::from(block[1]) * f64::from(self.chunk);
        // The unit with the most workgroups sets the pace.
        let most = (self.jobs(problem) as f64 / units).ceil();
        let product = most * flops / (rate * (most * size.alone).min(1.0));
        let sums = match problem.is_partial(self.splits) {
            false => 0.0,
            true => {
                let bytes = problem.elements() as f64 * f64::from(8 * self.splits);
                DISPATCH + bytes / (BYTES * units)
            }
        };
        DISPATCH + product + sums
    }
}
