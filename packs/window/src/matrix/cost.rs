//! How a convolution on matrix units is shared out, and whether that pays: about how long it takes, by a model of the device.
//!
//! Constants are fits to an H200 (132 units, driver 580.159.04) and to convolutions of 3 to 256 channels there.

use super::{AHEAD, FRAGMENT, LANES, Packing, STEP, Source, anew::ALIGN};
use crate::{
    conv::{
        cost::{self, PRODUCTS, room, sums},
        units,
    },
    problem::Problem,
};
use nx_vulkan_abi::{DType, DeviceInfo, Refusal};
use nx_vulkan_pack_kit::matrix::{expect_memory, memory};

/// Cycles that a subgroup takes before and after its steps, and bytes that a unit stores meanwhile in one of them.
const AROUND: u64 = 60;
const STORED: u64 = 6;
/// Bytes that a unit moves in a cycle while operands are packed, and of several parts where positions are elements apart: the product
/// then loads most of them once alone, and waits for memory.
const PACKED: u64 = 28;
const PACKED_APART: u64 = 10;
/// Cycles of the dispatches that wait for each other.
const WAITS: u64 = 23_000;
/// Cycles until a device has seen that there is nothing to compute anew.
const LOOKS: u64 = 20_000;
/// Cycles until what a step loads is there, whoever waits.
const LATENCY: u64 = 600;
/// Subgroups of a workgroup, or least that bring x into shared memory for each other.
const SUBGROUPS: u64 = 4;
/// How much longer than f32 tiles take, in percent, for elements that are converted as they are loaded.
const CONVERSION: [(DType, u64); 2] = [(DType::F16, 185), (DType::BF16, 125)];

/// Subgroups of a unit that are many: each takes no more registers than it has to.
const MANY: u64 = 16;

/// Fragments of a subgroup along filters and positions, and the cycles of a unit that a step of it takes, of few subgroups and of
/// [`MANY`].
type Tile = ([u64; 2], [u64; 2]);

/// For one part an element, for two and for three. Larger tiles do not fit into the registers: the first one hardly does, and pays where
/// filters have few elements.
const TILES: [&[Tile]; 3] = [
    &[
        ([4, 4], [460, 210]),
        ([4, 2], [109, 94]),
        ([2, 4], [128, 107]),
        ([2, 2], [66, 56]),
        ([1, 4], [88, 88]),
    ],
    &[
        ([4, 2], [440; 2]),
        ([2, 4], [435; 2]),
        ([2, 2], [265; 2]),
        ([1, 4], [260; 2]),
    ],
    &[
        ([4, 2], [650; 2]),
        ([2, 4], [640; 2]),
        ([2, 2], [390; 2]),
        ([1, 4], [380; 2]),
    ],
];

/// The same where x is brought into shared memory: smaller tiles leave room for more workgroups, of which some load while others
/// multiply.
const STAGED: [&[Tile]; 3] = [
    &[([2, 4], [128; 2]), ([2, 2], [59; 2])],
    &[([2, 2], [285; 2])],
    &[([2, 2], [390; 2])],
];

/// Steps of a split, for up to `most` splits, each number once.
fn chunks(steps: u64, most: u64) -> impl Iterator<Item = u64> {
    let chunk = move |splits| steps.div_ceil(splits);
    let is_new = move |splits: &u64| *splits == 1 || chunk(*splits) != chunk(*splits - 1);
    (1..=most).filter(is_new).map(chunk)
}

/// How a product is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Fragments of a subgroup along filters and positions.
    pub(super) tile: [u64; 2],
    /// Subgroups of a workgroup along both.
    pub(super) warps: [u64; 2],
    /// Steps of a split.
    pub(super) chunk: u64,
}

impl Shape {
    /// The shape that takes the least time.
    ///
    /// # Errors
    /// A decline where the general units take less, where even their tiles would have too little to do, and where the device
    /// has too little memory.
    pub(super) fn of(
        problem: &Problem,
        packing: &Packing,
        device: &DeviceInfo<'_>,
    ) -> Result<Shape, Refusal> {
        let conversion = CONVERSION.iter().find(|(dtype, _)| *dtype == problem.dtype);
        let percent = conversion.map_or(100, |(_, percent)| *percent);
        let general = cost::general(problem, percent, device).ok_or_else(|| {
            Refusal::decline("too few filters, positions or elements for matrix units")
        })?;
        let most = room(problem, device).min(packing.steps).max(1);
        let place = packing.planes as usize - 1;
        let tiles_of = match packing.source {
            Source::Packed | Source::InPlace => TILES[place].iter(),
            Source::Staged(_) => STAGED[place].iter(),
        };
        let shapes = tiles_of.flat_map(|(tile, cycles)| {
            let rows = problem.filters.div_ceil(tile[0] * FRAGMENT);
            // Subgroups that share positions or filters load them once.
            let along = match packing.source {
                Source::Packed | Source::InPlace => {
                    [2, 1].into_iter().find(|along| rows.is_multiple_of(*along))
                }
                // Or bring the positions that they share, a few each.
                Source::Staged(run) => [8, 4, 2]
                    .into_iter()
                    .find(|along| rows >= *along && tile[1] * FRAGMENT >= run * along),
            };
            let along = along.unwrap_or(1);
            chunks(packing.steps, most).map(move |chunk| {
                let warps = [along, (SUBGROUPS / along).max(1)];
                let shape = Shape {
                    tile: *tile,
                    warps,
                    chunk,
                };
                (shape, *cycles)
            })
        });
        let staged = |shape: &Shape| shape.staged_bytes(packing) <= device.shared_bytes.into();
        let (mut least, mut best) = (u64::MAX, None);
        for (shape, cycles) in shapes.filter(|(shape, _)| staged(shape)) {
            let bytes = shape.bytes(problem, packing);
            least = least.min(bytes);
            if bytes <= memory(device) {
                let cost = shape.cost(problem, packing, device, cycles);
                let is_less = best.is_none_or(|(_, least)| cost < least);
                best = if is_less { Some((shape, cost)) } else { best };
            }
        }
        if least < u64::MAX {
            expect_memory(least, device)?;
        }
        let (shape, cost) =
            best.ok_or_else(|| Refusal::decline("too little shared memory for positions"))?;
        match cost < general {
            true => Ok(shape),
            false => Err(Refusal::decline("the general units take less")),
        }
    }

    /// Subgroups along the filters of a group, and along its positions.
    pub(super) fn tiles(&self, problem: &Problem) -> [u64; 2] {
        let [m, n] = self.tile.map(|n| n * FRAGMENT);
        [problem.filters.div_ceil(m), problem.columns.div_ceil(n)]
    }

    /// Workgroups along both.
    pub(super) fn blocks(&self, problem: &Problem) -> [u64; 2] {
        let [m, n] = self.tiles(problem);
        [m.div_ceil(self.warps[0]), n.div_ceil(self.warps[1])]
    }

    pub(super) fn splits(&self, packing: &Packing) -> u64 {
        packing.steps.div_ceil(self.chunk)
    }

    /// Workgroups in all.
    pub(super) fn jobs(&self, problem: &Problem, packing: &Packing) -> u64 {
        let [m, n] = self.blocks(problem);
        m * n * problem.groups * self.splits(packing)
    }

    /// Subgroups of the unit that has the most.
    fn subgroups(&self, problem: &Problem, packing: &Packing, device: &DeviceInfo<'_>) -> u64 {
        let jobs = self.jobs(problem, packing).div_ceil(units(device));
        jobs * self.warps[0] * self.warps[1]
    }

    /// Whether a unit has many subgroups.
    pub(super) fn are_many(
        &self,
        problem: &Problem,
        packing: &Packing,
        device: &DeviceInfo<'_>,
    ) -> bool {
        self.subgroups(problem, packing, device) >= MANY
    }

    /// Loads of 16 bytes that the packed kernel has.
    pub(super) fn kernel_loads(&self, problem: &Problem, packing: &Packing) -> u64 {
        let fragments = self.tiles(problem)[0] * 2 * self.tile[0];
        problem.groups * fragments * packing.steps * LANES
    }

    /// Bytes of the packed x, the packed kernel, behind which a range may begin, and where its pieces start.
    pub(super) fn packed_bytes(&self, problem: &Problem, packing: &Packing) -> [u64; 3] {
        let ahead = AHEAD * 2 * self.tile[0] * LANES;
        [
            match packing.source {
                Source::Packed => (packing.x_pieces + 1) * packing.piece * 2 * packing.planes,
                Source::Staged(_) | Source::InPlace => 0,
            },
            ((self.kernel_loads(problem, packing) + ahead) * 16 * packing.planes)
                .next_multiple_of(ALIGN),
            (packing.steps + AHEAD) * (STEP / packing.piece) * 4,
        ]
    }

    /// Bytes of shared memory that positions are brought into: 64 channels and 4 more.
    fn staged_bytes(&self, packing: &Packing) -> u64 {
        let positions = self.warps[1] * self.tile[1] * FRAGMENT;
        match packing.source {
            Source::Packed | Source::InPlace => 0,
            Source::Staged(_) => positions * 68 * 2 * packing.planes,
        }
    }

    /// Bytes of what is packed and of the partial results.
    fn bytes(&self, problem: &Problem, packing: &Packing) -> u64 {
        let splits = self.splits(packing);
        let partial = match problem.is_partial(splits) {
            false => 0,
            true => splits * problem.results * 4,
        };
        let [x, kernel, lookups] = self.packed_bytes(problem, packing);
        x + kernel + lookups + partial
    }

    /// About how long it takes, in products of one compute unit.
    fn cost(
        &self,
        problem: &Problem,
        packing: &Packing,
        device: &DeviceInfo<'_>,
        cycles: [u64; 2],
    ) -> u64 {
        let splits = self.splits(packing);
        let subgroups = self.subgroups(problem, packing, device);
        let cycles = cycles[usize::from(subgroups >= MANY)];
        let steps = self.chunk * (subgroups * cycles).max(LATENCY * packing.planes);
        let results = self.tile[0] * self.tile[1] * FRAGMENT * FRAGMENT;
        let size = match problem.is_partial(splits) {
            false => problem.result().size(),
            true => 4,
        };
        let around = subgroups * (AROUND + results * size / STORED);
        let rows = problem.groups * self.tiles(problem)[0] * self.tile[0] * FRAGMENT;
        let x = match packing.source {
            Source::Packed => packing.x_pieces * packing.piece,
            Source::Staged(_) | Source::InPlace => 0,
        };
        let elements = x + rows * packing.steps * STEP;
        let moved = elements * (problem.dtype.size() + 2 * packing.planes);
        let is_apart = packing.axes.last().is_some_and(|axis| axis.steps[0] > 1);
        let rate = match is_apart && packing.planes > 1 && packing.source == Source::Packed {
            true => PACKED_APART,
            false => PACKED,
        };
        let packed = moved / (rate * units(device));
        // The steps that compute everything anew are looked at, whether they run or not.
        let waits = WAITS + if packing.planes > 1 { LOOKS } else { 0 };
        (waits + packed + steps + around) * PRODUCTS + sums(problem, splits)
    }
}
