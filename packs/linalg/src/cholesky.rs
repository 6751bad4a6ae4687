//! Cholesky factors.

use crate::{
    Shape,
    emit::{BLOCK, COPIES, Emit, change},
    triangular::TILE,
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request, glsl::define};
use nx_vulkan_pack_kit::steps::{number, read};

/// What stands for a pivot of 0 in a division, as in `Nx.LinAlg.Cholesky`.
const TINY: &str = "1.0e-10";
/// Rows of a matrix that one workgroup factors as a whole.
const WHOLE: u32 = 64;

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let n = shape.rows;
    let mut emit = Emit::new(op, request)?;
    let l = emit.result(0)?;
    let bytes = |rows: u32| u64::from(rows * (rows + 1)) * emit.size();
    let size = if n <= BLOCK {
        n.next_power_of_two()
    } else {
        WHOLE
    };
    if n <= WHOLE && bytes(size) <= u64::from(request.device.shared_bytes) {
        diagonal(&mut emit, shape, size, BufArg::input(0), l)?;
        return emit.finish();
    }
    let groups = shape.elements().div_ceil(u64::from(COPIES));
    let push = [shape.elements() as u32, groups as u32, n, n];
    let lower = vec![number("LOWER", 1u32)];
    emit.step(
        "copy.comp",
        lower.clone(),
        vec![BufArg::input(0), l],
        &push,
        groups,
    )?;

    let (place, blocks) = (emit.place(), n.div_ceil(BLOCK));
    let l = change(l);
    diagonal(&mut emit, shape, BLOCK, read(l), l)?;
    // Rows below the block are the right sides of its triangle.
    let tiles = (n - BLOCK.min(n)).div_ceil(TILE).max(1);
    let groups = shape.batch * u64::from(tiles);
    let push = [n, groups as u32, 0, n, tiles, n, 1, n * n, 1, n, n * n];
    let defines = vec![
        number("AFTER", 1u32),
        number("TILE", TILE),
        define("TINY", TINY),
    ];
    emit.step("substitute.comp", defines, vec![read(l), l], &push, groups)?;
    let groups = shape.batch * u64::from(tiles) * u64::from(tiles);
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
        1,
        n,
        n,
        1,
        n * n,
    ];
    let defines = vec![number("AFTER", 1u32), number("LOWER", 1u32)];
    emit.step("update.comp", defines, vec![read(l), l], &push, groups)?;
    emit.repeat(place, blocks, BLOCK as i32);
    emit.finish()
}

/// Factors blocks of up to `size` rows on the diagonal.
fn diagonal(
    emit: &mut Emit<'_>,
    shape: Shape,
    size: u32,
    from: BufArg,
    to: BufArg,
) -> Result<(), Refusal> {
    let defines = vec![
        number("SIZE", size),
        number("TILE", emit.threads(size.clamp(16, 64))),
        define("TINY", TINY),
    ];
    let push = [shape.rows, shape.batch as u32, 0];
    emit.step("cholesky.comp", defines, vec![from, to], &push, shape.batch)
}
