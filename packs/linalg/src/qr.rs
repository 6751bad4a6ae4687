//! QR by Householder's reflections, a block of columns after another.

use crate::{
    Shape,
    emit::{BLOCK, COPIES, Emit, change},
};
use nx_vulkan_abi::{BufArg, Plan, Refusal, Request, glsl::define};
use nx_vulkan_pack_kit::steps::{number, read};

/// Invocations that one column has when reflections are applied to it.
const ALONG: u32 = 64;

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::of(request, 0)?;
    let wide = request.outputs[0].shape.last().copied().unwrap_or(0) as u32;
    let eps = request.floats("eps").first().copied().unwrap_or(1.0e-10);
    let mut emit = Emit::in_sums(op, request)?;
    let a = emit.scratch(shape.elements())?;
    turn(&mut emit, BufArg::input(0), a, shape, shape.columns)?;
    let q = factor(&mut emit, shape, change(a), wide, eps as f32)?;
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = shape;
    let result = emit.result(0)?;
    let square = Shape {
        columns: m,
        rows: wide,
        ..shape
    };
    turn(&mut emit, q, result, square, m)?;
    let result = emit.result(1)?;
    let upper = vec![number("UPPER", 1u32)];
    let count = batch * u64::from(wide) * u64::from(n);
    let push = [count as u32, wide, n, m * n, m];
    turned(&mut emit, upper, vec![result, read(a)], push, [0; 3])?;
    emit.finish()
}

/// Turns matrices of rows that are `stride` apart.
pub(crate) fn turn(
    emit: &mut Emit<'_>,
    from: BufArg,
    to: BufArg,
    shape: Shape,
    stride: u32,
) -> Result<(), Refusal> {
    let Shape { rows, columns, .. } = shape;
    let push = [
        shape.elements() as u32,
        columns,
        rows,
        rows * stride,
        stride,
    ];
    turned(emit, Vec::new(), vec![to, from], push, [0; 3])
}

/// Turns matrices: elements, rows and columns of the results, elements from one operand to the next and from one of its rows to
/// the next; the same of a matrix of signs, and how many columns have them.
pub(crate) fn turned(
    emit: &mut Emit<'_>,
    defines: Vec<nx_vulkan_abi::Define>,
    args: Vec<BufArg>,
    [count, rows, columns, batch, stride]: [u32; 5],
    signs: [u32; 3],
) -> Result<(), Refusal> {
    let groups = u64::from(count.div_ceil(COPIES));
    let mut push = vec![count, groups as u32, rows, columns, batch, stride];
    push.extend(signs);
    emit.step("turn.comp", defines, args, &push, groups)
}

/// Factors matrices whose columns lie in one piece each, and gives the first `wide` columns of their `q`, in one piece each.
pub(crate) fn factor(
    emit: &mut Emit<'_>,
    shape: Shape,
    a: BufArg,
    wide: u32,
    eps: f32,
) -> Result<BufArg, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = shape;
    let last = m.min(n);
    let taus = emit.scratch(batch * u64::from(last))?;
    let q = emit.scratch(batch * u64::from(m) * u64::from(wide))?;
    let count = (batch * u64::from(m) * u64::from(wide)) as u32;
    let identity = vec![number("IDENTITY", 1u32)];
    turned(emit, identity, vec![q], [count, wide, m, 0, 0], [0; 3])?;

    let (place, blocks) = (emit.place(), last.div_ceil(BLOCK));
    let threads = vec![number("TILE", emit.threads(256))];
    let push = [m, batch as u32, 0, n, last, eps.to_bits()];
    emit.step("reflect.comp", threads, vec![a, taus], &push, batch)?;
    let along = number("TILE", emit.threads(ALONG));
    if n > last.min(BLOCK) {
        let count = n - last.min(BLOCK);
        let groups = batch * u64::from(count);
        let push = [m, groups as u32, 0, n, last, count, m * n];
        let args = vec![read(a), read(taus), a];
        emit.step("apply.comp", vec![along.clone()], args, &push, groups)?;
    }
    emit.repeat(place, blocks, BLOCK as i32);
    let place = emit.place();
    let groups = batch * u64::from(wide);
    let push = [
        m,
        groups as u32,
        (blocks - 1) * BLOCK,
        wide,
        last,
        wide,
        m * n,
    ];
    let args = vec![read(a), read(taus), change(q)];
    emit.step(
        "apply.comp",
        vec![along, define("LAST", "1")],
        args,
        &push,
        groups,
    )?;
    emit.repeat(place, blocks, -(BLOCK as i32));
    Ok(read(q))
}
