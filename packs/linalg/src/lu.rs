//! LU factors with pivots, and what they are good for: systems of equations and determinants.

use crate::{
    Shape,
    emit::{BLOCK, COPIES, Emit, change},
    triangular::{self, System, TILE},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::{number, read};

/// Rows of a matrix that one workgroup factors in shared memory.
const WHOLE: u32 = 64;

/// A batch of factored matrices.
struct Factored {
    shape: Shape,
    /// Both triangles in one matrix.
    a: BufArg,
    /// The row of the matrix that each of their rows was.
    rows: BufArg,
    /// The row that each was swapped with.
    pivots: BufArg,
}

pub(crate) fn factors(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::new(op, request)?;
    let factored = factor(&mut emit, shape)?;
    let [p, l, u] = [emit.result(0)?, emit.result(1)?, emit.result(2)?];
    let groups = shape.elements().div_ceil(u64::from(COPIES));
    let push = [shape.elements() as u32, groups as u32, shape.rows];
    let args = vec![factored.a, factored.rows, p, l, u];
    emit.step("factors.comp", Vec::new(), args, &push, groups)?;
    emit.finish()
}

pub(crate) fn solve(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let Shape { batch, rows: n, .. } = shape;
    let vectors = request.inputs[1].shape.len() < request.inputs[0].shape.len();
    let count = match vectors {
        true => 1,
        false => Shape::of(request, 1)?.columns,
    };
    let mut emit = Emit::new(op, request)?;
    let factored = factor(&mut emit, shape)?;
    let x = emit.result(0)?;
    let cells = batch * u64::from(n) * u64::from(count);
    let groups = cells.div_ceil(u64::from(COPIES));
    let push = [cells as u32, groups as u32, n, count];
    let args = vec![BufArg::input(1), x, factored.rows];
    emit.step("copy.comp", vec![number("ROWS", 1u32)], args, &push, groups)?;
    let lower = System {
        n,
        batch,
        a: [n, 1],
        upper: false,
        unit: true,
        count,
        x: [count, 1],
    };
    let upper = System {
        upper: true,
        unit: false,
        ..lower
    };
    triangular::solve(&mut emit, lower, factored.a, change(x))?;
    triangular::solve(&mut emit, upper, factored.a, change(x))?;
    emit.finish()
}

pub(crate) fn determinant(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::new(op, request)?;
    let groups = shape.batch.div_ceil(64);
    let push = [shape.batch as u32, groups as u32, shape.rows];
    if shape.rows <= 3 {
        let r = emit.result(0)?;
        let args = vec![BufArg::input(0), r];
        emit.step("determinant.comp", Vec::new(), args, &push, groups)?;
        return emit.finish();
    }
    let factored = factor(&mut emit, shape)?;
    let r = emit.result(0)?;
    let args = vec![factored.a, r, factored.pivots];
    let defines = vec![number("FACTORED", 1u32)];
    emit.step("determinant.comp", defines, args, &push, groups)?;
    emit.finish()
}

/// Factors the first operand.
fn factor(emit: &mut Emit<'_>, shape: Shape) -> Result<Factored, Refusal> {
    let Shape { batch, rows: n, .. } = shape;
    let device = emit.device();
    let a = emit.scratch(shape.elements())?;
    let words = batch * u64::from(n) * 4;
    let (rows, pivots) = (emit.bytes(words)?, emit.bytes(words)?);
    let factored = Factored {
        shape,
        a: read(a),
        rows: read(rows),
        pivots: read(pivots),
    };
    let push = [n, batch as u32, 0];
    let size = n.next_power_of_two().clamp(4, WHOLE);
    let threads = emit.threads(size.max(16));
    let bytes = u64::from(size * (size + 1)) * emit.size();
    let reduced = u64::from(threads) * (emit.size() + 4);
    if n <= WHOLE && bytes + reduced <= u64::from(device.shared_bytes) {
        let defines = vec![number("SIZE", size), number("TILE", threads)];
        let args = vec![a, rows, pivots, BufArg::input(0)];
        emit.step("panel.comp", defines, args, &push, batch)?;
        return Ok(factored);
    }
    triangular::copy(emit, BufArg::input(0), a, n, n, batch)?;
    blocks(emit, &factored, change(a), [rows, pivots])?;
    Ok(factored)
}

/// Factors matrices in place, a block of columns after another.
fn blocks(
    emit: &mut Emit<'_>,
    factored: &Factored,
    a: BufArg,
    [rows, pivots]: [BufArg; 2],
) -> Result<(), Refusal> {
    let Shape { batch, rows: n, .. } = factored.shape;
    let place = emit.place();
    let defines = vec![number("TILE", emit.threads(256))];
    let push = [n, batch as u32, 0];
    emit.step("panel.comp", defines, vec![a, rows, pivots], &push, batch)?;
    let tiles = n.div_ceil(COPIES);
    let groups = batch * u64::from(tiles);
    let push = [n, groups as u32, 0, tiles];
    emit.step(
        "swap.comp",
        Vec::new(),
        vec![a, read(pivots)],
        &push,
        groups,
    )?;
    let tiles = (n - BLOCK.min(n)).div_ceil(TILE).max(1);
    let groups = batch * u64::from(tiles);
    let push = [n, groups as u32, 0, n, tiles, n, 1, n * n, n, 1, n * n];
    let defines = ["AFTER", "UNIT"].map(|name| number(name, 1u32)).to_vec();
    let defines = [defines, vec![number("TILE", TILE)]].concat();
    emit.step("substitute.comp", defines, vec![read(a), a], &push, groups)?;
    let groups = batch * u64::from(tiles) * u64::from(tiles);
    let push = [
        n,
        groups as u32,
        0,
        n,
        tiles,
        tiles,
        n,
        1,
        n * n,
        n,
        1,
        n,
        1,
        n * n,
    ];
    let defines = vec![number("AFTER", 1u32)];
    emit.step("update.comp", defines, vec![read(a), a], &push, groups)?;
    emit.repeat(place, n.div_ceil(BLOCK), BLOCK as i32);
    Ok(())
}
