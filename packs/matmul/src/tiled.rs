//! Large products through shared memory, with the tile shape and the number of splits that keep the device busiest.

use crate::{
    problem::Problem,
    skinny::FEW,
    steps::{self, Cut, number},
    table::Tile,
};
use nx_vulkan_abi::{DeviceInfo, Plan, Refusal};

/// Plans products that are large in every direction.
pub(crate) fn plan(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    tiles: &[Tile],
) -> Result<Plan, Refusal> {
    let &Problem { m, n, k, .. } = problem;
    if m <= FEW || n <= FEW || k < 16 || u64::from(m) * u64::from(n) < 1024 {
        return Err(Refusal::decline(format!(
            "{m} x {n} x {k} is smaller than a tile"
        )));
    }
    let fits = |tile: &&Tile| {
        tile.register == steps::register(problem.dtype)
            && tile.shared_bytes() <= device.shared_bytes
            && tile.threads() <= device.max_invocations.min(device.max_workgroup_size[0])
    };
    let choices = tiles.iter().filter(fits).flat_map(|tile| {
        [1, 2, 3, 4, 6, 8]
            .map(|splits| (tile, cut(problem, tile, splits)))
            .into_iter()
    });
    let (tile, cut) = choices
        .min_by(|x, y| cost(problem, device, x).total_cmp(&cost(problem, device, y)))
        .ok_or_else(|| {
            Refusal::decline("no tile fits the device's shared memory and workgroup size")
        })?;
    let width = tile.width();
    let wide = [
        problem.a.is_wide(width),
        problem.b.is_wide(width),
        n.is_multiple_of(width),
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
    ];
    steps::product(problem, device, "tile.comp", cut, wide, own)
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
    whole.split(problem.k, splits, 256)
}

/// Estimated time in multiply-adds of one compute unit: the unit with the most workgroups sets the pace.
fn cost(problem: &Problem, device: &DeviceInfo<'_>, (tile, cut): &(&Tile, Cut)) -> f64 {
    const SECOND_DISPATCH: f64 = 5e5; // 2.2 us of 2.2e11 multiply-adds per second
    const PARTIAL: f64 = 0.4; // 8 bytes of 4.3e12 per second, at the same rate
    let slabs = f64::from(cut.splits) * f64::from(problem.batches);
    let groups = slabs * f64::from(cut.blocks[0]) * f64::from(cut.blocks[1]);
    let rounds = (groups / f64::from(device.compute_units.max(16))).ceil();
    let [m, n, k] = tile.block.map(f64::from);
    let work = rounds * m * n * (f64::from(cut.chunk) + 2.0 * k) / tile.speed;
    if cut.splits == 1 {
        return work;
    }
    work + SECOND_DISPATCH + PARTIAL * f64::from(cut.splits) * problem.elements() as f64
}
