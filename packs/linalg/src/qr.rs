//! QR by Householder's reflections, a block of columns after another.

use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    tall,
};
use nx_vulkan_abi::{BufArg, Define, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Words that an invocation keeps of a block of reflections.
const REGISTERS: u32 = 64;
/// Bytes that an invocation keeps of a panel at most: drivers refuse shaders with very large arrays.
const MOST_PRIVATE: u64 = 64 << 10;

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::of(request, 0)?;
    let wide = request.outputs[0].shape.last().copied().unwrap_or(0) as u32;
    let eps = request.floats("eps").first().copied().unwrap_or(1.0e-10);
    let mut emit = Emit::new(op, request)?;
    if wide == shape.columns && tall::is_tall(&emit, shape) {
        let factors = [emit.result(0)?, emit.result(1)?];
        tall::factor(&mut emit, shape, BufArg::input(0), factors, eps as f32)?;
        return emit.finish();
    }
    let a = emit.scratch(shape.elements())?;
    let Shape {
        rows: m,
        columns: n,
        ..
    } = shape;
    transpose(
        &mut emit,
        Vec::new(),
        vec![BufArg::input(0), a],
        shape,
        [n, m * n, m * n, 0],
    )?;
    let q = factor(&mut emit, shape, change(a), wide, eps as f32)?;
    let result = emit.result(0)?;
    let turned = Shape {
        rows: wide,
        columns: m,
        ..shape
    };
    transpose(
        &mut emit,
        Vec::new(),
        vec![q, result],
        turned,
        [m, m * wide, m * wide, 0],
    )?;
    let result = emit.result(1)?;
    let turned = Shape {
        rows: n,
        columns: wide,
        ..shape
    };
    let upper = vec![number("UPPER", 1u32)];
    transpose(
        &mut emit,
        upper,
        vec![read(a), result],
        turned,
        [m, m * n, wide * n, 0],
    )?;
    emit.finish()
}

/// Exchanges rows and columns: elements from a row to the next and from a matrix to the next, from a result to the next, and
/// before the first.
pub(crate) fn transpose(
    emit: &mut Emit<'_>,
    defines: Vec<Define>,
    args: Vec<BufArg>,
    shape: Shape,
    strides: [u32; 4],
) -> Result<(), Refusal> {
    tiles(emit, defines, args, shape, strides, &[])
}

/// The same with words for what is defined.
pub(crate) fn tiles(
    emit: &mut Emit<'_>,
    mut defines: Vec<Define>,
    args: Vec<BufArg>,
    shape: Shape,
    strides: [u32; 4],
    words: &[u32],
) -> Result<(), Refusal> {
    let Shape { rows, columns, .. } = shape;
    let [down, across] = [rows, columns].map(|extent| extent.div_ceil(32));
    let groups = shape.batch * u64::from(down) * u64::from(across);
    let push = [
        &[rows, groups as u32, columns],
        &strides[..],
        &[down, across],
        words,
    ]
    .concat();
    defines.push(number("TILE", grid::threads(emit.device(), 256).max(32)));
    emit.step("transpose.comp", defines, args, &push, groups)
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
    defines: Vec<Define>,
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
    let count = shape.batch * u64::from(shape.rows) * u64::from(wide);
    let q = emit.scratch(count)?;
    let identity = vec![number("IDENTITY", 1u32)];
    let push = [count as u32, wide, shape.rows, 0, 0];
    turned(emit, identity, vec![q], push, [0; 3])?;
    reflect(emit, shape, [a, change(q)], wide, eps, None)?;
    Ok(read(q))
}

/// Factors them, and takes the first `wide` columns of the unit matrix to those of `q`: of all matrices, or those that are `chosen`.
pub(crate) fn reflect(
    emit: &mut Emit<'_>,
    shape: Shape,
    [a, q]: [BufArg; 2],
    wide: u32,
    eps: f32,
    chosen: Option<BufArg>,
) -> Result<(), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = shape;
    let last = m.min(n);
    let tiling = Tiling::of(emit, m);
    if u64::from(tiling.rows * tiling.width) * emit.size() > MOST_PRIVATE {
        return Err(Refusal::decline(format!(
            "columns of {m} elements are more than {} invocations keep",
            tiling.threads
        )));
    }
    let (width, blocks) = (tiling.width, last.div_ceil(tiling.width));
    let ts = emit.scratch(batch * u64::from(blocks * width * width))?;
    let some = chosen.map(|_| number("SOME", 1u32));
    let with = |own: &[Define]| [own, some.as_slice()].concat();
    let of = |args: &[BufArg]| [args, chosen.as_slice()].concat();

    let place = emit.place();
    let push = [m, batch as u32, 0, n, last, eps.to_bits()];
    let panel = with(&tiling.panel());
    emit.step("reflect.comp", panel, of(&[a, ts]), &push, batch)?;
    let (own, columns) = tiling.columns(emit)?;
    let own = with(&own);
    if n > last.min(width) {
        let count = (n - last.min(width)).div_ceil(columns);
        let groups = batch * u64::from(count);
        let push = [m, groups as u32, 0, n, last, count, m * n];
        let args = of(&[read(a), read(ts), a]);
        emit.step("apply.comp", own.clone(), args, &push, groups)?;
    }
    emit.repeat(place, blocks, width as i32);
    let (place, count) = (emit.place(), wide.div_ceil(columns));
    let groups = batch * u64::from(count);
    let start = (blocks - 1) * width;
    let push = [m, groups as u32, start, wide, last, count, m * n];
    let args = of(&[read(a), read(ts), q]);
    let own = [own, vec![number("LAST", 1u32)]].concat();
    emit.step("apply.comp", own, args, &push, groups)?;
    emit.repeat(place, blocks, -(width as i32));
    Ok(())
}

/// How reflections are shared among invocations.
#[derive(Debug, Clone, Copy)]
struct Tiling {
    /// Columns of a block.
    width: u32,
    /// Rows that an invocation keeps of it.
    rows: u32,
    threads: u32,
    /// Invocations that sum up what they have without shared memory.
    subgroup: u32,
    /// 32-bit words of an element.
    words: u32,
}

impl Tiling {
    fn of(emit: &Emit<'_>, m: u32) -> Tiling {
        let device = emit.device();
        let words = (emit.size() / 4) as u32;
        let subgroup = emit.subgroup();
        let most = match (device.kind, subgroup > 1) {
            (DeviceKind::CPU, _) | (_, false) => 64,
            _ if m > 512 => 512,
            _ => 256,
        };
        let threads = grid::threads(
            device,
            most.min(m.next_power_of_two()).max(subgroup).max(16),
        );
        let rows = m.div_ceil(threads);
        let width = emit.columns_in_registers(rows, threads);
        Tiling {
            width,
            rows,
            threads,
            subgroup,
            words,
        }
    }

    fn panel(self) -> Vec<Define> {
        vec![
            number("TILE", self.threads),
            number("ROWS", self.rows),
            number("WIDTH", self.width),
            number("COUNT", self.width),
            number("SUBGROUP", self.subgroup),
        ]
    }

    /// Where the block is applied, and to how many columns at once.
    fn columns(self, emit: &Emit<'_>) -> Result<(Vec<Define>, u32), Refusal> {
        let columns = (REGISTERS / self.width / self.words).clamp(1, 4);
        let columns = 1 << columns.ilog2();
        let count = u64::from(self.width * columns);
        let most = emit.threads(self.threads.min(256));
        // `totals.glsl`, the products and the shares of them.
        let threads = emit.summing(most, |_, groups| (groups + 2) * count)?;
        let defines = vec![
            number("TILE", threads),
            number("WIDTH", self.width),
            number("COLUMNS", columns),
            number("COUNT", self.width * columns),
            number("SUBGROUP", self.subgroup),
        ];
        Ok((defines, columns))
    }
}
