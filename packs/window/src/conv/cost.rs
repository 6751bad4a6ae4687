//! How a convolution on the general units is cut up, and about how long that takes, by a small model of the device.
//!
//! Times are products of one compute unit. Constants are fits to an H200 (132 units, driver 580.159.04).

use super::{AT_ONCE, BLOCK_K, GROUP, units};
use crate::problem::Problem;
use nx_vulkan_abi::DeviceInfo;

/// Elements of a filter that make a split of tiles worthwhile, and one straight from memory.
const LEAST_CHUNK: u64 = 32;
const LEAST_DIRECT_CHUNK: u64 = 128;
/// Splits at most: each costs a partial result.
const MOST_SPLITS: u64 = 256;
/// Invocations that keep a compute unit busy.
const BUSY: u64 = 1024;
/// Products of a unit that go by while an element of the depth is loaded, however few tiles there are.
const LATENCY: u64 = 15_000;
/// Products of a unit that go by until a dispatch has begun, and has ended.
const DISPATCH: u64 = 300_000;
/// Products of f32 that a unit does in one of its cycles in tiles.
pub(crate) const PRODUCTS: u64 = 72;

/// Filters and positions of a workgroup, and packs of an invocation along both.
pub(super) struct Tile {
    pub(super) block: [u64; 2],
    pub(super) packs: [u64; 2],
}

impl Tile {
    pub(super) fn blocks(&self, problem: &Problem) -> [u64; 2] {
        let [m, n] = self.block;
        [problem.filters.div_ceil(m), problem.columns.div_ceil(n)]
    }
}

const fn tile(block: [u64; 2], packs: [u64; 2]) -> Tile {
    Tile { block, packs }
}

/// For packs of four elements and of two, the largest first.
const OF_FOUR: &[Tile] = &[
    tile([128, 128], [2, 2]),
    tile([64, 128], [2, 2]),
    tile([32, 128], [1, 2]),
    tile([16, 256], [1, 2]),
];
const OF_TWO: &[Tile] = &[
    tile([64, 64], [2, 2]),
    tile([32, 64], [2, 2]),
    tile([16, 128], [2, 2]),
];
/// Where there are few positions.
const NARROW: [Tile; 2] = [tile([64, 32], [1, 1]), tile([64, 32], [2, 2])];

/// The tile and the splits that take the least, and about how long that is; nothing where tiles do not suit.
pub(super) fn least(
    problem: &Problem,
    device: &DeviceInfo<'_>,
) -> Option<(&'static Tile, u64, u64)> {
    // What few filters leave empty of a tile costs most where there is a single channel, or arithmetic takes longer.
    let is_slow = problem.channels == 1 || problem.register().size() > 4;
    let filters = if is_slow { 8 } else { 1 };
    if problem.dtype.is_complex()
        || problem.filters < filters
        || problem.columns < 8
        || problem.depth < 8
    {
        return None;
    }
    let width = 16 / problem.register().size().max(4);
    let tiles = if width == 4 { OF_FOUR } else { OF_TWO };
    let fits = |tile: &&Tile| problem.filters * 4 > tile.block[0] * 3;
    let fitting = tiles.iter().position(|tile| fits(&tile));
    let narrow = &NARROW[usize::from(width != 4)..][..1];
    let tiles = if problem.columns <= 48 && problem.filters > 32 {
        narrow
    } else {
        &tiles[fitting.unwrap_or(tiles.len() - 1)..]
    };
    let cuts = tiles.iter().flat_map(|tile| {
        let most = room(problem, device).min(problem.depth / LEAST_CHUNK);
        (1..=most.max(1)).map(move |splits| (tile, splits))
    });
    let costs = cuts.map(|(tile, splits)| (tile, splits, in_tiles(problem, tile, splits, device)));
    costs.min_by_key(|(_, _, cost)| *cost)
}

/// About how long it takes on the general units, where tiles take `percent` of what they take of f32; nothing where they do not
/// suit.
pub(crate) fn general(problem: &Problem, percent: u64, device: &DeviceInfo<'_>) -> Option<u64> {
    let (_, _, tiles) = least(problem, device)?;
    let tiles = tiles.saturating_mul(percent) / 100;
    let least = straight(problem, device).map_or(tiles, |straight| straight.min(tiles));
    Some(DISPATCH + least)
}

/// Whether it takes less straight from memory than in tiles, where these suit.
pub(super) fn is_soon(problem: &Problem, device: &DeviceInfo<'_>) -> bool {
    let tiles = least(problem, device);
    let straight = straight(problem, device);
    tiles
        .zip(straight)
        .is_some_and(|((_, _, tiles), straight)| straight < tiles)
}

/// How many splits there is memory for.
pub(crate) fn room(problem: &Problem, device: &DeviceInfo<'_>) -> u64 {
    let bytes = problem.results * problem.register().size();
    (device.max_buffer_range.min(1 << 30) / bytes.max(1)).clamp(1, MOST_SPLITS)
}

/// Parts of the depth that so many splits come to, and elements of one.
pub(super) fn chunks(problem: &Problem, splits: u64) -> (u64, u64) {
    let chunk = problem.depth.div_ceil(splits).next_multiple_of(BLOCK_K);
    (problem.depth.div_ceil(chunk), chunk)
}

/// Parts of the depth straight from memory, and places of the kernel of one, which it takes with all their channels.
pub(super) fn places(problem: &Problem, device: &DeviceInfo<'_>) -> (u64, u64) {
    let places = problem.depth / problem.channels;
    let filled = units(device) * BUSY;
    let enough = (filled / problem.results).min(problem.depth / LEAST_DIRECT_CHUNK);
    let wanted = enough.min(room(problem, device)).clamp(1, places);
    let chunk = places.div_ceil(wanted);
    (places.div_ceil(chunk), chunk)
}

/// About how long it takes to add up what splits have come to.
pub(crate) fn sums(problem: &Problem, splits: u64) -> u64 {
    match splits {
        1 => 0,
        splits => problem.results * (2 * splits + 1) / 10 + DISPATCH,
    }
}

/// About how long it takes in tiles of one kind, where workgroups on one unit take turns.
fn in_tiles(problem: &Problem, tile: &Tile, splits: u64, device: &DeviceInfo<'_>) -> u64 {
    let ([m, n], blocks) = (tile.block, tile.blocks(problem));
    let (splits, chunk) = chunks(problem, splits);
    let jobs = blocks[0] * blocks[1] * problem.groups * splits;
    let turns = jobs.div_ceil(units(device));
    let multiplied = turns * (m * n + 9 * (m + n)) * (chunk + 64);
    multiplied.max(LATENCY * chunk) + sums(problem, splits)
}

/// About how long it takes straight from memory; nothing where filters have a single channel along two axes, which is mostly for
/// runs of results.
fn straight(problem: &Problem, device: &DeviceInfo<'_>) -> Option<u64> {
    const LANES: u64 = 32;
    // Cycles of a unit: until an invocation has what it multiplies, of several channels at once or of few; and for all of a
    // subgroup in the beginning and the end, for a place of the kernel and for a product, which hides some lines of memory.
    const LOADED: [u64; 2] = [130, 200];
    const AROUND: u64 = 90;
    const PLACE: u64 = 15;
    const PRODUCT: u64 = 4;
    const HIDDEN: u64 = 4;
    if problem.plane().is_some() {
        return None;
    }
    let (splits, places) = places(problem, device);
    let depth = places * problem.channels;
    let lines = match (problem.channels_last(), problem.filters_inner()) {
        (false, _) => 0,
        (true, false) => LANES,
        (true, true) => LANES / problem.filters.min(LANES),
    };
    let latency = LOADED[usize::from(problem.channels < AT_ONCE)];
    let group = u64::from(GROUP);
    let groups = (problem.results * splits).div_ceil(group);
    let subgroups = groups.div_ceil(units(device)) * (group / LANES);
    let loaded = (lines * 3 / 4).saturating_sub(HIDDEN) + 1;
    let busy = AROUND + places * PLACE + depth * PRODUCT.max(loaded);
    let cycles = subgroups.saturating_mul(busy).max(depth * latency);
    let products = cycles.saturating_mul(PRODUCTS);
    Some(products.saturating_add(sums(problem, splits)))
}
