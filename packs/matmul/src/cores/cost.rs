//! How a product on matrix units is cut up, by a small model of the device, and whether it pays at all.

use super::{
    COLUMNS, PART, Packed, Side, Way,
    parts::{self, LEAST_SHARED, Owned, owned},
    reading::Reading,
};
use crate::{
    operand::Operand,
    problem::{Problem, binds_at_most},
    table::Rates,
};
use nx_vulkan_abi::{DeviceInfo, Refusal};
use nx_vulkan_pack_kit::matrix::{expect_memory, memory};

/// How a product is cut up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Rows that a subgroup owns.
    pub(super) rows: u32,
    /// Subgroups that share what one owns, a part of the contracted axis each.
    pub(super) parts: u32,
    /// What a workgroup has along m and n of what a subgroup owns.
    pub(super) high: u32,
    pub(super) wide: u32,
    /// Parts of the contracted axis.
    pub(super) splits: u32,
    /// Fragments along k of one part, an even number.
    pub(super) chunk: u32,
    /// Rows of blocks that are walked together.
    pub(super) band: u32,
    /// Where the operands are read.
    pub(super) reading: Reading,
    /// Estimated seconds.
    pub(super) seconds: f64,
}

/// What a subgroup may own.
#[derive(Debug, Clone, Copy)]
struct Tile {
    rows: u32,
    /// Subgroups of a workgroup along m.
    high: u32,
    /// Rate of a unit that is full, in relation to the best.
    speed: f64,
    /// What one workgroup on a unit does of that.
    alone: f64,
    /// What is left of the rate where B, or both operands, are read where they lie; 0 where registers do not suffice for that.
    in_place: f64,
}

const fn tile(rows: u32, speed: f64, alone: f64, in_place: f64) -> Tile {
    Tile {
        rows,
        high: 2,
        speed,
        alone,
        in_place,
    }
}

/// Of f16 and bf16, measured on an H200 with driver 580.159.04.
const HALVES: &[Tile] = &[
    tile(32, 0.97, 0.4, 0.53),
    tile(48, 1.0, 0.5, 0.53),
    tile(64, 1.0, 0.59, 0.59),
    tile(80, 1.05, 0.65, 0.0),
    Tile {
        high: 4,
        ..tile(64, 1.07, 1.0, 0.0)
    },
];
/// Of bytes.
const BYTE: &[Tile] = &[
    tile(32, 0.7, 0.4, 0.0),
    tile(64, 0.93, 0.63, 0.0),
    tile(80, 0.97, 0.65, 0.0),
];
/// Parts of the contracted axis that are tried.
pub(crate) const SPLITS: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Seconds until a dispatch that waits for another one is under way.
pub(crate) const DISPATCH: f64 = 3e-6;
/// Bytes per second of one unit, from caches and memory.
pub(crate) const BYTES: f64 = 2.5e10;
/// Rows, columns and multiplications below which other kernels are faster on any device.
const LEAST: [u32; 2] = [9, 9];
const LEAST_WORK: f64 = 2_097_152.0;

impl Shape {
    /// The fastest one.
    ///
    /// # Errors
    /// A decline where the general units are as fast, or where the device has too little memory.
    pub(super) fn of(
        problem: &Problem,
        way: Way,
        device: &DeviceInfo<'_>,
        rates: &Rates,
    ) -> Result<Shape, Refusal> {
        let units = f64::from(device.compute_units.max(8));
        let depth = way.steps(problem);
        let readings = Reading::all(problem, way);
        let shared = [Reading::InPlace, Reading::InPlaceA].map(|one| readings.contains(&one));
        let shares = shared.contains(&true) && problem.m >= LEAST_SHARED;
        expect_large(problem, shares)?;
        let tiles = match way.element.size() {
            1 => BYTE,
            _ => HALVES,
        };
        // Of f16 2048 along each axis takes 53.1 us in bands of 16 rows of blocks, 56.5 in bands of 8.
        let has_wide_bands = |rows: u32, reading: Reading| {
            let is_half = way.element.size() == 2 && reading == Reading::Packed;
            rows > 64 || rows == 64 && is_half
        };
        let cut = |own: Owned, splits: u32, reading: Reading| {
            let Owned {
                rows,
                parts,
                high,
                wide,
            } = own;
            let chunk = depth.div_ceil(splits).next_multiple_of(2);
            Shape {
                rows,
                parts,
                high,
                wide,
                splits: depth.div_ceil(chunk),
                chunk,
                band: if has_wide_bands(rows, reading) { 16 } else { 8 },
                reading,
                seconds: 0.0,
            }
        };
        let own = readings
            .iter()
            .filter(|reading| shares && !reading.packs_a());
        let shared =
            own.flat_map(|reading| parts::all(problem, *reading).map(move |own| (reading, own)));
        let shared = shared
            .flat_map(|(reading, own)| SPLITS.map(|splits| (own, splits, *reading)))
            .map(|(own, splits, reading)| (cut(own, splits, reading), None));
        let aside = tiles
            .iter()
            .flat_map(|tile| SPLITS.map(|splits| (tile, splits)))
            .flat_map(|(tile, splits)| readings.iter().map(move |reading| (tile, splits, *reading)))
            .filter(|(tile, _, reading)| match reading {
                Reading::Packed => true,
                Reading::InPlaceA => false,
                Reading::InPlaceB | Reading::InPlace => tile.in_place > 0.0,
            })
            .map(|(tile, splits, reading)| {
                let own = owned(tile.rows, 1, [tile.high, 2]);
                (cut(own, splits, reading), Some(tile))
            });
        let choices = shared.chain(aside.filter(|_| problem.m >= LEAST[0]));
        let choices = choices.filter(|(shape, _)| shape.reading.takes(problem, way, shape.rows));
        // The least one has no parts.
        let least = choices.clone().map(|(shape, _)| shape.bytes(problem, way));
        expect_memory(least.min().unwrap_or(0), device)?;
        let fits = |shape: &Shape| {
            problem.partial_bytes(shape.splits) <= binds_at_most(device)
                && shape.shared_bytes() <= u64::from(device.shared_bytes)
                && shape.bytes(problem, way) <= memory(device)
        };
        let choices = choices.filter(|(shape, _)| fits(shape));
        let choices = choices.map(|(shape, tile)| match tile {
            Some(tile) => (shape, shape.seconds(problem, way, rates, units, tile)),
            None => (shape, shape.seconds_of_parts(problem, way, rates, units)),
        });
        let best = choices.min_by(|x, y| x.1.total_cmp(&y.1));
        let (shape, seconds) = best.ok_or_else(|| {
            Refusal::decline("partial results are more than one binding or shared memory")
        })?;
        let otherwise = plain_seconds(problem, rates, units);
        // Two dispatches that pack do not start side by side: no product with both took less than 10 us on an H200.
        let late = match shape.reading {
            Reading::Packed => DISPATCH,
            Reading::InPlaceA | Reading::InPlaceB | Reading::InPlace => 0.0,
        };
        let seconds = seconds + late;
        if seconds < otherwise {
            return Ok(Shape { seconds, ..shape });
        }
        Err(Refusal::decline(format!(
            "matrix units would take {:.1} us and the general ones {:.1} us",
            seconds * 1e6,
            otherwise * 1e6
        )))
    }

    /// What `nxv explain` tells of it.
    pub(super) fn words(&self) -> String {
        let shared = match (self.parts, self.high, self.wide) {
            (1, _, _) => String::new(),
            (parts, 1, 1) => format!(" that {parts} share along k"),
            (parts, high, wide) => {
                format!(" that {parts} share along k, {high} x {wide} of them side by side")
            }
        };
        let high = match self.high {
            3.. if self.parts == 1 => format!(", {} of them along m", self.high),
            _ => String::new(),
        };
        let splits = match self.splits {
            1 => String::new(),
            splits => format!(", {splits} parts along k"),
        };
        format!(
            "subgroups of {} x {COLUMNS}{shared}{high}{splits}, {}, about {:.1} us",
            self.rows,
            self.reading.words(),
            self.seconds * 1e6
        )
    }

    /// Workgroups along m and n.
    pub(super) fn blocks(&self, problem: &Problem) -> [u32; 2] {
        [
            problem.m.div_ceil(self.high * self.rows),
            problem.n.div_ceil(self.wide * COLUMNS),
        ]
    }

    /// Workgroups in all.
    pub(super) fn jobs(&self, problem: &Problem) -> u64 {
        let [m, n] = self.blocks(problem).map(u64::from);
        m * n * u64::from(problem.batches) * u64::from(self.splits)
    }

    /// Subgroups of a workgroup.
    pub(super) fn subgroups(&self) -> u32 {
        self.parts * self.high * self.wide
    }

    /// Bytes of shared memory that sums may pass through: those of parts, and rows of more subgroups than four.
    fn shared_bytes(&self) -> u64 {
        match (self.parts, self.high) {
            (1, ..=2) => 0,
            _ => u64::from(self.subgroups() * PART),
        }
    }

    /// Bytes of the packed operands and of the partial results.
    fn bytes(&self, problem: &Problem, way: Way) -> u64 {
        let packed = |side| Packed::new(problem, side, way.steps(problem), 1, self.rows).bytes;
        let packs = |packs: bool, side| if packs { packed(side) } else { 0 };
        let a = packs(self.reading.packs_a(), Side::A);
        let b = packs(self.reading.packs_b(), Side::B);
        a.saturating_add(b)
            .saturating_add(problem.partial_bytes(self.splits))
    }

    /// Estimated seconds: packing, the product, and the sum of its parts.
    fn seconds(&self, problem: &Problem, way: Way, rates: &Rates, units: f64, tile: &Tile) -> f64 {
        let packed = |rows: u32, operand: &Operand| {
            let elements = operand.batches() as f64 * f64::from(rows) * f64::from(problem.k);
            elements * (operand.dtype.size() + way.element.size()) as f64
        };
        let packs = |packs: bool, bytes: f64| if packs { bytes } else { 0.0 };
        let packed = packs(self.reading.packs_a(), packed(problem.m, &problem.a))
            + packs(
                self.reading.packs_b() && !problem.b_lasts,
                packed(problem.n, &problem.b),
            );
        let (dispatches, speed) = match self.reading {
            Reading::Packed => (2.0, 1.0),
            Reading::InPlaceB => (2.0, tile.in_place),
            Reading::InPlaceA | Reading::InPlace => (1.0, tile.in_place),
        };
        let rate = rates.matrix * 1e9 * tile.speed;
        let flops = f64::from(self.high * self.rows)
            * f64::from(2 * COLUMNS)
            * f64::from(self.chunk * way.depth())
            * 2.0;
        // The unit with the most workgroups sets the pace. One that has no room for two waits for the first and the last loads of each:
        // f16 6144 x 4096 x 5120 took 786 us where others took 669.
        let most = (self.jobs(problem) as f64 / units).ceil();
        if tile.high > 2 && most > 1.0 {
            return f64::INFINITY;
        }
        let alone = match self.splits {
            1 => self.reading.alone(problem, way),
            _ => None,
        };
        let alone = most * tile.alone * alone.unwrap_or(speed);
        // Parts of the contracted axis read what lies in memory from many places at once.
        let scattered = match self.splits > 1 && self.reading == Reading::InPlace {
            true => 1.15,
            false => 1.0,
        };
        let product = scattered * most * flops / (rate * alone.min(speed));
        // What is packed lies in caches by then.
        let loaded = |packs: bool, operand: &Operand| match packs {
            true => 0.0,
            false => operand.extents.iter().product::<u64>() as f64 * operand.dtype.size() as f64,
        };
        let loaded =
            loaded(self.reading.packs_a(), &problem.a) + loaded(self.reading.packs_b(), &problem.b);
        let product = product.max(loaded / (BYTES * units));
        let sums = self.seconds_of_sums(problem, units);
        dispatches * DISPATCH + packed / (BYTES * units) + product + sums
    }

    /// Estimated seconds until the parts of the contracted axis are added up.
    pub(super) fn seconds_of_sums(&self, problem: &Problem, units: f64) -> f64 {
        match self.splits {
            1 => 0.0,
            splits => {
                let bytes = problem.elements() as f64 * f64::from(8 * splits);
                DISPATCH + bytes / (BYTES * units)
            }
        }
    }
}

/// Estimated seconds on the general units, whose kernels are slower on narrow floats.
pub(crate) fn plain_seconds(problem: &Problem, rates: &Rates, units: f64) -> f64 {
    let (share, start) = match problem.dtype.size() >= 4 {
        true => (0.85, 6e-6),
        // A block waits for each of its loads along k; long sums are shared.
        false => (0.5, 5e-6 + 2.5e-8 * f64::from(problem.k.min(320))),
    };
    // Of tiles that are mostly empty too.
    let [m, n] = [problem.m, problem.n].map(|extent| f64::from(extent.next_multiple_of(32)));
    let products = f64::from(problem.batches) * m * n * f64::from(problem.k);
    start + 2.0 * products / (share * rates.plain * 1e9 * units)
}

/// Multiplications of two elements.
fn products(problem: &Problem) -> f64 {
    problem.elements() as f64 * f64::from(problem.k)
}

/// Declines products that are too small for matrix units on any device, the fewest rows of which subgroups may share.
pub(crate) fn expect_large(problem: &Problem, shares: bool) -> Result<(), Refusal> {
    match problem.m < LEAST[0] && !shares || problem.n < LEAST[1] || products(problem) < LEAST_WORK
    {
        true => Err(Refusal::decline("too few rows, columns or multiplications")),
        false => Ok(()),
    }
}
