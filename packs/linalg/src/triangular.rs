//! Triangular systems, a block of unknowns after another.

use crate::{
    Shape,
    emit::{BLOCK, COPIES, Emit, change},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::{number, read};

/// Right sides of a workgroup.
pub(crate) const TILE: u32 = 32;

/// Which triangle it is, and where its right sides are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    pub(crate) n: u32,
    pub(crate) batch: u64,
    /// Elements from a row of the triangle to the next, and from a column to the next.
    pub(crate) a: [u32; 2],
    pub(crate) upper: bool,
    /// Whether its diagonal is ones.
    pub(crate) unit: bool,
    /// Number of right sides.
    pub(crate) count: u32,
    /// Elements from an unknown to the next, and from a right side to the next.
    pub(crate) x: [u32; 2],
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
        true => (columns, [columns, 1]),
        false if vectors => (1, [1, n]),
        false => (rows, [1, columns]),
    };
    let system = System {
        n,
        batch,
        a: if turned { [1, n] } else { [n, 1] },
        upper: !lower,
        unit: false,
        count,
        x,
    };
    let mut emit = Emit::new(op, request)?;
    let result = emit.result(0)?;
    copy(&mut emit, BufArg::input(1), result, rows, columns, batch)?;
    solve(&mut emit, system, BufArg::input(0), change(result))?;
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

/// Replaces the right sides `x` by what solves them.
pub(crate) fn solve(
    emit: &mut Emit<'_>,
    system: System,
    a: BufArg,
    x: BufArg,
) -> Result<(), Refusal> {
    let System {
        n,
        batch,
        a: [a_row, a_column],
        upper,
        unit,
        count,
        x: [x_row, x_column],
    } = system;
    let (place, blocks) = (emit.place(), n.div_ceil(BLOCK));
    let start = if upper { (blocks - 1) * BLOCK } else { 0 };
    let tiles = count.div_ceil(TILE);
    let mut defines = Vec::new();
    if upper {
        defines.push(number("UPPER", 1u32));
    }
    let mut own = defines.clone();
    own.push(number("TILE", TILE));
    if unit {
        own.push(number("UNIT", 1u32));
    }
    let (square, sides) = (n * n, n * count);
    let groups = batch * u64::from(tiles);
    let push = [
        n,
        groups as u32,
        start,
        count,
        tiles,
        a_row,
        a_column,
        square,
        x_row,
        x_column,
        sides,
    ];
    emit.step("substitute.comp", own, vec![read(a), x], &push, groups)?;
    if blocks > 1 {
        let (down, across) = (blocks - 1, count.div_ceil(BLOCK));
        let groups = batch * u64::from(down) * u64::from(across);
        let push = [
            n,
            groups as u32,
            start,
            count,
            down,
            across,
            a_row,
            a_column,
            square,
            x_row,
            x_column,
            x_row,
            x_column,
            sides,
        ];
        emit.step("update.comp", defines, vec![read(a), x], &push, groups)?;
        let by = BLOCK as i32;
        emit.repeat(place, blocks, if upper { -by } else { by });
    }
    Ok(())
}
