//! Large products through shared memory, with the tile shape and the number of splits that keep the device busiest.

use crate::{
    problem::{Problem, binds_at_most},
    skinny::FEW,
    steps::{self, Cut, number},
    table::{Rates, Tile},
};
use nx_vulkan_abi::{DeviceInfo, Plan, Refusal, explain};

/// Contracted elements that are worth a workgroup where there are many parts.
const LEAST_PART: u64 = 128;
/// Results from which on tiles of a shorter contracted axis pay, of which everything is in packs.
const MANY: u64 = 1 << 22;
/// Tiles that are too few for any device.
const FEW_TILES: u64 = 4;

/// Plans products that are large in every direction.
pub(crate) fn plan(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    tiles: &[Tile],
) -> Result<Plan, Refusal> {
    let Choice { cost, tile, cut } = choose(problem, device, tiles)?;
    let [bm, bn, bk] = tile.block;
    explain(format!(
        "a tile of {bm} x {bn} in steps of {bk}{}, {} workgroups of {} invocations, {} parts of {} along k, at most {} \
         multiply-adds of a unit",
        match tile.slices {
            1 => String::new(),
            slices => format!(" of each of {slices} slices of k"),
        },
        u64::from(cut.splits)
            * u64::from(cut.blocks[0])
            * u64::from(cut.blocks[1])
            * u64::from(problem.batches),
        tile.threads(),
        cut.splits,
        cut.chunk,
        cost as u64,
    ));
    let width = tile.width();
    let wide = [
        problem.a.is_wide(width),
        problem.b.is_wide(width),
        problem.n.is_multiple_of(width),
    ];
    let own = vec![
        number("THREADS", tile.threads()),
        number("BLOCK_M", tile.block[0]),
        number("BLOCK_N", tile.block[1]),
        number("BLOCK_K", tile.block[2]),
        number("WARP_M", tile.warp[0]),
        number("WARP_N", tile.warp[1]),
        number("PACKS_M", tile.packs[0]),
        number("PACKS_N", tile.packs[1]),
        number("SLICES", tile.slices),
    ];
    steps::product(problem, device, ("tile.comp", 0), cut, wide, own)
}

/// A tile shape and how the product is cut into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// Multiply-adds of the unit with the most to do.
    cost: f64,
    tile: &'a Tile,
    pub(crate) cut: Cut,
}

impl Choice<'_> {
    /// Estimated seconds.
    pub(crate) fn seconds(&self, rates: &Rates) -> f64 {
        const START: f64 = 3e-6;
        // A full unit with large tiles does a fifth more than the average that the table has.
        START + 2.0 * self.cost / (1.2 * rates.plain * 1e9)
    }
}

/// The tile and the cut that take the least time.
///
/// # Errors
/// A decline where the product is smaller than any tile, or the device.
pub(crate) fn choose<'a>(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    tiles: &'a [Tile],
) -> Result<Choice<'a>, Refusal> {
    let &Problem { m, n, k, .. } = problem;
    let is_small = u64::from(m) * u64::from(n) < 1024 && k < 512;
    let width = steps::width(problem.dtype);
    let is_wide = width > 1
        && problem.n.is_multiple_of(width)
        && [&problem.a, &problem.b].iter().all(|x| x.is_wide(width));
    let is_large = problem.elements() >= MANY;
    let least_k = if is_wide && is_large { 8 } else { 16 };
    if m <= FEW || n <= FEW || k < least_k || is_small {
        return Err(Refusal::decline(format!(
            "{m} x {n} x {k} is smaller than a tile"
        )));
    }
    let fits = |tile: &&Tile| {
        tile.register == steps::register(problem.dtype)
            && tile.shared_bytes() <= device.shared_bytes
            && tile.threads() <= device.max_invocations.min(device.max_workgroup_size[0])
    };
    let units = u64::from(device.compute_units.max(16));
    let choices = tiles.iter().filter(fits).flat_map(|tile| {
        let whole = cut(problem, tile, 1);
        let tiles =
            u64::from(whole.blocks[0]) * u64::from(whole.blocks[1]) * u64::from(problem.batches);
        // As many parts as fill the units once, twice, and so on; more would only add to what is summed up. So few tiles that k has
        // less take as many as it has.
        let parts = [1, 2, 3, 4, 6, 8].map(|round| round * units / tiles);
        let all = (tiles <= FEW_TILES).then_some(u64::from(k) / LEAST_PART);
        let fewer = [1, 2, 3, 4, 6, 8]
            .into_iter()
            .filter(move |parts| *parts == 1 || *parts * tiles < 8 * units);
        let parts = parts
            .into_iter()
            .chain(all)
            .filter(move |parts| *parts > 8 && parts * LEAST_PART <= u64::from(k))
            .chain(fewer);
        parts.map(move |parts| (tile, cut(problem, tile, parts)))
    });
    let choices = choices
        .filter(|(_, cut)| steps::partial_bytes(problem, cut.splits) <= binds_at_most(device));
    let (cost, tile, cut) = choices
        .map(|(tile, cut)| (cost(problem, device, (tile, &cut)), tile, cut))
        .filter(|choice| choice.0.is_finite())
        .min_by(|x, y| x.0.total_cmp(&y.0))
        .ok_or_else(|| {
            Refusal::decline("no tile fits the device's shared memory and workgroup size")
        })?;
    Ok(Choice { cost, tile, cut })
}

fn cut(problem: &Problem, tile: &Tile, splits: u64) -> Cut {
    let whole = Cut {
        blocks: [
            problem.m.div_ceil(tile.block[0]),
            problem.n.div_ceil(tile.block[1]),
        ],
        splits: 1,
        chunk: problem.k,
        jobs_per_group: 1,
    };
    let least = if splits > 8 { 2 * tile.block[2] } else { 256 };
    whole.split(problem.k, splits, least)
}

/// Estimated time in multiply-adds of one compute unit: the unit with the most workgroups sets the pace. It needs several
/// of them, or large ones, to hide latency behind arithmetic.
fn cost(problem: &Problem, device: &DeviceInfo<'_>, (tile, cut): (&Tile, &Cut)) -> f64 {
    const SECOND_DISPATCH: f64 = 5e5; // 2.2 us of 2.2e11 multiply-adds per second
    const PARTIAL: f64 = 0.4; // 8 bytes of 4.3e12 per second, at the same rate
    // Invocations at which a unit is busy; slices take fewer steps, and so wait for the first one for longer.
    let full = if tile.slices == 1 { 256.0 } else { 512.0 };
    const HALF: f64 = 128.0; // and at which it is half as busy as with very many
    const SLICED_ROUNDS: f64 = 2.0;
    const LEAST_SLICED: u32 = 64;
    const STARTS: f64 = 4.0; // rounds that begin or end while nobody multiplies
    let slabs = f64::from(cut.splits) * f64::from(problem.batches);
    let groups = slabs * f64::from(cut.blocks[0]) * f64::from(cut.blocks[1]);
    let rounds = (groups / f64::from(device.compute_units.max(16))).ceil();
    let resident = (rounds * f64::from(tile.threads())).min(full);
    let busy = resident / (resident + HALF) * (full + HALF) / full;
    let [m, n, k] = tile.block.map(f64::from);
    let operands = [&problem.a, &problem.b];
    let along_k = operands
        .iter()
        .filter(|operand| operand.is_along_k())
        .count();
    let is_narrow = operands
        .iter()
        .any(|operand| operand.dtype.size() < u64::from(tile.register));
    let is_single = operands
        .iter()
        .any(|operand| !operand.is_wide(tile.width()));
    let speed = tile.speed[along_k]
        * if is_narrow { tile.narrow } else { 1.0 }
        * if is_single { tile.single } else { 1.0 };
    // Slices are for few tiles, three rounds of 392 x 768 x 768 took an H200 27 us where others took 21; for some elements each; and
    // in place of a second dispatch: 128 x 512 x 512 took 8.7 us without, 9.7 with one.
    let is_short = rounds <= SLICED_ROUNDS && cut.chunk >= LEAST_SLICED;
    let suits = tile.slices == 1 || is_short && cut.splits == 1;
    if rounds < f64::from(tile.rounds) || !suits {
        return f64::INFINITY;
    }
    let begins = match tile.slices {
        1 => 2.0 * k,
        slices => 16.0 * f64::from(slices),
    };
    let along = (f64::from(cut.chunk) + begins) / (speed * busy);
    let work = m * n * (rounds * along + rounds.min(STARTS) * tile.start);
    if cut.splits == 1 {
        return work;
    }
    work + SECOND_DISPATCH + PARTIAL * f64::from(cut.splits) * problem.elements() as f64
}
