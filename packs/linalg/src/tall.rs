//! QR of matrices that have many more rows than columns: of blocks of rows side by side, and then of their triangles, one below
//! the other (Demmel, Grigori, Hoemmen and Langou 2012).

use crate::{
    Shape,
    emit::{Emit, change},
    qr::{self, transpose},
    tridiagonal::Product,
};
use nx_vulkan_abi::{BufArg, Refusal};
use nx_vulkan_pack_kit::steps::{number, read};

/// Rows of a block at least, and how many times its columns they are.
const ROWS: u32 = 512;
const TIMES: u32 = 8;
/// Blocks that are worth the steps.
const BLOCKS: u32 = 4;

fn block_of(shape: Shape) -> u32 {
    shape.columns.saturating_mul(TIMES).max(ROWS)
}

/// Whether a matrix is factored in blocks of rows.
pub(crate) fn is_tall(emit: &Emit<'_>, shape: Shape) -> bool {
    // Of complex numbers the turn of each diagonal would depend on the number of levels.
    !emit.wide().is_complex() && shape.rows >= block_of(shape).saturating_mul(BLOCKS)
}

/// Factors matrices of at least as many rows as columns. They and both factors are lists of rows.
pub(crate) fn factor(
    emit: &mut Emit<'_>,
    shape: Shape,
    from: BufArg,
    [q, r]: [BufArg; 2],
    eps: f32,
) -> Result<(), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = shape;
    if !is_tall(emit, shape) {
        let a = emit.scratch(shape.elements())?;
        transpose(emit, Vec::new(), vec![from, a], shape, [n, m * n, m * n, 0])?;
        let own = qr::factor(emit, shape, change(a), n, eps)?;
        let turned = Shape {
            rows: n,
            columns: m,
            ..shape
        };
        transpose(emit, Vec::new(), vec![own, q], turned, [m, m * n, m * n, 0])?;
        return triangles(emit, shape, read(a), r);
    }
    let parts = m.div_ceil(block_of(shape));
    let rows = m.div_ceil(parts);
    let blocks = Shape {
        batch: batch * u64::from(parts),
        rows,
        columns: n,
    };
    let a = emit.scratch(blocks.elements())?;
    let strides = [n, m * n, rows * n, 0];
    let is_part = vec![number("PARTS", parts)];
    qr::tiles(emit, is_part, vec![from, a], blocks, strides, &[m])?;
    let own = qr::factor(emit, blocks, change(a), n, eps)?;
    let stacked = Shape {
        rows: parts * n,
        ..shape
    };
    let first = emit.scratch(stacked.elements())?;
    triangles(emit, blocks, read(a), first)?;
    let second = emit.scratch(stacked.elements())?;
    factor(emit, stacked, read(first), [second, r], eps)?;
    Product {
        batch,
        parts,
        size: [rows, n, n],
        a: [1, rows, parts * rows * n, rows * n],
        b: [n, 1, parts * n * n, n * n],
        x: [n, m * n, rows * n],
        end: Some(m),
    }
    .step(emit, [own, second, q])
}

/// The upper triangles of factored matrices whose columns lie in one piece each.
fn triangles(emit: &mut Emit<'_>, shape: Shape, a: BufArg, to: BufArg) -> Result<(), Refusal> {
    let (m, n) = (shape.rows, shape.columns);
    let turned = Shape {
        rows: n,
        columns: n,
        ..shape
    };
    let upper = vec![number("UPPER", 1u32)];
    transpose(emit, upper, vec![a, to], turned, [m, m * n, n * n, 0])
}
