//! Tiles of workgroups and subgroups that a device takes, made of the products that its driver lists.

use super::is_wide;
use crate::{cores::Way, problem::Problem};
use nx_vulkan_abi::{DType, Define, DeviceInfo, Features, MatrixScope, Refusal, glsl};
use nx_vulkan_pack_kit::{grid, steps::number};

/// Bytes of an item that moves at a time.
const ITEM: u32 = 16;
/// Bytes of a step along k, at least.
const STEP: u32 = 64;
/// Sums that an invocation holds at most, a register each.
const MOST_SUMS: u32 = 128;
/// Invocations that a subgroup may have.
const LANES: [u32; 5] = [8, 16, 32, 64, 128];

/// m and n of a workgroup and of a subgroup, how fast a full unit is with it in relation to `cores.comp`, and what one workgroup
/// alone on a unit does of that. The rates are those of 4096 x 4096 x 4096 in f16 on an H200 with driver 580.159.04: 263, 180, 151 and
/// 132 TFLOP/s, the first of them with fragments of 16 x 8 x 16. What one does alone is an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    block: [u32; 2],
    own: [u32; 2],
    pub(super) speed: f64,
    pub(super) alone: f64,
}

const fn size(block: [u32; 2], own: [u32; 2], speed: f64, alone: f64) -> Size {
    Size {
        block,
        own,
        speed,
        alone,
    }
}

const SIZES: [Size; 4] = [
    size([128, 128], [64, 64], 0.6, 0.6),
    size([128, 64], [64, 32], 0.41, 0.5),
    size([64, 64], [32, 32], 0.35, 0.35),
    size([32, 64], [32, 32], 0.3, 0.2),
];

/// A tile of a workgroup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tile {
    /// m and n of the workgroup.
    pub(super) block: [u32; 2],
    /// And of a subgroup.
    own: [u32; 2],
    /// Elements along k of one step.
    pub(super) depth: u32,
    /// m, n and k of a product that the driver lists.
    pub(super) fragment: [u32; 3],
    /// Type of its sums.
    sum: DType,
    /// Invocations of a subgroup.
    pub(super) lanes: u32,
    /// Whether A and B lie along k in shared memory.
    pub(super) along_k: [bool; 2],
    pub(super) size: Size,
}

impl Tile {
    /// Every tile that the device takes, of the largest product that fits each.
    ///
    /// # Errors
    /// A decline that says what it lacks.
    pub(super) fn all(
        problem: &Problem,
        way: Way,
        device: &DeviceInfo<'_>,
    ) -> Result<Vec<Tile>, Refusal> {
        let lanes = lanes(device)?;
        let products = products(way, device);
        if products.is_empty() {
            return Err(Refusal::decline(format!(
                "the driver lists no product of {0} and {0} of a subgroup with sums of {1}",
                way.element(),
                way.sum()
            )));
        }
        let made = SIZES.iter().flat_map(|size| {
            let fit = products
                .iter()
                .filter_map(|product| Tile::of(problem, way, *size, *product, lanes));
            fit.max_by_key(|tile| tile.fragment.iter().product::<u32>())
        });
        let made: Vec<Tile> = made.collect();
        if made.is_empty() {
            return Err(Refusal::decline(format!(
                "no tile is made of the products that the driver lists, by subgroups of {lanes}"
            )));
        }
        let most = grid::invocations(device);
        let runs = made
            .iter()
            .filter(|tile| tile.threads() <= most && tile.shared_bytes(way) <= device.shared_bytes);
        let runs: Vec<Tile> = runs.copied().collect();
        if runs.is_empty() {
            let least = made.iter().map(|tile| tile.shared_bytes(way)).min();
            return Err(Refusal::decline(format!(
                "its least tile takes {} bytes of shared memory and {} invocations, and the device has {} and {most}",
                least.unwrap_or(0),
                lanes * made[0].subgroups(),
                device.shared_bytes
            )));
        }
        Ok(runs)
    }

    fn of(
        problem: &Problem,
        way: Way,
        size: Size,
        (fragment, sum): ([u32; 3], DType),
        lanes: u32,
    ) -> Option<Tile> {
        let bytes = way.element().size() as u32;
        let [m, n, k] = fragment;
        let item = ITEM / bytes;
        // Two products at least, which take turns with their registers.
        let depth = (STEP / bytes).max(2 * k);
        let operands = [(&problem.a, m), (&problem.b, n)];
        // Fragments begin at whole items.
        let along_k =
            operands.map(|(operand, edge)| operand.is_along_k() || !edge.is_multiple_of(item));
        let tile = Tile {
            block: size.block,
            own: size.own,
            depth,
            fragment,
            sum,
            lanes,
            along_k,
            size,
        };
        let [own_m, own_n] = size.own;
        let divides = |edge: u32| (edge * depth / item).is_multiple_of(tile.threads());
        let fits = own_m.is_multiple_of(m)
            && own_n.is_multiple_of(n)
            && n.is_multiple_of(4)
            && k.is_multiple_of(item)
            && depth.is_multiple_of(2 * k)
            && own_m * own_n <= MOST_SUMS * lanes
            && size.block.into_iter().all(divides);
        fits.then_some(tile)
    }

    /// Subgroups of a workgroup.
    pub(super) fn subgroups(&self) -> u32 {
        self.block[0] / self.own[0] * (self.block[1] / self.own[1])
    }

    pub(super) fn threads(&self) -> u32 {
        self.lanes * self.subgroups()
    }

    /// Shared memory of a workgroup: two steps of both operands, or the sums of a row of fragments of each subgroup.
    pub(super) fn shared_bytes(&self, way: Way) -> u32 {
        let bytes = way.element().size() as u32;
        let operand = |i: usize| {
            let (rows, row) = match self.along_k[i] {
                true => (self.block[i], self.depth),
                false => (self.depth, self.block[i]),
            };
            rows * (row * bytes + ITEM)
        };
        let sums = self.subgroups() * self.fragment[0] * (self.own[1] * 4 + ITEM);
        (2 * (operand(0) + operand(1))).max(sums)
    }

    /// How many of the operands have to be taken apart as they are loaded.
    pub(super) fn slow_sides(&self, problem: &Problem, way: Way) -> usize {
        let sides = [&problem.a, &problem.b].into_iter().zip(self.along_k);
        sides
            .filter(|(operand, along_k)| !is_wide(operand, *along_k, way))
            .count()
    }

    pub(super) fn defines(&self) -> Vec<Define> {
        let sum = glsl::of(self.sum).map_or("float", |glsl| glsl.storage);
        let numbers = [
            ("BM", self.block[0]),
            ("BN", self.block[1]),
            ("BK", self.depth),
            ("WM", self.own[0]),
            ("WN", self.own[1]),
            ("FM", self.fragment[0]),
            ("FN", self.fragment[1]),
            ("FK", self.fragment[2]),
            ("LANES", self.lanes),
        ];
        let numbers = numbers.map(|(name, value)| number(name, value));
        numbers
            .into_iter()
            .chain([glsl::define("SUM", sum)])
            .collect()
    }
}

/// Invocations of a subgroup: what the driver has by itself, which it is asked for where it can be.
fn lanes(device: &DeviceInfo<'_>) -> Result<u32, Refusal> {
    let lanes = device.subgroup_size;
    let asked = device.min_subgroup_size..=device.max_subgroup_size;
    let is_chosen = device.features.has(Features::SUBGROUP_SIZE_CONTROL);
    if !LANES.contains(&lanes) || is_chosen && !asked.contains(&lanes) {
        return Err(Refusal::decline(format!(
            "subgroups have {lanes} invocations"
        )));
    }
    Ok(lanes)
}

/// Extents of the products of subgroups that the driver lists for `way`, and the type of their sums.
fn products(way: Way, device: &DeviceInfo<'_>) -> Vec<([u32; 3], DType)> {
    // Sums of integers wrap, whose bits are the same with a sign and without.
    let sums = match way.sum() {
        DType::F32 => &[DType::F32][..],
        sum => &[sum, DType::S32, DType::U32],
    };
    let element = way.element();
    let listed = device.matrices().filter(|own| {
        [own.a, own.b] == [element; 2]
            && own.c == own.result
            && sums.contains(&own.c)
            && own.scope == MatrixScope::SUBGROUP
            && !own.saturates
    });
    listed.map(|own| (own.extents, own.c)).collect()
}
