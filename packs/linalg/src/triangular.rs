//! Triangular systems, a block of unknowns after another.

use crate::{
    Shape,
    emit::{COPIES, Emit, change, named},
};
use nx_vulkan_abi::{BufArg, DType, Define, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Unknowns that an invocation keeps in registers.
const SMALL: u64 = 16;
/// And of those that take long to compile.
const FEW: u64 = 8;
/// Right sides that a workgroup has.
const TILES: [u32; 4] = [8, 16, 32, 64];

/// Where the elements of a batch of matrices lie: from a row to the next, from a column, from a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strides(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl Strides {
    fn words(self) -> [u32; 3] {
        [self.0, self.1, self.2]
    }
}

/// Which triangle it is, and where its right sides are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    pub(crate) n: u32,
    pub(crate) batch: u64,
    pub(crate) a: Strides,
    pub(crate) upper: bool,
    /// Number of right sides.
    pub(crate) count: u32,
    /// Unknowns are rows.
    pub(crate) x: Strides,
}

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let Shape { batch, rows: n, .. } = Shape::square(op, request)?;
    let left = request.ints("left_side") != [0];
    let turned = (request.text("transform_a") == Some("transpose")) == left;
    let lower = (request.ints("lower") != [0]) != turned;
    let vectors = request.inputs[1].shape.len() < request.inputs[0].shape.len();
    let Shape { rows, columns, .. } = match vectors {
        true => Shape {
            batch,
            rows: n,
            columns: 1,
        },
        false => Shape::of(request, 1)?,
    };
    let (count, x) = match left {
        true => (columns, Strides(columns, 1, n * columns)),
        false if vectors => (1, Strides(1, n, n)),
        false => (rows, Strides(1, columns, n * rows)),
    };
    let system = System {
        n,
        batch,
        a: match turned {
            true => Strides(1, n, n * n),
            false => Strides(n, 1, n * n),
        },
        upper: !lower,
        count,
        x,
    };
    let mut emit = Emit::new(op, request)?;
    emit.for_rows(n);
    let result = emit.result(0)?;
    copy(&mut emit, BufArg::input(1), result, rows, columns, batch)?;
    let conjugated = request.text("transform_a") == Some("conjugate");
    solve(
        &mut emit,
        system,
        conjugated,
        BufArg::input(0),
        change(result),
    )?;
    emit.finish()
}

/// Copies a batch of matrices.
pub(crate) fn copy(
    emit: &mut Emit<'_>,
    from: BufArg,
    to: BufArg,
    rows: u32,
    columns: u32,
    batch: u64,
) -> Result<(), Refusal> {
    let count = batch * u64::from(rows) * u64::from(columns);
    let groups = count.div_ceil(u64::from(COPIES));
    let push = [count as u32, groups as u32, rows, columns];
    emit.step("copy.comp", Vec::new(), vec![from, to], &push, groups)
}

/// Replaces the right sides `x` by what solves them, with conjugates of the triangle's elements where `conjugated`.
pub(crate) fn solve(
    emit: &mut Emit<'_>,
    system: System,
    conjugated: bool,
    a: BufArg,
    x: BufArg,
) -> Result<(), Refusal> {
    let System {
        n,
        batch,
        upper,
        count,
        ..
    } = system;
    let side = emit.side();
    let (place, blocks) = (emit.place(), n.div_ceil(side));
    let start = if upper { (blocks - 1) * side } else { 0 };
    let ways = [("UPPER", upper), ("CONJUGATED", conjugated)];
    let ways = ways.into_iter().filter(|(_, is_on)| *is_on);
    let defines: Vec<Define> = ways.map(|(name, _)| number(name, 1u32)).collect();
    let sides = [start, 0, count];
    substitute(
        emit,
        system,
        emit.sums(),
        sides,
        defines.clone(),
        vec![read(a), x],
    )?;
    if blocks > 1 {
        let tiles = [blocks - 1, count.div_ceil(side)];
        let strides = [system.a, system.x, system.x];
        update(
            emit,
            [n, start, count],
            batch,
            tiles,
            strides,
            defines,
            vec![read(a), read(x), x],
        )?;
        let by = side as i32;
        emit.repeat(place, blocks, if upper { -by } else { by });
    }
    Ok(())
}

/// Solves with the block on the diagonal from `start` on, for `count - first` right sides, in the type `part`.
pub(crate) fn substitute(
    emit: &mut Emit<'_>,
    system: System,
    part: DType,
    [start, first, count]: [u32; 3],
    mut defines: Vec<Define>,
    args: Vec<BufArg>,
) -> Result<(), Refusal> {
    let side = u64::from(emit.side());
    let small = match emit.is_long() {
        true => FEW,
        false => SMALL.min(side),
    };
    let triangle = side / small * (side / small + 1) / 2 * small * small;
    // The triangle, the inverses and the right sides, with places of rows.
    let bytes = |tile: u64| (triangle + side + side * (tile + 1)) * part.size() + 4 * side;
    let wanted = (count - first.min(count)).clamp(TILES[0], TILES[3]);
    let tile = emit.fitting(&TILES, bytes)?.min(wanted.next_power_of_two());
    defines.extend(named("PART", part));
    let tiles = (count - first.min(count)).div_ceil(tile).max(1);
    let groups = system.batch * u64::from(tiles);
    // With few right sides most of many workgroups' invocations would only keep registers from each other.
    let is_crowded = tile <= 16 && groups > u64::from(emit.device().compute_units);
    let most = match emit.device().kind {
        DeviceKind::CPU => 64,
        _ if is_crowded => 128,
        _ => 256,
    };
    // Each moves at least one element of the block and of the right sides.
    let side = side as u32;
    let threads = grid::threads(emit.device(), most.min(side * tile.min(side)));
    defines.extend([
        number("SMALL", small as u32),
        number("TILE", tile.min(threads)),
        number("THREADS", threads),
    ]);
    let push = [
        &[system.n, groups as u32, start, count, tiles],
        &system.a.words()[..],
        &system.x.words(),
    ]
    .concat();
    emit.step("substitute.comp", defines, args, &push, groups)
}

/// Takes a product from what is behind a block: tiles are those downwards and across, strides those of both factors and of
/// what they are taken from.
pub(crate) fn update(
    emit: &mut Emit<'_>,
    [n, start, count]: [u32; 3],
    batch: u64,
    [down, across]: [u32; 2],
    strides: [Strides; 3],
    mut defines: Vec<Define>,
    args: Vec<BufArg>,
) -> Result<(), Refusal> {
    // Both operands of so many steps, with a column of a factor twice.
    let side = emit.side();
    let depth = emit.fitting(&[64, 32, 16, 8, 4], |depth| {
        let fours = 2 * depth * (u64::from(side) / 4 + 1) + u64::from(side) / 2;
        4 * fours * emit.size()
    })?;
    let most = match emit.device().kind {
        DeviceKind::CPU => 64,
        _ => 256,
    };
    let lanes = if grid::threads(emit.device(), most) < 256 || side < 64 {
        8
    } else {
        16
    };
    defines.extend([
        number("LANES", lanes),
        number("PACKS", side / 4 / lanes),
        number("DEPTH", depth.min(side)),
    ]);
    let groups = batch * u64::from(down) * u64::from(across);
    let mut push = vec![n, groups as u32, start, count, down, across];
    push.extend(strides.iter().flat_map(|strides| strides.words()));
    emit.step("update.comp", defines, args, &push, groups)
}
