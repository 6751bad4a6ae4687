//! Columns in the order of their lengths, and what completes them.

use super::Columns;
use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    qr,
};
use nx_vulkan_abi::{BufArg, Define, Refusal};
use nx_vulkan_pack_kit::steps::{number, read};

/// Columns of `m` elements in their order.
pub(super) fn arrange(
    emit: &mut Emit<'_>,
    columns: &Columns,
    from: BufArg,
    to: BufArg,
    m: u32,
    defines: Vec<Define>,
) -> Result<(), Refusal> {
    let Shape {
        batch, columns: n, ..
    } = columns.shape;
    let count = batch * u64::from(m) * u64::from(n);
    let groups = count.div_ceil(u64::from(COPIES));
    let precision = emit.request.outputs[0].dtype.register().epsilon() as f32;
    let push = [count as u32, groups as u32, m, n, precision.to_bits()];
    let args = vec![
        from,
        columns.order,
        to,
        columns.lengths,
        columns.state.norms,
    ];
    emit.step("arrange.comp", defines, args, &push, groups)
}

/// All left singular vectors: those of the columns, by a QR of them, which finds the others too.
pub(super) fn complete(
    emit: &mut Emit<'_>,
    columns: &Columns,
    to: BufArg,
    straight: bool,
) -> Result<(), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = columns.shape;
    let sorted = emit.scratch(columns.shape.elements())?;
    arrange(emit, columns, read(columns.a), sorted, m, Vec::new())?;
    let q = qr::factor(emit, columns.shape, change(sorted), m, (0.0, 1))?;
    let mut defines = vec![number("SIGNS", 1u32)];
    if straight {
        defines.push(number("STRAIGHT", 1u32));
    }
    let count = batch * u64::from(m) * u64::from(m);
    let args = vec![to, q, read(sorted)];
    qr::turned(
        emit,
        defines,
        args,
        [count as u32, m, m, m * m, m],
        [m * n, m, n],
    )
}
