//! Singular values and vectors, by rotations of columns.

use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    jacobi::{self, SWEEPS, State, TILE},
    qr,
};
use nx_vulkan_abi::{BufArg, DType, Define, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::{number, read};

/// Columns of a matrix that one workgroup rotates; on a CPU dispatches cost more than what others could do meanwhile.
const WHOLE: u32 = 64;
const WHOLE_ON_CPU: u32 = 160;
/// Invocations that share a pair of columns of such a matrix.
const LANES: u32 = 8;

/// Orthogonal columns, in one piece each.
struct Columns {
    /// Their number and the elements of each.
    shape: Shape,
    a: BufArg,
    state: State,
    order: BufArg,
    /// Their lengths in that order.
    lengths: BufArg,
}

/// A matrix of more columns than rows is turned, and so are its results.
pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let own = Shape::of(request, 0)?;
    let full = request.ints("full_matrices?") != [0];
    let mut emit = Emit::in_sums(op, request)?;
    let a = emit.scratch(own.elements())?;
    let wide = own.rows < own.columns;
    let shape = if wide {
        crate::triangular::copy(
            &mut emit,
            BufArg::input(0),
            a,
            own.rows,
            own.columns,
            own.batch,
        )?;
        Shape {
            rows: own.columns,
            columns: own.rows,
            ..own
        }
    } else {
        qr::turn(&mut emit, BufArg::input(0), a, own, own.columns)?;
        own
    };
    let columns = orthogonal(&mut emit, shape, change(a))?;
    let (left, right) = if wide { (2, 0) } else { (0, 2) };
    let [left, right] = [emit.result(left)?, emit.result(right)?];
    let n = shape.columns;
    let turned = |turned: bool, defines: &[Define]| {
        let turned = turned.then(|| number("TURNED", 1u32));
        turned.into_iter().chain(defines.iter().cloned()).collect()
    };
    arrange(
        &mut emit,
        &columns,
        read(columns.state.v),
        right,
        n,
        turned(wide, &[]),
    )?;
    if full {
        complete(&mut emit, &columns, left, wide)?;
    } else {
        let scaled = turned(!wide, &[number("SCALED", 1u32)]);
        arrange(
            &mut emit,
            &columns,
            read(columns.a),
            left,
            shape.rows,
            scaled,
        )?;
    }
    emit.finish()
}

/// Rotates the columns `a` until they are orthogonal, and sorts their lengths.
fn orthogonal(emit: &mut Emit<'_>, shape: Shape, a: BufArg) -> Result<Columns, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = shape;
    let state = jacobi::begin(emit, shape, a, None)?;
    let args = vec![a, state.v, state.norms, state.states];
    let least = jacobi::negligible(emit);
    let whole = match emit.device().kind {
        DeviceKind::CPU => WHOLE_ON_CPU,
        _ => WHOLE,
    };
    if n <= whole {
        let tile = emit.threads((n.next_power_of_two() * LANES / 2).clamp(32, 256));
        let defines = vec![
            number("TILE", tile),
            number("LANES", LANES),
            number("SWEEPS", SWEEPS),
        ];
        let push = [m, batch as u32, 0, n, least];
        emit.step("columns.comp", defines, args, &push, batch)?;
    } else {
        let half = n.div_ceil(2);
        let groups = batch * u64::from(half);
        let push = [m, groups as u32, 0, n, least];
        let defines = ["TILE", "LANES"]
            .map(|name| number(name, emit.threads(COPIES)))
            .to_vec();
        let rounds = 2 * half - 1;
        jacobi::sweeps(emit, batch, state.states, rounds, |emit, _| {
            let place = emit.place();
            emit.step("columns.comp", defines.clone(), args.clone(), &push, groups)?;
            emit.repeat(place, rounds, 1);
            Ok(())
        })?;
    }
    let each = batch * u64::from(n);
    let (lengths, order) = (emit.scratch(each)?, emit.bytes(each * 4)?);
    let s = emit.scratch(each)?;
    let args = vec![read(a), state.norms, lengths, order, s];
    let defines = vec![number("TILE", TILE), jacobi::key(emit)];
    let push = [m, batch as u32, n];
    emit.step("lengths.comp", defines, args, &push, batch)?;
    let result = emit.result(1)?;
    crate::triangular::copy(emit, read(s), result, 1, n, batch)?;
    Ok(Columns {
        shape,
        a,
        state,
        order: read(order),
        lengths: read(s),
    })
}

/// Columns of `m` elements in their order.
fn arrange(
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
    let precision = match emit.request.outputs[0].dtype {
        DType::F64 => f64::EPSILON as f32,
        _ => f32::EPSILON,
    };
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
fn complete(
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
    let q = qr::factor(emit, columns.shape, change(sorted), m, 0.0)?;
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
