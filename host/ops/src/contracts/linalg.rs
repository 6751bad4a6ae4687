//! Linear algebra: systems of equations, and factors of matrices. A matrix is the last two axes, those before it are a batch.

use super::shared::{ELEMENTWISE, default, floating, result_type, some};
use crate::{
    attrs::{Attr, ints, text},
    kernels::{kernel::Kernel, linalg},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    partial::SINGULAR,
    problems::Problem,
    request::Spec,
    tolerance::{Bound, Growth},
    values::{Domain::Matrix, Rng},
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet};

/// Integers of 2 and 4 bits are too few for matrices that are not singular.
const REALS: DTypeSet =
    DTypeSet(DTypeSet::REAL.0 & !DTypeSet::of(&[DType::U2, DType::U4, DType::S2, DType::S4]).0);

const TAKES: DTypeSet = DTypeSet(REALS.0 | DTypeSet::COMPLEX.0);

/// One result for one square matrix, of its shape.
const SQUARE: Contract = Contract {
    title: "Linear algebra",
    operands: &["a"],
    infer: |op, inputs, _| Ok((result_type(op, inputs)?, inputs[0].1.clone())),
    check,
    operand_shapes: |op, shape| vec![shape.to_vec(); op.arity()],
    problems: |op, layout, varies, rng| {
        let shapes: &[&[u64]] = match layout {
            Layout::Contiguous => &[&[5, 5], &[1, 1], &[3, 4, 4], &[33, 33], &[70, 70], &[2, 2]],
            Layout::Deep => &[&[2, 1, 2, 3, 3]],
            Layout::Empty => &[&[0, 3, 3]],
            // Equal rows or columns have pivots that rounding chooses.
            Layout::Scalar | Layout::Broadcast => &[&[1, 1], &[2, 1, 1]],
            Layout::Large => &[&[130, 130], &[3, 100, 100]],
            Layout::Transposed | Layout::Sliced | Layout::Reversed => &[&[6, 6], &[2, 5, 5]],
        };
        let count = if varies { shapes.len() } else { 2 };
        let problem = |shape: &[u64]| Problem {
            inputs: (op.contract.operand_shapes)(op, shape),
            output: Vec::new(),
            attrs: Vec::new(),
        };
        some(shapes, count, rng).into_iter().map(problem).collect()
    },
    terms: |inputs, _, _| 32 * inputs[0].iter().rev().take(2).max().copied().unwrap_or(0),
    square: |power| vec![1 << (power / 2); 2],
    ..ELEMENTWISE
};

const CHOLESKY: Contract = SQUARE;

const LU: Contract = Contract {
    results: &["p", "l", "u"],
    all: |inputs, first, _| {
        let factor = (floating(inputs[0].0), first.1.clone());
        vec![first, factor.clone(), factor]
    },
    ..SQUARE
};

const DETERMINANT: Contract = Contract {
    infer: |op, inputs, _| {
        let shape = &inputs[0].1;
        let batch = shape.len().saturating_sub(2);
        Ok((result_type(op, inputs)?, shape[..batch].to_vec()))
    },
    ..SQUARE
};

const SOLVE: Contract = Contract {
    operands: &["a", "b"],
    infer: |op, inputs, _| Ok((result_type(op, inputs)?, inputs[1].1.clone())),
    // Random matrices of n rows are conditioned like n.
    terms: |inputs, _, _| {
        let n = inputs[0].last().copied().unwrap_or(0);
        32 * n * n
    },
    ..SQUARE
};

const TRIANGULAR: Contract = Contract {
    attributes: &[
        flag(
            "left_side",
            "1, the default, for op(a) x = b, 0 for x op(a) = b",
        ),
        flag(
            "lower",
            "1, the default, where a is a lower triangle, 0 where it is an upper one",
        ),
        Attribute {
            name: "transform_a",
            kind: AttributeKind::Word(&["none", "transpose", "conjugate"]),
            doc: "op: `conjugate` does not transpose, and of real numbers is as `none`",
        },
    ],
    complete: |_, _, attrs| {
        default(attrs, Attr::ints("left_side", [1]));
        default(attrs, Attr::ints("lower", [1]));
        default(attrs, Attr::text("transform_a", "none"));
    },
    problems: |op, layout, varies, rng| {
        let mut all = (SQUARE.problems)(op, layout, varies, rng);
        for problem in &mut all {
            // What solves a random triangle of more rows is beyond f32, where the order of steps decides between
            // infinity and NaN.
            let extents = problem.inputs.iter_mut().flatten();
            extents.for_each(|extent| *extent = (*extent).min(70));
            let way = rng.pick(&["none", "transpose", "conjugate"]);
            problem.attrs = vec![
                Attr::ints("left_side", [rng.below(2) as i64]),
                Attr::ints("lower", [rng.below(2) as i64]),
                Attr::text("transform_a", way),
            ];
            if rng.below(3) == 0 {
                problem.inputs[1].pop();
            }
        }
        all
    },
    ..SOLVE
};

/// Shapes of matrices that need not be square.
fn rectangles(
    layout: Layout,
    varies: bool,
    rng: &mut Rng,
    attr: fn(&mut Rng) -> Attr,
) -> Vec<Problem> {
    let shapes: &[&[u64]] = match layout {
        Layout::Contiguous => &[
            &[5, 5],
            &[1, 1],
            &[3, 7, 4],
            &[2, 4, 7],
            &[40, 33],
            &[70, 66],
            &[9, 1],
            &[1, 9],
        ],
        Layout::Deep => &[&[2, 1, 2, 4, 3]],
        Layout::Empty => &[&[0, 3, 2]],
        Layout::Scalar => &[&[1, 1]],
        Layout::Large => &[&[130, 100], &[2, 70, 90]],
        Layout::Transposed | Layout::Sliced | Layout::Reversed => &[&[6, 6], &[2, 5, 3]],
        // Equal rows leave the order of what is 0 to rounding.
        Layout::Broadcast => &[&[4, 1], &[1, 5]],
    };
    let count = if varies { shapes.len() } else { 2 };
    let problem = |shape: &[u64]| Problem {
        inputs: vec![shape.to_vec()],
        output: Vec::new(),
        attrs: Vec::new(),
    };
    let mut all: Vec<Problem> = some(shapes, count, rng).into_iter().map(problem).collect();
    all.iter_mut()
        .for_each(|problem| problem.attrs.push(attr(rng)));
    all
}

/// The shape of the same batch of other matrices.
fn others(shape: &[u64], matrix: &[u64]) -> Vec<u64> {
    [&shape[..shape.len().saturating_sub(2)], matrix].concat()
}

fn sides(shape: &[u64]) -> [u64; 3] {
    match shape {
        [.., m, n] => [*m, *n, *m.min(n)],
        _ => [1; 3],
    }
}

const QR: Contract = Contract {
    results: &["q", "r"],
    attributes: &[Attribute {
        name: "mode",
        kind: AttributeKind::Word(&["reduced", "complete"]),
        doc: "`reduced`, the default, for as many columns of q as rows or columns of a, the fewer; `complete` for all",
    }],
    complete: |_, _, attrs| default(attrs, Attr::text("mode", "reduced")),
    infer: |op, inputs, attrs| {
        let [m, _, k] = sides(&inputs[0].1);
        let wide = if text(attrs, "mode") == Some("complete") {
            m
        } else {
            k
        };
        Ok((result_type(op, inputs)?, others(&inputs[0].1, &[m, wide])))
    },
    all: |inputs, first, _| {
        let [_, n, _] = sides(&inputs[0].1);
        let wide = first.1.last().copied().unwrap_or(1);
        vec![first.clone(), (first.0, others(&inputs[0].1, &[wide, n]))]
    },
    problems: |_, layout, varies, rng| {
        rectangles(layout, varies, rng, |rng| {
            Attr::text("mode", rng.pick(&["reduced", "complete"]))
        })
    },
    ..SQUARE
};

const EIGH: Contract = Contract {
    results: &["values", "vectors"],
    infer: |op, inputs, _| {
        let [n, ..] = sides(&inputs[0].1);
        Ok((result_type(op, inputs)?, others(&inputs[0].1, &[n])))
    },
    all: |inputs, first, _| vec![first.clone(), (first.0, inputs[0].1.clone())],
    problems: |op, layout, varies, rng| {
        // Equal rows leave the order of what is 0 to rounding.
        let layout = match layout {
            Layout::Broadcast => Layout::Scalar,
            other => other,
        };
        (SQUARE.problems)(op, layout, varies, rng)
    },
    ..SQUARE
};

const SVD: Contract = Contract {
    results: &["u", "s", "vt"],
    attributes: &[flag(
        "full_matrices?",
        "1, the default, for all columns of u and rows of vᵀ, 0 for as many as s has",
    )],
    complete: |_, _, attrs| default(attrs, Attr::ints("full_matrices?", [1])),
    infer: |op, inputs, attrs| {
        let [m, _, k] = sides(&inputs[0].1);
        let wide = if ints(attrs, "full_matrices?") == [0] {
            k
        } else {
            m
        };
        Ok((result_type(op, inputs)?, others(&inputs[0].1, &[m, wide])))
    },
    all: |inputs, first, attrs| {
        let shape = &inputs[0].1;
        let [_, n, k] = sides(shape);
        let wide = if ints(attrs, "full_matrices?") == [0] {
            k
        } else {
            n
        };
        let [s, vt] = [vec![k], vec![wide, n]].map(|matrix| (first.0, others(shape, &matrix)));
        vec![first, s, vt]
    },
    problems: |_, layout, varies, rng| {
        rectangles(layout, varies, rng, |rng| {
            Attr::ints("full_matrices?", [rng.below(2) as i64])
        })
    },
    ..SQUARE
};

const fn flag(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

/// Results of the shapes that follow, and square matrices where they have to be.
fn check(op: &Op, inputs: &[Desc<'_>], outputs: &[Desc<'_>], attrs: &[Attr]) -> Result<(), String> {
    let a = inputs[0].shape;
    let [batch @ .., rows, columns] = a else {
        return Err(format!("expected a matrix, got: {}", inputs[0]));
    };
    if !op.name.ends_with("QR") && !op.name.ends_with("SVD") && rows != columns {
        return Err(format!("expected square matrices, got: {}", inputs[0]));
    }
    if let [_, b] = inputs {
        fits(batch, *rows, b, attrs)?;
    }
    let inputs: Vec<Spec> = inputs.iter().map(|x| (x.dtype, x.shape.to_vec())).collect();
    let first = (op.contract.infer)(op, &inputs, attrs)?;
    let all = (op.contract.all)(&inputs, first, attrs);
    let complex = outputs.iter().filter(|out| out.dtype.is_complex()).count();
    if complex != 0 && complex != outputs.len() {
        return Err("results are all complex, or none is".to_owned());
    }
    match outputs
        .iter()
        .zip(&all)
        .find(|(out, all)| out.shape != all.1)
    {
        Some((out, all)) => Err(format!(
            "a result is of shape {:?}, not {:?}",
            all.1, out.shape
        )),
        None => Ok(()),
    }
}

/// Right sides are vectors or matrices, a batch of them like that of the matrices.
fn fits(batch: &[u64], n: u64, b: &Desc<'_>, attrs: &[Attr]) -> Result<(), String> {
    let vectors = b.shape == [batch, &[n]].concat();
    let left = ints(attrs, "left_side") != [0];
    let matrices = match b.shape {
        [own @ .., rows, columns] => own == batch && n == if left { *rows } else { *columns },
        _ => false,
    };
    match vectors || matrices {
        true => Ok(()),
        false => Err(format!("b does not fit the matrices: {b}")),
    }
}

const ROW: Op = Op {
    name: "Nx.Block.LinAlg.Cholesky",
    doc: "the lower triangle l with l lᴴ = a, of which only the lower triangle is read, and of its diagonal the real part; NaN from the first row on that has \
          none",
    contract: &CHOLESKY,
    takes: &[TAKES],
    gives: Gives::Float,
    bound: Bound::reduces(Growth::Condition),
    domains: &[Matrix],
    partial: None,
    lane: None,
    kernel: Kernel::Matrices(linalg::cholesky),
};

pub(super) const OPS: &[Op] = &[
    Op {
        name: "triangular_solve",
        doc: "x with op(a) x = b or x op(a) = b; the other triangle of a is not read. A 0 on the diagonal is an error",
        contract: &TRIANGULAR,
        takes: &[TAKES, TAKES],
        partial: Some(&SINGULAR),
        kernel: Kernel::Matrices(linalg::triangular_solve),
        ..ROW
    },
    ROW,
    Op {
        name: "Nx.Block.LinAlg.LU",
        doc: "a = p l u: the pivot is the largest element of its column, the first of equals",
        contract: &LU,
        gives: Gives::Operand,
        kernel: Kernel::Matrices(linalg::lu),
        ..ROW
    },
    Op {
        name: "Nx.Block.LinAlg.Solve",
        doc: "x with a x = b, by LU. A pivot of 0 is an error",
        contract: &SOLVE,
        takes: &[TAKES, TAKES],
        partial: Some(&SINGULAR),
        kernel: Kernel::Matrices(linalg::solve),
        ..ROW
    },
    Op {
        name: "Nx.Block.LinAlg.Determinant",
        doc: "the determinant, by LU from 4 by 4 on",
        contract: &DETERMINANT,
        kernel: Kernel::Matrices(linalg::determinant),
        ..ROW
    },
    Op {
        name: "Nx.Block.LinAlg.QR",
        doc: "a = q r by Householder's reflections. The diagonal of r is not negative, but where what is below has a norm of \
              less than 1e-5: there it keeps its sign. That of complex numbers is turned by 180 degrees, but for the last \
              element of a square r",
        contract: &QR,
        kernel: Kernel::Matrices(linalg::qr),
        ..ROW
    },
    Op {
        name: "Nx.Block.LinAlg.Eigh",
        doc: "eigenvalues in descending order of magnitude and eigenvectors of a symmetric or Hermitian matrix, of which only \
              the lower triangle is read; eigenvalues of complex numbers have imaginary parts of 0. Up to 32 rows signs are those of Jacobi's rotations, with more the first component of each \
              vector is real and not negative; fields of the block are not looked at",
        contract: &EIGH,
        kernel: Kernel::Matrices(linalg::eigh),
        ..ROW
    },
    Op {
        name: "Nx.Block.LinAlg.SVD",
        doc: "a = u s vᵀ, s in descending order; what is at most n times the type's precision beside the first is 0. Signs are those of Jacobi's rotations of columns, or of rows where there are \
              fewer; with more than 32 of them the first component of what has as many is not negative",
        contract: &SVD,
        takes: &[REALS],
        kernel: Kernel::Matrices(linalg::svd),
        ..ROW
    },
];
