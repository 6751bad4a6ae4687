//! Columns in the order of their lengths, and what completes them.

use super::Columns;
use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    qr,
};
use nx_vulkan_abi::{BufArg, Refusal};
use nx_vulkan_pack_kit::steps::{number, read};

/// Columns of `m` elements in their order, as columns of rows if `turned`; of length 1 where there is something to fill for a QR
/// that finds those that are too short.
pub(super) fn arrange(
    emit: &mut Emit<'_>,
    columns: &Columns,
    [from, to]: [BufArg; 2],
    m: u32,
    turned: bool,
    fills: Option<[BufArg; 2]>,
) -> Result<(), Refusal> {
    let Shape {
        batch, columns: n, ..
    } = columns.shape;
    let count = batch * u64::from(m) * u64::from(n);
    let groups = count.div_ceil(u64::from(COPIES));
    let push = [count as u32, groups as u32, m, n];
    let mut args = vec![from, columns.order, to, columns.state.norms];
    let mut defines = Vec::new();
    if turned {
        defines.push(number("TURNED", 1u32));
    }
    if let Some([sorted, unit]) = fills {
        args.extend([columns.lengths, columns.lacking, sorted, unit]);
        defines.push(number("SCALED", 1u32));
    }
    emit.step("arrange.comp", defines, args, &push, groups)
}

/// As many left singular vectors as there are columns: these with a length of 1, or what `complete` finds where some have none.
pub(super) fn normalize(
    emit: &mut Emit<'_>,
    columns: &Columns,
    to: BufArg,
    straight: bool,
) -> Result<(), Refusal> {
    let shape = columns.shape;
    let [sorted, q] = [
        emit.scratch(shape.elements())?,
        emit.scratch(shape.elements())?,
    ];
    let ends = [read(columns.a), to];
    arrange(
        emit,
        columns,
        ends,
        shape.rows,
        !straight,
        Some([sorted, q]),
    )?;
    let chosen = Some(columns.lacking);
    let factors = [sorted, q].map(change);
    qr::reflect(emit, shape, factors, shape.columns, 0.0, chosen)?;
    signs(emit, columns, [q, sorted], change(to), straight, chosen)
}

/// All left singular vectors: those of the columns, by a QR of them, which finds the others too.
pub(super) fn complete(
    emit: &mut Emit<'_>,
    columns: &Columns,
    to: BufArg,
    straight: bool,
) -> Result<(), Refusal> {
    let shape = columns.shape;
    let sorted = emit.scratch(shape.elements())?;
    let ends = [read(columns.a), sorted];
    arrange(emit, columns, ends, shape.rows, false, None)?;
    let q = qr::factor(emit, shape, change(sorted), shape.rows, 0.0)?;
    signs(emit, columns, [q, sorted], to, straight, None)
}

/// Columns in the directions of those that have been factored: of all matrices, or those that are `chosen`.
fn signs(
    emit: &mut Emit<'_>,
    columns: &Columns,
    [q, factored]: [BufArg; 2],
    to: BufArg,
    straight: bool,
    chosen: Option<BufArg>,
) -> Result<(), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = columns.shape;
    let wide = if chosen.is_some() { n } else { m };
    let mut defines = vec![number("SIGNS", 1u32)];
    if straight {
        defines.push(number("STRAIGHT", 1u32));
    }
    let mut args = vec![to, read(q), read(factored)];
    if let Some(chosen) = chosen {
        args.push(chosen);
        defines.push(number("SOME", 1u32));
    }
    let count = (batch * u64::from(m) * u64::from(wide)) as u32;
    let [rows, across] = if straight { [wide, m] } else { [m, wide] };
    let push = [count, rows, across, m * wide, m];
    qr::turned(emit, defines, args, push, [m * n, m, n])
}
