//! Orthogonal factors of matrices that are hard on them: what the results have to satisfy, whoever found them.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::session::Session;
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{Attr, Request, values::Rng};
use std::sync::Arc;

/// A kind of matrix: its element at row i and column j of n, given random numbers of that row and column, and of all.
type Element = fn(usize, usize, usize, &[f64]) -> f64;

fn same(i: usize, j: usize) -> f64 {
    f64::from(u8::from(i == j))
}

fn random(i: usize, j: usize, n: usize, r: &[f64]) -> f64 {
    r[i * n + j]
}

fn graded(place: usize, n: usize) -> f64 {
    10f64.powf(-12.0 * place as f64 / n as f64)
}

const KINDS: &[(&str, Element)] = &[
    ("random", random),
    ("ones", |_, _, _, _| 1.0),
    ("zeros", |_, _, _, _| 0.0),
    ("unit", |i, j, _, _| same(i, j)),
    ("diagonal", |i, j, _, r| same(i, j) * r[i]),
    ("multiples", |i, j, _, _| same(i, j) * (i % 7) as f64),
    ("one block of ones", |i, j, n, _| {
        if i.max(j) < n / 2 { 1.0 } else { same(i, j) }
    }),
    ("clustered", |i, j, n, r| {
        same(i, j) * (1.0 + (i % 2) as f64) + 1e-9 * r[i * n + j]
    }),
    ("of rank 2", |i, j, n, r| r[i] * r[j] + r[n + i] * r[n + j]),
    ("graded", |i, j, n, r| r[i * n + j] * graded(i.max(j), n)),
    ("graded upwards", |i, j, n, r| {
        r[i * n + j] * graded(n - 1 - i.min(j), n)
    }),
    ("second differences", |i, j, _, _| match i.abs_diff(j) {
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    }),
    ("Wilkinson's", |i, j, n, _| match i.abs_diff(j) {
        0 => i.abs_diff(n / 2) as f64,
        1 => 1.0,
        _ => 0.0,
    }),
    ("random and short", |i, j, n, r| {
        r[i * n + j] * if j % 3 == 1 { 1e-8 } else { 1.0 }
    }),
    ("random", random),
    ("of rank 2", |i, j, n, r| r[i] * r[j] + r[n + i] * r[n + j]),
    ("graded", |i, j, n, r| r[i * n + j] * graded(i.max(j), n)),
    ("random", random),
    ("of rank 2", |i, j, n, r| r[i] * r[j] + r[n + i] * r[n + j]),
    ("graded", |i, j, n, r| r[i * n + j] * graded(i.max(j), n)),
];

/// Kinds at the end that are huge, and before them so many that are tiny: their squares are no numbers.
const SCALED: usize = 3;

fn scale(place: usize, dtype: DType) -> f64 {
    let power = if dtype == DType::F64 { 200 } else { 30 };
    match KINDS.len() - place {
        1..=SCALED => 10f64.powi(power),
        place if place <= 2 * SCALED => 10f64.powi(-power),
        _ => 1.0,
    }
}

/// The batch of all kinds, of m rows and n columns each, in the precision of `dtype`.
fn matrices(m: usize, n: usize, symmetric: bool, dtype: DType) -> Vec<Vec<f64>> {
    let wide = m.max(n).max(2);
    let mut rng = Rng(7);
    let numbers: Vec<f64> = (0..wide * wide).map(|_| rng.between(-1.0, 1.0)).collect();
    let of = |(place, (_, element)): (usize, &(&str, Element))| {
        let scale = scale(place, dtype);
        let cells = (0..m * n).map(|at| {
            let (i, j) = (at / n, at % n);
            let (i, j) = match symmetric {
                true => (i.max(j), i.min(j)),
                false => (i, j),
            };
            scale * element(i, j, wide, &numbers)
        });
        match dtype {
            DType::F64 => cells.collect(),
            _ => cells.map(|x| f64::from(x as f32)).collect(),
        }
    };
    KINDS.iter().enumerate().map(of).collect()
}

fn run(
    runtime: &Runtime,
    op: &'static str,
    dtype: DType,
    shape: [usize; 2],
    matrices: &[Vec<f64>],
    results: &[&[usize]],
    attrs: &[Attr],
) -> Vec<Vec<f64>> {
    let dims = |own: &[usize]| -> Vec<u64> {
        let all = [&[matrices.len()], own].concat();
        all.iter().map(|extent| *extent as u64).collect()
    };
    let bytes = |x: &f64| match dtype {
        DType::F64 => x.to_le_bytes().to_vec(),
        _ => (*x as f32).to_le_bytes().to_vec(),
    };
    let bytes: Vec<u8> = matrices.iter().flatten().flat_map(bytes).collect();
    let a = runtime.upload(dtype, &dims(&shape), &bytes).unwrap();
    let outputs: Vec<_> = results.iter().map(|own| (dtype, dims(own))).collect();
    let request = Request::new(op, vec![&a], outputs, attrs.to_vec());
    let ran = runtime.run_reported(&request).unwrap();
    assert_eq!(
        ran.served_by.to_string(),
        format!("linalg/{}", op.rsplit('.').next().unwrap().to_lowercase())
    );
    let floats = |bytes: Vec<u8>| -> Vec<f64> {
        match dtype {
            DType::F64 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|x| f64::from_le_bytes(*x))
                .collect(),
            _ => bytes
                .as_chunks()
                .0
                .iter()
                .map(|x| f32::from_le_bytes(*x).into())
                .collect(),
        }
    };
    let results = ran.outputs.iter();
    results
        .map(|x| floats(runtime.download(x, None).unwrap()))
        .collect()
}

/// The largest difference between a product of `depth` terms and what is expected of it.
fn worst(
    [rows, columns, depth]: [usize; 3],
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
    expected: impl Fn(usize, usize) -> f64,
) -> f64 {
    let mut worst = 0f64;
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        let sum: f64 = (0..depth).map(|k| a(i, k) * b(k, j)).sum();
        let apart = (sum - expected(i, j)).abs();
        worst = if apart.is_nan() {
            f64::INFINITY
        } else {
            worst.max(apart)
        };
    }
    worst
}

/// How far columns are from orthogonal ones of length 1; the steps are from a row to the next, and from a column.
fn gram(x: &[f64], [rows, columns]: [usize; 2], [down, across]: [usize; 2]) -> f64 {
    let at = |i: usize, j: usize| x[i * down + j * across];
    worst([columns, columns, rows], |i, k| at(k, i), at, same)
}

fn unit(dtype: DType, n: usize) -> f64 {
    let epsilon = match dtype {
        DType::F64 => f64::EPSILON,
        _ => f32::EPSILON.into(),
    };
    10.0 * n as f64 * epsilon
}

/// What is of norm 1 beside the largest element, at least: errors are those of the norm.
fn largest(a: &[f64]) -> f64 {
    a.iter().fold(1e-300, |most, x| x.abs().max(most))
}

fn runtime() -> Arc<Runtime> {
    let session = Session::of_test("linalg").unwrap();
    session.runtime().unwrap()
}

#[test]
fn eigenvectors_are_orthogonal_and_give_their_matrix_back() {
    let runtime = runtime();
    for (n, dtype) in [
        (77, DType::F32),
        (77, DType::F64),
        (40, DType::F32),
        (133, DType::F64),
        (200, DType::F32),
        (1, DType::F32),
        (2, DType::F64),
        (8, DType::F64),
        (24, DType::F32),
    ] {
        let all = matrices(n, n, true, dtype);
        let op = "Nx.Block.LinAlg.Eigh";
        let results = run(&runtime, op, dtype, [n, n], &all, &[&[n], &[n, n]], &[]);
        for (place, (a, (kind, _))) in all.iter().zip(KINDS).enumerate() {
            let values = &results[0][place * n..][..n];
            let v = &results[1][place * n * n..][..n * n];
            let residual = worst(
                [n, n, n],
                |i, k| a[i * n + k],
                |k, j| v[k * n + j],
                |i, j| v[i * n + j] * values[j],
            );
            let gram = gram(v, [n, n], [n, 1]);
            let bound = unit(dtype, n);
            assert!(
                residual <= bound * largest(a),
                "{kind} {n} {dtype:?}: {residual:e}"
            );
            assert!(gram <= bound, "{kind} {n} {dtype:?}: {gram:e}");
            assert!(
                values.is_sorted_by(|x, y| x.abs() >= y.abs()),
                "{kind} {n} {dtype:?}: {values:?}"
            );
            let is_small = n <= 32;
            assert!(
                is_small || v[..n].iter().all(|x| *x >= 0.0),
                "{kind} {n} {dtype:?}"
            );
        }
    }
}

#[test]
fn singular_vectors_are_orthogonal_and_give_their_matrix_back() {
    let runtime = runtime();
    for (m, n, dtype) in [
        (90, 77, DType::F32),
        (77, 90, DType::F32),
        (70, 70, DType::F64),
        (45, 50, DType::F32),
        (200, 20, DType::F64),
        (20, 200, DType::F32),
        (200, 70, DType::F64),
        (1, 1, DType::F32),
        (3, 2, DType::F32),
        (2, 3, DType::F64),
        (12, 12, DType::F32),
        (9, 17, DType::F64),
        (30, 24, DType::F64),
    ] {
        for full in [true, false] {
            check_svd(&runtime, m, n, dtype, full);
        }
    }
}

fn check_svd(runtime: &Runtime, m: usize, n: usize, dtype: DType, full: bool) {
    let all = matrices(m, n, false, dtype);
    let k = m.min(n);
    let [wide, high] = if full { [m, n] } else { [k; 2] };
    let shapes: [&[usize]; 3] = [&[m, wide], &[k], &[high, n]];
    let attrs = [Attr::ints("full_matrices?", [i64::from(full)])];
    let op = "Nx.Block.LinAlg.SVD";
    let results = run(runtime, op, dtype, [m, n], &all, &shapes, &attrs);
    for (place, (a, (kind, _))) in all.iter().zip(KINDS).enumerate() {
        let u = &results[0][place * m * wide..][..m * wide];
        let s = &results[1][place * k..][..k];
        let vt = &results[2][place * high * n..][..high * n];
        let what = format!("{kind} {place} {m} {n} {dtype:?} {full}");
        let residual = worst(
            [m, n, k],
            |i, at| u[i * wide + at] * s[at],
            |at, j| vt[at * n + j],
            |i, j| a[i * n + j],
        );
        let left = gram(u, [m, wide], [wide, 1]);
        let right = gram(vt, [n, high], [1, n]);
        let bound = unit(dtype, m.max(n));
        assert!(residual <= bound * largest(a), "{what}: {residual:e}");
        assert!(left.max(right) <= bound, "{what}: {left:e} {right:e}");
        assert!(
            s.is_sorted_by(|x, y| x >= y) && s[k - 1] >= 0.0,
            "{what}: {s:?}"
        );
    }
}

#[test]
fn singular_values_that_are_known_have_their_vectors() {
    let runtime = runtime();
    let attrs = [Attr::ints("full_matrices?", [0])];
    // What is 0 beside the largest within rounding is 0, and has a vector all the same.
    for (dtype, values) in [
        (DType::F32, [1.0, f64::from(1e-8f32)]),
        (DType::F32, [1.0, f64::from(1e-6f32)]),
        (DType::F32, [f64::from(1e30f32), f64::from(1e24f32)]),
        (DType::F32, [f64::from(1e-30f32), f64::from(1e-36f32)]),
        (DType::F64, [1.0, 1e-17]),
        (DType::F64, [1.0, 1e-15]),
        (DType::F64, [1e300, 1e285]),
        (DType::F64, [1e-280, 1e-294]),
    ] {
        let a = vec![vec![values[0], 0.0, 0.0, values[1]]];
        let shapes: [&[usize]; 3] = [&[2, 2], &[2], &[2, 2]];
        let op = "Nx.Block.LinAlg.SVD";
        let results = run(&runtime, op, dtype, [2, 2], &a, &shapes, &attrs);
        assert_eq!(results[0], [1.0, 0.0, 0.0, 1.0], "{values:?}");
        let is_none = values[1] <= 2.0 * dtype.epsilon() * values[0];
        let least = if is_none { 0.0 } else { values[1] };
        assert_eq!(results[1], [values[0], least]);
        assert_eq!(results[2], [1.0, 0.0, 0.0, 1.0], "{values:?}");
    }
}

#[test]
fn qr_is_orthogonal_and_gives_its_matrix_back_at_every_scale() {
    let runtime = runtime();
    for (m, n, dtype) in [
        (1, 1, DType::F32),
        (2, 2, DType::F32),
        (2, 2, DType::F64),
        (7, 5, DType::F32),
        (5, 7, DType::F64),
        (40, 40, DType::F32),
        (70, 33, DType::F64),
        (2051, 4, DType::F32),
    ] {
        let scales = match dtype {
            DType::F64 => [1e-290, 1e-200, 1e-150, 1.0, 1e155, 1e200, 1e290],
            _ => [1e-34, 1e-30, 1e-18, 1.0, 1e19, 1e30, 1e35],
        };
        // Scaled ones come with these.
        let all = matrices(m, n, false, dtype);
        let all = &all[..KINDS.len() - 2 * SCALED];
        for scale in scales {
            let scaled = |a: &Vec<f64>| a.iter().map(|x| x * scale).collect();
            let all: Vec<Vec<f64>> = all.iter().map(scaled).collect();
            check_qr(&runtime, [m, n], dtype, &all, scale);
        }
    }
}

fn check_qr(runtime: &Runtime, [m, n]: [usize; 2], dtype: DType, all: &[Vec<f64>], scale: f64) {
    let k = m.min(n);
    let shapes: [&[usize]; 2] = [&[m, k], &[k, n]];
    let attrs = [Attr::text("mode", "reduced"), Attr::float("eps", 1e-10)];
    let op = "Nx.Block.LinAlg.QR";
    let results = run(runtime, op, dtype, [m, n], all, &shapes, &attrs);
    for (place, (a, (kind, _))) in all.iter().zip(KINDS).enumerate() {
        let q = &results[0][place * m * k..][..m * k];
        let r = &results[1][place * k * n..][..k * n];
        let residual = worst(
            [m, n, k],
            |i, at| q[i * k + at],
            |at, j| r[at * n + j],
            |i, j| a[i * n + j],
        );
        let gram = gram(q, [m, k], [k, 1]);
        let bound = unit(dtype, m.max(n));
        let what = format!("{kind} {m} {n} {dtype:?} {scale:e}");
        // Numbers below the normal ones may count as 0.
        let lost = match dtype {
            DType::F64 => f64::MIN_POSITIVE,
            _ => f32::MIN_POSITIVE.into(),
        };
        let bound_of_all = bound * largest(a) + m as f64 * lost;
        assert!(residual <= bound_of_all, "{what}: {residual:e}");
        assert!(gram <= bound, "{what}: {gram:e}");
    }
}

#[test]
fn what_is_not_finite_gives_nan_and_leaves_others_alone() {
    let runtime = runtime();
    for (bad, n) in [
        (f64::NAN, 70),
        (f64::INFINITY, 70),
        (f64::NEG_INFINITY, 100),
    ] {
        let mut all = matrices(n, n, true, DType::F32);
        all.truncate(2);
        all[1][3 * n + 1] = bad;
        let square: &[usize] = &[n, n];
        for (op, shapes) in [
            ("Nx.Block.LinAlg.Eigh", vec![&[n][..], square]),
            ("Nx.Block.LinAlg.SVD", vec![square, &[n], square]),
        ] {
            let full = [Attr::ints("full_matrices?", [1])];
            let attrs = &full[..usize::from(shapes.len() == 3)];
            for result in run(&runtime, op, DType::F32, [n, n], &all, &shapes, attrs) {
                let (good, bad) = result.split_at(result.len() / 2);
                assert!(good.iter().all(|x| x.is_finite()), "{op}");
                assert!(bad.iter().all(|x| x.is_nan()), "{op}");
            }
        }
    }
}
