//! Singular values and vectors, by rotations of columns, or by eigenvectors of their products.

mod arranged;

use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    jacobi::{self, MOST, SWEEPS, State, UNSIGNED},
    qr, tall,
    tridiagonal::{self, Product, Results},
};
use arranged::{arrange, complete, normalize};
use nx_vulkan_abi::{BufArg, DType, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::{number, read};

/// Columns of a matrix that one workgroup rotates; on a CPU dispatches cost more than what others could do meanwhile.
const WHOLE: u32 = 64;
const WHOLE_ON_CPU: u32 = 160;
/// How many times its columns a matrix has rows that is factored first, and one whose columns are multiplied with each other.
const TALL: u32 = 2;
const TALL_OF_PRODUCTS: u32 = 16;
/// Invocations that share a pair of columns of such a matrix.
const LANES: u32 = 8;

/// Orthogonal columns, in one piece each.
struct Columns {
    /// Their number and the elements of each.
    shape: Shape,
    a: BufArg,
    state: State,
    lengths: BufArg,
    order: BufArg,
    /// Whether some of them are too short to have directions.
    lacking: BufArg,
}

/// A matrix that has at least as many rows as columns, or is read as if it had.
#[derive(Debug, Clone, Copy)]
struct Tall {
    from: BufArg,
    shape: Shape,
    /// Elements from a row to the next, and from a column.
    strides: [u32; 2],
}

/// A matrix of more columns than rows is turned, and so are its results.
pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let own = Shape::of(request, 0)?;
    let full = request.ints("full_matrices?") != [0];
    let mut emit = Emit::in_sums(op, request)?;
    let wide = own.rows < own.columns;
    let (rows, columns) = (own.rows.max(own.columns), own.rows.min(own.columns));
    let tall = Tall {
        from: BufArg::input(0),
        shape: Shape {
            rows,
            columns,
            ..own
        },
        strides: if wide { [1, rows] } else { [columns, 1] },
    };
    let columns = orthogonal(&mut emit, tall)?;
    let (left, right) = if wide { (2, 0) } else { (0, 2) };
    let [left, right] = [emit.result(left)?, emit.result(right)?];
    let n = tall.shape.columns;
    let v = read(columns.state.v);
    arrange(&mut emit, &columns, [v, right], n, wide, None)?;
    match full {
        true => complete(&mut emit, &columns, left, wide)?,
        false => normalize(&mut emit, &columns, left, wide)?,
    }
    emit.finish()
}

/// Columns that are orthogonal, and the order of their lengths.
fn orthogonal(emit: &mut Emit<'_>, tall: Tall) -> Result<Columns, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let way = Way::of(emit, tall.shape);
    let times = match way {
        Way::Products => TALL_OF_PRODUCTS,
        _ => TALL,
    };
    let at_hand = matches!(way, Way::Whole) && is_held(emit, tall.shape);
    let (a, state) = if m >= n.saturating_mul(times) && !at_hand {
        by_factors(emit, tall, way)?
    } else {
        way.turned(emit, tall)?
    };
    let each = batch * u64::from(n);
    let list = each * emit.size();
    let [lengths, order, lacking] = emit.pieces([list, each * 4, batch * 4])?;
    let mut defines = vec![number("TILE", emit.threads(COPIES))];
    if n > UNSIGNED {
        defines.push(number("SIGNED", 1u32));
    }
    let push = [m, each as u32, n];
    emit.step(
        "lengths.comp",
        defines,
        vec![a, state.v, lengths],
        &push,
        each,
    )?;
    let groups = each.div_ceil(u64::from(COPIES));
    let none = rounding(emit, n);
    let least = way.least(emit, n).to_bits();
    let push = [each as u32, groups as u32, n, least, none.to_bits()];
    let s = emit.result(1)?;
    let args = [read(lengths), state.norms, order, s, lacking];
    let args = args.into_iter().chain(state.powers).collect();
    let mut defines = vec![jacobi::key(emit)];
    defines.extend(state.powers.map(|_| number("POWERS", 1u32)));
    emit.step("order.comp", defines, args, &push, groups)?;
    Ok(Columns {
        shape: tall.shape,
        a,
        state,
        lengths: read(lengths),
        order: read(order),
        lacking: read(lacking),
    })
}

/// What is 0 within rounding beside the largest of n singular values.
fn rounding(emit: &Emit<'_>, n: u32) -> f32 {
    n as f32 * emit.request.outputs[1].dtype.register().epsilon() as f32
}

/// How columns become orthogonal.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A workgroup rotates those of a matrix.
    Whole,
    /// In the directions of eigenvectors of their products, which have twice the precision of results.
    Products,
    /// Many workgroups rotate them; with `true` what their products have left to do.
    Rounds(bool),
}

impl Way {
    fn of(emit: &Emit<'_>, shape: Shape) -> Way {
        let n = shape.columns;
        let is_double = emit.wide() == DType::F64;
        let is_exact = is_double && emit.request.outputs[1].dtype != DType::F64;
        let whole = match emit.device().kind {
            DeviceKind::CPU if !is_double => WHOLE_ON_CPU,
            _ => WHOLE,
        };
        match is_exact {
            true if n <= UNSIGNED => Way::Whole,
            true => Way::Products,
            false if n <= whole => Way::Whole,
            false => Way::Rounds(is_double),
        }
    }

    /// Beside the longest of n columns, the length up to which others may not be orthogonal.
    fn least(self, emit: &Emit<'_>, n: u32) -> f32 {
        match self {
            Way::Products => rounding(emit, n),
            // Rotations leave out what is negligible beside the norm, which is that of n columns at most.
            _ => 2.0 * (n as f32).sqrt() * jacobi::negligible(emit),
        }
    }

    fn turned(self, emit: &mut Emit<'_>, tall: Tall) -> Result<(BufArg, State), Refusal> {
        match self {
            Way::Whole => rotated_at_once(emit, tall),
            Way::Rounds(helps) => rotated(emit, tall, helps),
            Way::Products => {
                let (batch, n) = (tall.shape.batch, tall.shape.columns);
                let vectors = emit.scratch(batch * u64::from(n) * u64::from(n))?;
                let norms = by_products(emit, tall, vectors)?;
                let a = columns_of(emit, tall, read(vectors))?;
                let state = State {
                    v: change(vectors),
                    norms,
                    powers: None,
                    states: norms,
                };
                Ok((a, state))
            }
        }
    }
}

/// The columns of q r from those of r, which are as many elements as there are columns and need the same rotations.
fn by_factors(emit: &mut Emit<'_>, tall: Tall, way: Way) -> Result<(BufArg, State), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let from = match tall.strides {
        [1, _] => {
            let rows = emit.scratch(tall.shape.elements())?;
            let wide = Shape {
                rows: n,
                columns: m,
                batch,
            };
            let strides = [m, m * n, m * n, 0];
            qr::transpose(emit, Vec::new(), vec![tall.from, rows], wide, strides)?;
            read(rows)
        }
        _ => tall.from,
    };
    let q = emit.scratch(tall.shape.elements())?;
    let r = emit.scratch(batch * u64::from(n) * u64::from(n))?;
    tall::factor(emit, tall.shape, from, [q, r], 0.0)?;
    let square = Tall {
        from: read(r),
        shape: Shape {
            rows: n,
            ..tall.shape
        },
        strides: [n, 1],
    };
    let (turned, state) = way.turned(emit, square)?;
    let a = emit.scratch(tall.shape.elements())?;
    Product {
        batch,
        parts: 1,
        size: [n, m, n],
        a: [n, 1, n * n, 0],
        b: [1, n, m * n, 0],
        x: [m, m * n, 0],
        end: None,
    }
    .step(emit, [turned, q, a])?;
    Ok((change(a), state))
}

/// Invocations that rotate the columns of a matrix.
fn threads(emit: &Emit<'_>, n: u32) -> u32 {
    emit.threads((n.next_power_of_two() * LANES / 2).clamp(32, 256))
}

/// Whether shared memory is enough for a matrix and its rotations, beside sums.
fn is_held(emit: &Emit<'_>, shape: Shape) -> bool {
    let [m, n, tile] = [shape.rows, shape.columns, threads(emit, shape.columns)].map(u64::from);
    let cells = n * (m + n) + 3 * tile + 1;
    cells * emit.size() <= u64::from(emit.device().shared_bytes)
}

/// Eigenvectors of the products of columns, as rows: in twice the precision of the operand they are as good as those of the
/// columns. Gives what is 0 for a matrix of zeros, and NaN for what is not finite.
fn by_products(emit: &mut Emit<'_>, tall: Tall, vectors: BufArg) -> Result<BufArg, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let [down, across] = tall.strides;
    let list = batch * u64::from(n) * emit.size();
    let [products, values] = emit.pieces([u64::from(n) * list, list])?;
    Product {
        batch,
        parts: 1,
        size: [n, n, m],
        a: [across, down, m * n, 0],
        b: [down, across, m * n, 0],
        x: [n, n * n, 0],
        end: None,
    }
    .step(emit, [tall.from, tall.from, products])?;
    let results = Results {
        values,
        vectors,
        as_rows: true,
    };
    let shape = Shape {
        rows: n,
        ..tall.shape
    };
    tridiagonal::solve(emit, shape, products, results)
}

/// The matrix in the directions of `vectors`, each column in one piece.
fn columns_of(emit: &mut Emit<'_>, tall: Tall, vectors: BufArg) -> Result<BufArg, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let [down, across] = tall.strides;
    let a = emit.scratch(tall.shape.elements())?;
    Product {
        batch,
        parts: 1,
        size: [n, m, n],
        a: [n, 1, n * n, 0],
        b: [across, down, m * n, 0],
        x: [m, m * n, 0],
        end: None,
    }
    .step(emit, [vectors, tall.from, a])?;
    Ok(change(a))
}

/// The columns of the matrix, each in one piece.
fn pieces(emit: &mut Emit<'_>, tall: Tall) -> Result<BufArg, Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let a = emit.scratch(tall.shape.elements())?;
    match tall.strides {
        [1, _] => crate::triangular::copy(emit, tall.from, a, n, m, batch)?,
        _ => qr::turn(emit, tall.from, a, tall.shape, n)?,
    }
    Ok(change(a))
}

/// Rotates columns by a workgroup.
fn rotated_at_once(emit: &mut Emit<'_>, tall: Tall) -> Result<(BufArg, State), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let a = pieces(emit, tall)?;
    let state = jacobi::begin(emit, tall.shape, a)?;
    let mut defines = vec![
        number("TILE", threads(emit, n)),
        number("LANES", LANES),
        number("SWEEPS", SWEEPS),
    ];
    if is_held(emit, tall.shape) {
        defines.extend([number("CELLS", m * n), number("TURNS", n * n)]);
    }
    let push = [m, batch as u32, 0, n, jacobi::negligible(emit).to_bits()];
    let args = vec![a, state.v, state.norms, state.states];
    emit.step("columns.comp", defines, args, &push, batch)?;
    Ok((a, state))
}

/// Rotates columns by many workgroups: from the start, or where products of columns have the precision for it, what they have
/// left to do.
fn rotated(emit: &mut Emit<'_>, tall: Tall, helps: bool) -> Result<(BufArg, State), Refusal> {
    let Shape {
        batch,
        rows: m,
        columns: n,
    } = tall.shape;
    let mut a = pieces(emit, tall)?;
    let state = jacobi::begin(emit, tall.shape, a)?;
    if helps {
        let tall = Tall {
            from: read(a),
            strides: [1, m],
            ..tall
        };
        by_products(emit, tall, state.v)?;
        a = columns_of(emit, tall, read(state.v))?;
    }
    let half = n.div_ceil(2);
    let groups = batch * u64::from(half);
    let push = [m, groups as u32, 0, n, jacobi::negligible(emit).to_bits()];
    let mut defines = ["TILE", "LANES"]
        .map(|name| number(name, emit.threads(COPIES)))
        .to_vec();
    defines.push(number("MOST", MOST));
    let args = vec![a, state.v, state.norms, state.states];
    let rounds = 2 * half - 1;
    let place = emit.place();
    emit.step("columns.comp", defines, args, &push, groups)?;
    emit.repeat(place, rounds * jacobi::sweeps(rounds, helps)?, 1);
    Ok((a, state))
}
