//! Linear algebra against LAPACK's values (numpy 2.4.6, scipy 1.17.1) and against what factors have to satisfy.

use super::{Sample, Tensor, bytes_of, run, tensor, try_run};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_ops::{attrs::Attr, kernels, view::Out};

const N: usize = 7;

fn cell(i: usize, j: usize) -> f64 {
    (((7 * i + 13 * j + (i * j) % 5 + i * i) % 11) as f64 - 5.0) / 3.0
}

fn matrix(m: usize, n: usize) -> Vec<f64> {
    (0..m * n).map(|at| cell(at / n, at % n)).collect()
}

fn square(values: &[f64]) -> Tensor {
    let n = (values.len() as f64).sqrt() as u64;
    tensor(&[n, n], values)
}

fn times(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let cell = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
    (0..m * n).map(|at| cell(at / n, at % n)).collect()
}

fn turned(a: &[f64], m: usize, n: usize) -> Vec<f64> {
    (0..m * n).map(|at| a[at % m * n + at / m]).collect()
}

fn unit(n: usize) -> Vec<f64> {
    (0..n * n)
        .map(|at| if at / n == at % n { 1.0 } else { 0.0 })
        .collect()
}

#[track_caller]
fn assert_near(got: &[f64], expected: &[f64], units: f64) {
    assert_eq!(got.len(), expected.len());
    let largest = expected
        .iter()
        .fold(f64::MIN_POSITIVE, |x, y| x.max(y.abs()));
    for (got, expected) in got.iter().zip(expected) {
        let apart = (got - expected).abs();
        assert!(
            apart <= units * f64::EPSILON * largest,
            "{got} for {expected}"
        );
    }
}

/// Results of several shapes.
fn all(op: &str, x: &Tensor, shapes: &[&[u64]], attrs: &[Attr]) -> Vec<Vec<f64>> {
    let size = |shape: &&[u64]| 8 * shape.iter().product::<u64>() as usize;
    let mut bytes: Vec<Vec<u8>> = shapes.iter().map(|shape| vec![0xa5; size(shape)]).collect();
    let mut outs: Vec<Out<'_>> = shapes
        .iter()
        .zip(&mut bytes)
        .map(|(shape, bytes)| Out {
            dtype: DType::F64,
            shape,
            bytes,
        })
        .collect();
    kernels::run(op, &[x.view()], &mut outs, attrs).unwrap_or_else(|error| panic!("{error}"));
    let values = |bytes: &Vec<u8>| bytes.chunks(8).map(f64::pop).collect();
    bytes.iter().map(values).collect()
}

fn right() -> Tensor {
    let right: Vec<f64> = (1..=N).map(|i| i as f64).collect();
    tensor(&[N as u64], &right)
}

#[test]
fn systems_and_factors_are_lapacks() {
    let a = matrix(N, N);
    let shape = [N as u64; 2];
    let x: Vec<f64> = run(
        "Nx.Block.LinAlg.Solve",
        &[&square(&a), &right()],
        &shape[1..],
        &[],
    );
    let expected = [
        -32.727272727275604,
        31.96363636363928,
        102.76363636364368,
        -190.63636363637877,
        556.0363636364075,
        -407.67272727275946,
        -149.72727272728432,
    ];
    // Its condition number is about 1e3.
    assert_near(&x, &expected, 1e4);
    let d: Vec<f64> = run("Nx.Block.LinAlg.Determinant", &[&square(&a)], &[], &[]);
    assert_near(&d, &[0.2766346593506866], 1e4);

    let [p, l, u] = &all("Nx.Block.LinAlg.LU", &square(&a), &[&shape[..]; 3], &[])[..] else {
        unreachable!()
    };
    let rows: Vec<usize> = (0..N)
        .map(|j| (0..N).find(|i| p[i * N + j] == 1.0).unwrap())
        .collect();
    assert_eq!(rows, [0, 1, 5, 6, 4, 3, 2]);
    assert_near(&times(&times(p, l, N, N, N), u, N, N, N), &a, 70.0);
    let diagonal: Vec<f64> = (0..N).map(|i| u[i * (N + 1)]).collect();
    let expected = [
        -1.6666666666666667,
        -2.2666666666666666,
        1.0784313725490196,
        2.5666666666666673,
        2.3809523809523805,
        0.7575757575757576,
        -0.014666666666665495,
    ];
    assert_near(&diagonal, &expected, 100.0);

    let mut positive = times(&a, &turned(&a, N, N), N, N, N);
    (0..N).for_each(|i| positive[i * (N + 1)] += 1.0);
    let l: Vec<f64> = run(
        "Nx.Block.LinAlg.Cholesky",
        &[&square(&positive)],
        &shape,
        &[],
    );
    let expected = [
        -1.1770336155603108e-16,
        -1.315334436189655,
        -0.5853134172594969,
        -0.3324103253862406,
        -0.24253159460639717,
        -1.0969746004077923,
        2.624493357800214,
    ];
    assert_near(&l[N * (N - 1)..], &expected, 70.0);

    let mut lower = a;
    (0..N).for_each(|i| lower[i * (N + 1)] += 5.0);
    let none = Attr::text("transform_a", "none");
    let x: Vec<f64> = run(
        "triangular_solve",
        &[&square(&lower), &right()],
        &shape[1..],
        std::slice::from_ref(&none),
    );
    let expected = [
        0.30000000000000004,
        0.51,
        0.782142857142857,
        0.8809663865546219,
        0.6201481645289695,
        1.4369074998420421,
        1.9835280265952537,
    ];
    assert_near(&x, &expected, 70.0);
}

#[test]
fn singular_systems_are_refused() {
    let a = tensor(&[2, 2], &[1f32, 2.0, 2.0, 4.0]);
    let b = tensor(&[2], &[1f32, 2.0]);
    let bad = try_run::<f32>("Nx.Block.LinAlg.Solve", &[&a, &b], &[2], &[]);
    assert!(
        bad.unwrap_err()
            .to_string()
            .ends_with("can't solve for singular matrix")
    );
    let a = tensor(&[2, 2], &[1f32, 2.0, 2.0, 0.0]);
    let none = [Attr::text("transform_a", "none")];
    let bad = try_run::<f32>("triangular_solve", &[&a, &b], &[2], &none);
    assert!(
        bad.unwrap_err()
            .to_string()
            .ends_with("can't solve for singular matrix")
    );
}

#[test]
fn eigenvalues_and_singular_values_are_lapacks() {
    let a = matrix(N, N);
    let b = turned(&a, N, N);
    let symmetric: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    let shape = [N as u64; 2];
    let results = all(
        "Nx.Block.LinAlg.Eigh",
        &square(&symmetric),
        &[&shape[1..], &shape],
        &[],
    );
    let [values, vectors] = &results[..] else {
        unreachable!()
    };
    let expected = [
        -8.000954349100839,
        -5.1009145872157555,
        4.093692310465054,
        3.0508040027026477,
        2.009301400417,
        -1.5134096037105234,
        0.12814749310908252,
    ];
    assert_near(values, &expected, 70.0);
    let scaled: Vec<f64> = (0..N * N).map(|at| vectors[at] * values[at % N]).collect();
    assert_near(&times(&symmetric, vectors, N, N, N), &scaled, 70.0);
    assert_near(
        &times(&turned(vectors, N, N), vectors, N, N, N),
        &unit(N),
        70.0,
    );

    let hilbert: Vec<f64> = (0..64)
        .map(|at| 1.0 / (at / 8 + at % 8 + 1) as f64)
        .collect();
    let s = &all(
        "Nx.Block.LinAlg.SVD",
        &square(&hilbert),
        &[&[8, 8], &[8], &[8, 8]],
        &[],
    )[1];
    let expected = [
        1.6959389969219496,
        0.29812521131693076,
        0.026212843578119035,
        0.0014676881177418464,
        5.4369433697510956e-05,
        1.2943320918745525e-06,
        1.7988737457436075e-08,
        1.1115389793345085e-10,
    ];
    assert_near(s, &expected, 20.0);
}

/// Sums of squares are numbers at one of them only.
const SCALES: [f64; 7] = [1.0, 1e-290, 1e-200, 1e-155, 1e155, 1e200, 1e290];

/// Well and ill conditioned, of low rank, graded, 0, tall and wide.
fn matrices() -> Vec<(usize, usize, Vec<f64>)> {
    let kinds: [&dyn Fn(usize, usize) -> f64; 4] = [
        &|i, j| cell(i, j) * 10f64.powi(-2 * j as i32),
        &|i, j| cell(i, 0) * cell(1, j),
        &|i, j| 1.0 / (i + j + 1) as f64,
        &cell,
    ];
    let mut all = vec![(1, 1, vec![-3.0]), (5, 3, vec![0.0; 15])];
    for (m, n) in [(2, 2), (7, 7), (9, 7), (7, 9), (1, 6), (6, 1), (20, 20)] {
        for (kind, scale) in kinds
            .iter()
            .flat_map(|kind| SCALES.map(|scale| (kind, scale)))
        {
            let cells = (0..m * n).map(|at| scale * kind(at / n, at % n));
            all.push((m, n, cells.collect()));
        }
    }
    all
}

#[test]
fn qr_is_orthogonal_and_gives_its_matrix_back() {
    for (m, n, a) in matrices() {
        let (rows, columns) = (m as u64, n as u64);
        for (mode, wide) in [("reduced", m.min(n)), ("complete", m)] {
            let shapes: [&[u64]; 2] = [&[rows, wide as u64], &[wide as u64, columns]];
            let x = tensor(&[rows, columns], &a);
            let results = all(
                "Nx.Block.LinAlg.QR",
                &x,
                &shapes,
                &[Attr::text("mode", mode)],
            );
            let units = 10.0 * m.max(n) as f64;
            assert_near(&times(&results[0], &results[1], m, wide, n), &a, units);
            let q = &results[0];
            assert_near(
                &times(&turned(q, m, wide), q, wide, m, wide),
                &unit(wide),
                units,
            );
            assert!((0..wide * n).all(|at| at / n <= at % n || results[1][at] == 0.0));
        }
    }
}

#[test]
fn svd_is_orthogonal_and_gives_its_matrix_back() {
    for (m, n, a) in matrices() {
        let (rows, columns, k) = (m as u64, n as u64, m.min(n));
        let x = tensor(&[rows, columns], &a);
        let shapes: [&[u64]; 3] = [&[rows, rows], &[k as u64], &[columns, columns]];
        let results = all("Nx.Block.LinAlg.SVD", &x, &shapes, &[]);
        let [u, s, vt] = &results[..] else {
            unreachable!()
        };
        let units = 10.0 * m.max(n) as f64;
        let cell = |i: usize, j: usize| if j < k { u[i * m + j] * s[j] } else { 0.0 };
        let scaled: Vec<f64> = (0..m * n).map(|at| cell(at / n, at % n)).collect();
        assert_near(&times(&scaled, vt, m, n, n), &a, units);
        assert_near(&times(&turned(u, m, m), u, m, m, m), &unit(m), units);
        assert_near(&times(&turned(vt, n, n), vt, n, n, n), &unit(n), units);
        assert!(
            s.is_sorted_by(|x, y| x >= y) && s.iter().all(|x| *x >= 0.0),
            "{s:?}"
        );
        let thin: [&[u64]; 3] = [&[rows, k as u64], &[k as u64], &[k as u64, columns]];
        let results = all(
            "Nx.Block.LinAlg.SVD",
            &x,
            &thin,
            &[Attr::ints("full_matrices?", [0])],
        );
        let [u, own, vt] = &results[..] else {
            unreachable!()
        };
        assert_near(own, s, 1.0);
        let scaled: Vec<f64> = (0..m * k).map(|at| u[at] * s[at % k]).collect();
        assert_near(&times(&scaled, vt, m, k, n), &a, units);
        assert_near(&times(&turned(u, m, k), u, k, m, k), &unit(k), units);
        assert_near(&times(vt, &turned(vt, k, n), k, n, k), &unit(k), units);
    }
}

#[test]
fn powers_of_two_change_no_eigenvector() {
    let a = matrix(N, N);
    let b = turned(&a, N, N);
    let symmetric: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    for n in [2, N] {
        let cells = |scale: f64| (0..n * n).map(move |at| (at / n * N + at % n, scale));
        let solved = |scale| {
            let cells = cells(scale).map(|(at, scale)| scale * symmetric[at]);
            let x = square(&cells.collect::<Vec<f64>>());
            let shape = [n as u64; 2];
            all("Nx.Block.LinAlg.Eigh", &x, &[&shape[1..], &shape], &[])
        };
        let own = solved(1.0);
        for scale in [-1000, -510, 510, 1000].map(|power| 2f64.powi(power)) {
            let scaled = solved(scale);
            let values: Vec<f64> = own[0].iter().map(|x| scale * x).collect();
            assert_eq!(scaled, [values, own[1].clone()], "{n} {scale:e}");
        }
    }
}

#[test]
fn what_is_not_finite_ends() {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut a = matrix(5, 5);
        a[10] = bad;
        let shapes: [&[u64]; 3] = [&[5, 5], &[5], &[5, 5]];
        let x = square(&a);
        let results = [
            all("Nx.Block.LinAlg.SVD", &x, &shapes, &[]),
            all("Nx.Block.LinAlg.Eigh", &x, &shapes[1..], &[]),
        ];
        assert!(results.iter().flatten().flatten().all(|x| x.is_nan()));
        all("Nx.Block.LinAlg.LU", &x, &[&[5, 5][..]; 3], &[]);
        all(
            "Nx.Block.LinAlg.QR",
            &x,
            &[&[5, 5][..]; 2],
            &[Attr::text("mode", "reduced")],
        );
    }
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let why = |op: &str, inputs: &[&Tensor], shape: &[u64]| {
        let attrs = [Attr::text("transform_a", "none")];
        bytes_of(op, inputs, DType::F32, shape, &attrs)
            .unwrap_err()
            .to_string()
    };
    let wide = tensor(&[2, 3], &[1f32; 6]);
    let square = tensor(&[2, 2], &[1f32; 4]);
    let message = why("Nx.Block.LinAlg.Cholesky", &[&wide], &[2, 3]);
    assert!(
        message.contains("Cholesky of (f32[2, 3])") && message.contains("expected square"),
        "{message}"
    );
    let message = why(
        "triangular_solve",
        &[&square, &tensor(&[3], &[1f32; 3])],
        &[3],
    );
    assert!(
        message.contains("b does not fit the matrices: f32[3]"),
        "{message}"
    );
    let message = why(
        "Nx.Block.LinAlg.Determinant",
        &[&tensor(&[3], &[1f32; 3])],
        &[],
    );
    assert!(message.contains("expected a matrix"), "{message}");
    let message = why("Nx.Block.LinAlg.Solve", &[&square, &square], &[2]);
    assert!(message.contains("of shape [2, 2], not [2]"), "{message}");
}
