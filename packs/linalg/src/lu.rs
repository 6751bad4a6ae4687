//! LU factors with pivots, and what they are good for: systems of equations and determinants.

use crate::{
    Shape,
    emit::{COPIES, Emit, SUBGROUP, change},
    qr::transpose,
    triangular::{self, Strides, System, substitute, update},
};
use nx_vulkan_abi::{BufArg, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Rows of a matrix that one workgroup factors in shared memory.
const WHOLE: u32 = 64;

pub(crate) fn factors(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::new(op, request)?;
    let groups = shape.elements().div_ceil(u64::from(COPIES));
    let push = [shape.elements() as u32, groups as u32, shape.rows];
    let [p, l, u] = [emit.result(0)?, emit.result(1)?, emit.result(2)?];
    if let Some(whole) = whole(&mut emit, shape)? {
        let args = vec![whole.rows, p, u, l, whole.a];
        emit.step("factors.comp", Vec::new(), args, &push, groups)?;
        return emit.finish();
    }
    let n = shape.rows;
    let blocks = blocks(&mut emit, shape, None, u)?;
    let upper = vec![number("UPPER_ONLY", 1u32)];
    emit.step(
        "factors.comp",
        upper,
        vec![blocks.rows, p, u],
        &push,
        groups,
    )?;
    let lower = vec![number("FACTOR", 1u32)];
    let args = vec![blocks.a, l, blocks.rows];
    transpose(&mut emit, lower, args, shape, [n, n * n, n * n, 0])?;
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
    emit.for_rows(n);
    let x = emit.result(0)?;
    let system = System {
        n,
        batch,
        a: Strides(n, 1, n * n),
        upper: true,
        count,
        x: Strides(count, 1, n * count),
    };
    let cells = batch * u64::from(n) * u64::from(count);
    let groups = cells.div_ceil(u64::from(COPIES));
    let push = [cells as u32, groups as u32, n, count];
    // One step substitutes into a lower triangle of one block, which of complex numbers is less than what a workgroup factors.
    let whole = match n <= emit.side() {
        true => whole(&mut emit, shape)?,
        false => None,
    };
    if let Some(whole) = whole {
        let args = vec![BufArg::input(1), x, whole.rows];
        emit.step("copy.comp", vec![number("ROWS", 1u32)], args, &push, groups)?;
        let lower = System {
            upper: false,
            ..system
        };
        let unit = vec![number("UNIT", 1u32)];
        let (part, args) = (emit.sums(), vec![whole.a, change(x)]);
        substitute(&mut emit, lower, part, [0, 0, count], unit, args)?;
        triangular::solve(&mut emit, system, false, whole.a, change(x))?;
        return emit.finish();
    }
    // The right sides are further columns, of which the upper factor's are the solution of the lower triangle.
    let wide = n + count;
    let u = emit.scratch(batch * u64::from(n) * u64::from(wide))?;
    let right = Right {
        sides: BufArg::input(1),
        count,
    };
    blocks(&mut emit, shape, Some(right), u)?;
    let args = vec![read(u), x];
    let push = [cells as u32, groups as u32, n, count, wide, n];
    emit.step(
        "copy.comp",
        vec![number("PART_OF", 1u32)],
        args,
        &push,
        groups,
    )?;
    let system = System {
        a: Strides(wide, 1, n * wide),
        ..system
    };
    triangular::solve(&mut emit, system, false, read(u), change(x))?;
    emit.finish()
}

pub(crate) fn determinant(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::new(op, request)?;
    let groups = shape.batch.div_ceil(64);
    let push = [shape.batch as u32, groups as u32, shape.rows];
    let r = emit.result(0)?;
    if shape.rows <= 3 {
        let args = vec![BufArg::input(0), r];
        emit.step("determinant.comp", Vec::new(), args, &push, groups)?;
        return emit.finish();
    }
    let (u, pivots) = match whole(&mut emit, shape)? {
        Some(whole) => (whole.a, whole.pivots),
        None => {
            let u = emit.scratch(shape.elements())?;
            (read(u), blocks(&mut emit, shape, None, u)?.pivots)
        }
    };
    let defines = vec![number("FACTORED", 1u32)];
    emit.step(
        "determinant.comp",
        defines,
        vec![u, r, pivots],
        &push,
        groups,
    )?;
    emit.finish()
}

/// A batch of factored matrices.
struct Factored {
    /// Both triangles in one matrix.
    a: BufArg,
    /// The row of the matrix that each of their rows was.
    rows: BufArg,
    /// The row that each was swapped with.
    pivots: BufArg,
}

/// Factors matrices that are one workgroup's.
fn whole(emit: &mut Emit<'_>, shape: Shape) -> Result<Option<Factored>, Refusal> {
    let Shape { batch, rows: n, .. } = shape;
    let size = n.next_power_of_two().clamp(4, WHOLE);
    let threads = emit.threads(size.max(16));
    let bytes = u64::from(size * (size + 1)) * emit.size();
    let reduced = u64::from(threads) * (emit.size() + 4);
    if n > WHOLE || bytes + reduced > u64::from(emit.device().shared_bytes) {
        return Ok(None);
    }
    let a = emit.scratch(shape.elements())?;
    let words = batch * u64::from(n) * 4;
    let (rows, pivots) = (emit.bytes(words)?, emit.bytes(words)?);
    let defines = vec![number("SIZE", size), number("TILE", threads)];
    let args = vec![a, rows, pivots, BufArg::input(0)];
    emit.step("panel.comp", defines, args, &[n, batch as u32, 0], batch)?;
    Ok(Some(Factored {
        a: read(a),
        rows: read(rows),
        pivots: read(pivots),
    }))
}

/// Right sides of a system.
struct Right {
    sides: BufArg,
    count: u32,
}

/// Factors matrices a block of columns after another. The rows of the upper factor, with what the right sides become, go to
/// `u`; those of the lower one stay where they are in `a`, whose columns lie in one piece each.
fn blocks(
    emit: &mut Emit<'_>,
    shape: Shape,
    right: Option<Right>,
    u: BufArg,
) -> Result<Factored, Refusal> {
    let Shape { batch, rows: n, .. } = shape;
    let count = right.as_ref().map_or(0, |right| right.count);
    let wide = n + count;
    let a = emit.scratch(batch * u64::from(n) * u64::from(wide))?;
    let words = batch * u64::from(n) * 4;
    let [places, order, pivots] = [emit.bytes(words)?, emit.bytes(words)?, emit.bytes(words)?];
    let order_of_rows = vec![number("PLACES", 1u32)];
    let args = vec![BufArg::input(0), a, places];
    transpose(emit, order_of_rows, args, shape, [n, n * n, n * wide, 0])?;
    if let Some(right) = right {
        let shape = Shape {
            columns: count,
            ..shape
        };
        let strides = [count, n * count, n * wide, n * n];
        transpose(emit, Vec::new(), vec![right.sides, a], shape, strides)?;
    }
    let (place, a) = (emit.place(), change(a));
    panel(emit, shape, wide, [a, u, change(places), order, pivots])?;
    let columns = Strides(1, n, n * wide);
    let rows = Strides(wide, 1, n * wide);
    let system = System {
        n,
        batch,
        a: columns,
        upper: false,
        count: wide,
        x: rows,
    };
    let defines = ["UNIT", "AFTER", "ORDER"].map(|name| number(name, 1u32));
    let (part, args) = (emit.wide(), vec![read(a), u, read(order)]);
    let side = emit.side();
    let first = side.min(n);
    substitute(emit, system, part, [0, first, wide], defines.to_vec(), args)?;
    let tiles = [n, wide - first].map(|extent| extent.div_ceil(side).max(1));
    let defines = ["ALL", "AFTER"].map(|name| number(name, 1u32)).to_vec();
    let args = vec![read(a), read(u), a];
    update(
        emit,
        [n, 0, wide],
        batch,
        tiles,
        [columns, rows, columns],
        defines,
        args,
    )?;
    emit.repeat(place, n.div_ceil(side), side as i32);
    Ok(Factored {
        a: read(a),
        rows: read(order),
        pivots: read(pivots),
    })
}

/// Invocations that look for a pivot at least.
const LEAST_THREADS: u32 = 64;

/// Factors the block of columns that begins at the diagonal.
fn panel(emit: &mut Emit<'_>, shape: Shape, wide: u32, args: [BufArg; 5]) -> Result<(), Refusal> {
    let Shape { batch, rows: n, .. } = shape;
    let device = emit.device();
    let compares = grid::has_full_subgroups(device, LEAST_THREADS.into());
    let most = match (device.kind, compares) {
        (DeviceKind::CPU, _) | (_, false) => LEAST_THREADS,
        _ if n > 1024 => 512,
        _ => 256,
    };
    let threads = grid::threads(device, most.min(n.next_power_of_two()).max(LEAST_THREADS));
    let rows = n.div_ceil(threads);
    let width = emit.columns_in_registers(rows, threads);
    let mut defines = vec![
        number("TILE", threads),
        number("ROWS", rows),
        number("WIDTH", width),
    ];
    defines.extend(match compares {
        true => vec![
            number("MOST_SUBGROUPS", threads / device.subgroup_size),
            number(SUBGROUP, device.subgroup_size),
        ],
        false => vec![number("SOLO", 1u32)],
    });
    emit.step(
        "pivot.comp",
        defines,
        args.to_vec(),
        &[n, batch as u32, 0, wide],
        batch,
    )
}
