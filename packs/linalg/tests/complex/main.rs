//! What factors of complex matrices have to satisfy, at sizes of one block and of several; products are computed in f64. Values
//! are compared with LAPACK's in the tests of the host's kernels, and with those kernels by the sweep.

mod matrix;
mod request;

use matrix::{C, Matrix, of_kind};
use nx_vulkan_abi::DType;
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{Attr, Request, Spec, values::Rng};
use request::{bytes_of, cells_of, run, runtime};

const SIZES: [usize; 7] = [1, 2, 5, 33, 64, 65, 130];
/// Those of a CPU device, which takes seconds to compile a shader for one size.
const CPU_SIZES: [usize; 3] = [5, 33, 65];
const KINDS: [&str; 4] = ["random", "graded", "low", "equal rows"];

fn sizes(runtime: &Runtime) -> &'static [usize] {
    match runtime.device().summary().kind {
        "cpu" => &CPU_SIZES,
        _ => &SIZES,
    }
}

/// Both types, or on a CPU device, which takes seconds to compile a shader for one, that of `own`.
fn types(runtime: &Runtime, own: DType) -> Vec<DType> {
    match runtime.device().summary().kind {
        "cpu" => vec![own],
        _ => vec![DType::C64, DType::C128],
    }
}

/// Ten units of the number of rows times the type's precision, relative to `scale`.
#[track_caller]
fn assert_small(what: &str, rest: &Matrix, scale: f64, dtype: DType) {
    let precision = match dtype {
        DType::C64 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    let n = rest.rows.max(rest.columns) as f64;
    let units = rest.largest() / (n * precision * scale.max(f64::MIN_POSITIVE));
    assert!(units <= 10.0, "{what} {dtype}: {units} units");
}

/// Batches of two matrices of a kind; `own` as for [`types`].
fn every(own: DType, mut check: impl FnMut(&Runtime, DType, usize, &str, [Matrix; 2], &mut Rng)) {
    let (runtime, mut rng) = (runtime(), Rng(5));
    let types = types(&runtime, own);
    for &n in sizes(&runtime) {
        for kind in KINDS {
            for &dtype in &types {
                let pair = [(); 2].map(|()| of_kind(kind, n, &mut rng).rounded(dtype));
                let what = format!("{kind} {n}");
                check(&runtime, dtype, n, &what, pair, &mut rng);
            }
        }
    }
}

#[test]
fn triangles_are_solved() {
    let (runtime, mut rng) = (runtime(), Rng(9));
    for &n in sizes(&runtime) {
        for dtype in types(&runtime, DType::C64) {
            let pair = [(); 2].map(|()| {
                let a = Matrix::random(n, n, &mut rng);
                // Well conditioned.
                let share = 1.0 / n as f64;
                Matrix::from(n, n, |i, j| {
                    a.at(i, j).scaled(share) + if i == j { C(1.0, 1.0) } else { C::ZERO }
                })
                .rounded(dtype)
            });
            for (left, lower) in [(true, true), (true, false), (false, true), (false, false)] {
                for way in ["none", "transpose", "conjugate"] {
                    let shape = if left { [n, 35] } else { [35, n] };
                    let b = [(); 2]
                        .map(|()| Matrix::random(shape[0], shape[1], &mut rng).rounded(dtype));
                    let attrs = [
                        Attr::ints("left_side", [i64::from(left)]),
                        Attr::ints("lower", [i64::from(lower)]),
                        Attr::text("transform_a", way),
                    ];
                    let operands: [&[&Matrix]; 2] = [&[&pair[0], &pair[1]], &[&b[0], &b[1]]];
                    let op = "triangular_solve";
                    let all = run(&runtime, op, dtype, &operands, &[shape], &attrs);
                    for ((x, a), b) in all[0].iter().zip(&pair).zip(&b) {
                        let triangle = Matrix::from(n, n, |i, j| {
                            let is_in = if lower { j <= i } else { i <= j };
                            if is_in { a.at(i, j) } else { C::ZERO }
                        });
                        let own = match way {
                            "transpose" => triangle.turned(),
                            "conjugate" => triangle.adjoint().turned(),
                            _ => triangle,
                        };
                        let back = if left { own.times(x) } else { x.times(&own) };
                        let what = format!("{n} {left} {lower} {way}");
                        assert_small(&what, &back.minus(b), x.largest(), dtype);
                    }
                }
            }
        }
    }
}

#[test]
fn cholesky_gives_the_matrix() {
    every(DType::C64, |runtime, dtype, n, what, pair, _| {
        // Far enough from singular for its type to have a factor; imaginary parts on the diagonal do not count.
        let ridge = if dtype == DType::C64 { 1e-4 } else { 1e-12 };
        let all = pair.map(|a| {
            let square = a.times(&a.adjoint());
            let ridge = ridge * square.largest();
            Matrix::from(n, n, |i, j| match i == j {
                true => C(square.at(i, i).0 + ridge, 0.0),
                false => square.at(i, j),
            })
            .rounded(dtype)
        });
        let skewed = [0, 1].map(|at| {
            Matrix::from(n, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Less => C(f64::NAN, 0.0),
                std::cmp::Ordering::Equal => all[at].at(i, i) + C(0.0, 2.0),
                std::cmp::Ordering::Greater => all[at].at(i, j),
            })
        });
        let op = "Nx.Block.LinAlg.Cholesky";
        let factors = run(
            runtime,
            op,
            dtype,
            &[&[&skewed[0], &skewed[1]]],
            &[[n, n]],
            &[],
        );
        for (l, a) in factors[0].iter().zip(&all) {
            assert_small(what, &l.times(&l.adjoint()).minus(a), a.largest(), dtype);
            assert!(
                (0..n * n).all(|at| at % n <= at / n || l.cells[at] == C::ZERO),
                "{what}"
            );
            assert!(
                (0..n).all(|i| l.at(i, i).0 >= 0.0 && l.at(i, i).1 == 0.0),
                "{what}"
            );
        }
    });
}

#[test]
fn lu_gives_the_matrix() {
    every(DType::C128, |runtime, dtype, n, what, pair, _| {
        let op = "Nx.Block.LinAlg.LU";
        let factors = run(
            runtime,
            op,
            dtype,
            &[&[&pair[0], &pair[1]]],
            &[[n, n]; 3],
            &[],
        );
        for (at, a) in pair.iter().enumerate() {
            let [p, l, u] = [0, 1, 2].map(|factor| &factors[factor][at]);
            // A pivot is the largest element of its column, within rounding.
            assert!(l.largest() <= 1.0 + 1e-6, "{what} {dtype}: {}", l.largest());
            assert!(
                (0..n).all(|j| (0..n).map(|i| p.at(i, j).0).sum::<f64>() == 1.0),
                "{what}"
            );
            assert!(
                (0..n * n).all(|at| at % n >= at / n || u.cells[at] == C::ZERO),
                "{what}"
            );
            assert_small(what, &p.times(&l.times(u)).minus(a), u.largest(), dtype);
        }
    });
}

#[test]
fn systems_are_solved_and_determinants_are_products_of_pivots() {
    every(DType::C128, |runtime, dtype, n, what, pair, rng| {
        if what.starts_with("low") || what.starts_with("equal") {
            return;
        }
        let operand: &[&Matrix] = &[&pair[0], &pair[1]];
        for count in [1, 40] {
            let b = [(); 2].map(|()| Matrix::random(n, count, rng).rounded(dtype));
            let op = "Nx.Block.LinAlg.Solve";
            let operands: [&[&Matrix]; 2] = [operand, &[&b[0], &b[1]]];
            let all = run(runtime, op, dtype, &operands, &[[n, count]], &[]);
            for ((x, a), b) in all[0].iter().zip(&pair).zip(&b) {
                // Relative to what is summed up, and to how pivots grow.
                let scale = 10.0 * a.largest() * x.largest();
                assert_small(what, &a.times(x).minus(b), scale, dtype);
            }
        }
        // Graded or large ones are beyond f32.
        if n > 33 || what.starts_with("graded") {
            return;
        }
        let u = &run(
            runtime,
            "Nx.Block.LinAlg.LU",
            dtype,
            &[operand],
            &[[n, n]; 3],
            &[],
        )[2];
        let op = "Nx.Block.LinAlg.Determinant";
        let outputs: [Spec; 1] = [(dtype, vec![2])];
        let bytes = bytes_of(operand, dtype);
        let a = runtime
            .upload(dtype, &[2, n as u64, n as u64], &bytes)
            .unwrap();
        let results = runtime
            .run(&Request::new(op, &[&a], &outputs, &[]))
            .unwrap();
        let d = cells_of(&runtime.download(&results[0], None).unwrap(), dtype);
        for (d, u) in d.iter().zip(u) {
            let product = (0..n).fold(1.0, |product, i| product * u.at(i, i).magnitude());
            let apart = Matrix::from(1, 1, |_, _| C(d.magnitude() - product, 0.0));
            assert_small(what, &apart, 10.0 * n as f64 * product, dtype);
        }
    });
}

#[test]
fn qr_gives_the_matrix_and_is_unitary() {
    every(DType::C64, |runtime, dtype, n, what, pair, _| {
        for rows in [n, n.div_ceil(2)] {
            let tall = |a: &Matrix| Matrix::from(n, rows, |i, j| a.at(i, j));
            let wide = |a: &Matrix| Matrix::from(rows, n, |i, j| a.at(i, j));
            for pair in [
                [tall(&pair[0]), tall(&pair[1])],
                [wide(&pair[0]), wide(&pair[1])],
            ] {
                check_qr(runtime, dtype, what, &pair);
            }
        }
    });
}

fn check_qr(runtime: &Runtime, dtype: DType, what: &str, pair: &[Matrix; 2]) {
    let (m, n) = (pair[0].rows, pair[0].columns);
    for (mode, k) in [("reduced", m.min(n)), ("complete", m)] {
        let attrs = [Attr::float("eps", 1e-10), Attr::text("mode", mode)];
        let op = "Nx.Block.LinAlg.QR";
        let operands: [&[&Matrix]; 1] = [&[&pair[0], &pair[1]]];
        let shapes = [[m, k], [k, n]];
        let factors = run(runtime, op, dtype, &operands, &shapes, &attrs);
        for (at, a) in pair.iter().enumerate() {
            let [q, r] = [&factors[0][at], &factors[1][at]];
            assert_small(what, &q.times(r).minus(a), a.largest(), dtype);
            let gram = q.adjoint().times(q);
            assert_small(what, &gram.minus(&Matrix::unit(k)), 1.0, dtype);
            let below = (0..k).flat_map(|i| (0..i.min(n)).map(move |j| (i, j)));
            assert!(
                below.into_iter().all(|(i, j)| r.at(i, j) == C::ZERO),
                "{what}"
            );
        }
    }
}

#[test]
fn eigenvectors_are_unitary_and_give_their_matrix_back() {
    every(DType::C64, |runtime, dtype, _, what, pair, _| {
        check_eigh(runtime, dtype, what, pair);
    });
}

fn check_eigh(runtime: &Runtime, dtype: DType, what: &str, pair: [Matrix; 2]) {
    let n = pair[0].rows;
    let all =
        pair.map(|a| Matrix::from(n, n, |i, j| a.at(i, j) + a.at(j, i).conjugate()).rounded(dtype));
    let op = "Nx.Block.LinAlg.Eigh";
    let operands: [&[&Matrix]; 1] = [&[&all[0], &all[1]]];
    let results = run(runtime, op, dtype, &operands, &[[n, 0], [n, n]], &[]);
    for (at, a) in all.iter().enumerate() {
        let [values, v] = [&results[0][at], &results[1][at]];
        let scaled = Matrix::from(n, n, |i, j| v.at(i, j) * values.cells[j]);
        assert_small(what, &a.times(v).minus(&scaled), a.largest(), dtype);
        let gram = v.adjoint().times(v);
        assert_small(what, &gram.minus(&Matrix::unit(n)), 1.0, dtype);
        let cells = &values.cells;
        assert!(cells.iter().all(|x| x.1 == 0.0), "{what} {dtype}");
        assert!(
            cells.is_sorted_by(|x, y| x.0.abs() >= y.0.abs()),
            "{what} {dtype}"
        );
        // Of larger matrices the first components are real.
        let precision = if dtype == DType::C64 { 1e-6 } else { 1e-14 };
        let first = v.cells[..n].iter();
        assert!(
            n <= 32
                || first
                    .into_iter()
                    .all(|x| x.0 >= 0.0 && x.1.abs() < precision),
            "{what} {dtype}"
        );
    }
}

/// Sums of squares of such numbers are too large or too small for their types.
#[test]
fn scales_change_nothing() {
    let (runtime, mut rng) = (runtime(), Rng(11));
    for (dtype, scale) in [
        (DType::C64, 1e-30),
        (DType::C64, 1e30),
        (DType::C128, 1e-200),
        (DType::C128, 1e200),
    ] {
        for (n, kind) in [(2, "random"), (33, "graded"), (5, "low")] {
            let pair = [(); 2].map(|()| {
                let a = of_kind(kind, n, &mut rng);
                Matrix::from(n, n, |i, j| a.at(i, j).scaled(scale)).rounded(dtype)
            });
            let what = format!("{kind} {n} {scale:e}");
            check_qr(&runtime, dtype, &what, &pair);
            check_eigh(&runtime, dtype, &what, pair);
        }
    }
}

#[test]
fn singular_systems_are_errors_when_read() {
    let (runtime, mut rng) = (runtime(), Rng(3));
    for n in [3, 65] {
        for dtype in types(&runtime, DType::C128) {
            let a = Matrix::random(n, n, &mut rng);
            let zero = Matrix::from(n, n, |i, j| if j == n - 1 { C::ZERO } else { a.at(i, j) });
            let b = Matrix::random(n, 2, &mut rng);
            let fails = |op: &'static str, a: &Matrix, attrs: &[Attr]| {
                let upload = |x: &Matrix| {
                    let shape = [x.rows as u64, x.columns as u64];
                    let bytes = bytes_of(&[x], dtype);
                    runtime.upload(dtype, &shape, &bytes).unwrap()
                };
                let tensors = [upload(a), upload(&b)];
                let outputs: [Spec; 1] = [(dtype, vec![n as u64, 2])];
                let operands = [&tensors[0], &tensors[1]];
                let request = Request::new(op, &operands, &outputs, attrs);
                let results = runtime.run(&request).unwrap();
                let read = runtime.download(&results[0], None);
                read.err().map(|error| error.to_string())
            };
            let words = "can't solve for singular matrix";
            let why = fails("Nx.Block.LinAlg.Solve", &zero, &[]);
            assert!(why.is_some_and(|why| why.contains(words)), "{n} {dtype}");
            assert_eq!(fails("Nx.Block.LinAlg.Solve", &a, &[]), None);
            let attrs = [Attr::text("transform_a", "conjugate")];
            let why = fails("triangular_solve", &zero, &attrs);
            assert!(why.is_some_and(|why| why.contains(words)), "{n} {dtype}");
        }
    }
}
