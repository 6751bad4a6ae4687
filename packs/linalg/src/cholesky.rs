//! Cholesky factors.

use crate::{
    Shape,
    emit::{Emit, change},
    triangular::{Strides, System, substitute, update},
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
    let size = if n <= WHOLE / 2 {
        n.next_power_of_two()
    } else {
        WHOLE
    };
    if n <= WHOLE && bytes(size) <= u64::from(request.device.shared_bytes) {
        diagonal(&mut emit, shape, size, BufArg::input(0), l)?;
        return emit.finish();
    }
    let side = emit.side();
    let (blocks, batch, first) = (n.div_ceil(side), shape.batch, 0u32.wrapping_sub(side));
    let rows = Strides(n, 1, n * n);
    let turned = Strides(1, n, n * n);
    let strides = [rows, turned, rows];
    let factor = ["LOWER", "AFTER", "FACTOR"].map(|name| number(name, 1u32));
    let factor = [&factor[..], &[define("TINY", TINY)]].concat();
    let begin = [&factor[..], &[number("FROM", 1u32)]].concat();
    let a = BufArg::input(0);
    let args = vec![a, a, l, a];
    update(
        &mut emit,
        [n, first, n],
        batch,
        [blocks; 2],
        strides,
        begin,
        args,
    )?;

    if blocks == 1 {
        return emit.finish();
    }
    // Rows below a block are the right sides of its triangle.
    let (place, l) = (emit.place(), change(l));
    let system = System {
        n,
        batch,
        a: rows,
        upper: false,
        count: n,
        x: turned,
    };
    let ways = ["AFTER", "CONJUGATED"].map(|name| number(name, 1u32));
    let defines = [&ways[..], &[define("TINY", TINY)]].concat();
    let part = emit.wide();
    substitute(
        &mut emit,
        system,
        part,
        [0, side, n],
        defines,
        vec![read(l), l],
    )?;
    let args = vec![read(l), read(l), l];
    update(
        &mut emit,
        [n, 0, n],
        batch,
        [blocks - 1; 2],
        strides,
        factor,
        args,
    )?;
    emit.repeat(place, blocks - 1, side as i32);
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
