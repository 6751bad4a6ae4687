//! Eigenvalues and eigenvectors.

use super::{
    super::{Tensor, tensor},
    SIZES, apart, assert_orthogonal, eigh, largest, numbers, random, times, turned, unit,
};
use nx_vulkan_abi::dtype::DType;

/// Symmetric matrices that are hard in one way or another.
fn symmetric(n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let cells = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..n * n).map(|at| f(at / n, at % n)).collect()
    };
    let any = random(n * n, n as u64);
    let any = |i: usize, j: usize| any[i.max(j) * n + i.min(j)];
    let band = |i: usize, j: usize, diagonal: f64| match i.abs_diff(j) {
        0 => diagonal,
        1 => 1.0,
        _ => 0.0,
    };
    let grade = |i: usize| 10f64.powf(-20.0 * i as f64 / n as f64);
    let distance = |i: usize| (n as f64 - 1.0) / 2.0 - i as f64;
    vec![
        ("random", cells(&any)),
        ("0", cells(&|_, _| 0.0)),
        ("unit", unit(n)),
        (
            "diagonal",
            cells(&|i, j| if i == j { any(i, j) } else { 0.0 }),
        ),
        ("of ones", cells(&|_, _| 1.0)),
        (
            "rank 3",
            cells(&|i, j| (0..3).map(|k| any(i, k) * any(j, k)).sum()),
        ),
        ("second differences", cells(&|i, j| band(i, j, -2.0))),
        ("no diagonal", cells(&|i, j| band(i, j, 0.0))),
        ("Wilkinson's", cells(&|i, j| band(i, j, distance(i).abs()))),
        ("Hilbert's", cells(&|i, j| 1.0 / (i + j + 1) as f64)),
        (
            "Toeplitz's",
            cells(&|i, j| 0.5f64.powi(i.abs_diff(j) as i32)),
        ),
        ("graded", cells(&|i, j| any(i, j) * grade(i) * grade(j))),
        (
            "graded upwards",
            cells(&|i, j| any(i, j) * grade(n - i) * grade(n - j)),
        ),
        (
            "clustered",
            cells(&|i, j| band(i, j, 1e8) + 1e-8 * any(i, j)),
        ),
        (
            "in blocks",
            cells(&|i, j| if i / 9 == j / 9 { any(i, j) } else { 0.0 }),
        ),
    ]
}

#[track_caller]
fn assert_eigen(a: &[f64], dtype: DType, what: &str) {
    let n = (a.len() as f64).sqrt() as usize;
    let shape = [n as u64; 2];
    let (x, eps) = match dtype {
        DType::F32 => {
            let a: Vec<f32> = a.iter().map(|x| *x as f32).collect();
            (tensor(&shape, &a), f64::from(f32::EPSILON))
        }
        _ => (tensor(&shape, a), f64::EPSILON),
    };
    let what = format!("{what}, {dtype}[{n}]");
    let got = eigh(&x, true);
    let [values, vectors] = &got[..] else {
        unreachable!()
    };
    let a = numbers(&x.bytes, dtype);
    assert!(values.is_sorted_by(|x, y| x.abs() >= y.abs()), "{what}");
    assert!(vectors[..n].iter().all(|x| *x >= 0.0), "{what}");
    assert_orthogonal(&turned(vectors, n), n, eps, &what);
    let scaled: Vec<f64> = (0..n * n).map(|at| vectors[at] * values[at % n]).collect();
    let limit = 10.0 * n as f64 * eps * values[0].abs();
    let error = apart(&times(&a, vectors, n), &scaled);
    assert!(error <= limit, "{what}: {error:e} > {limit:e}");
    if n < 66 {
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let exact = sorted(eigh(&x, false).swap_remove(0));
        let error = apart(&sorted(values.clone()), &exact);
        assert!(error <= limit, "{what}: {error:e} > {limit:e}");
    }
    assert_eq!(got, eigh(&x, true), "{what}");
}

#[test]
fn eigenvectors_are_orthogonal_and_give_their_matrix_back() {
    for n in SIZES {
        for (what, a) in symmetric(n) {
            assert_eigen(&a, DType::F64, what);
            assert_eigen(&a, DType::F32, what);
        }
    }
}

#[test]
fn scales_do_not_matter() {
    for by in [1e150, 1e-150, 1e300, 1e-300] {
        for (what, a) in symmetric(40) {
            let a: Vec<f64> = a.iter().map(|x| x * by / largest(&a).max(1.0)).collect();
            let x = tensor(&[40, 40], &a);
            let [values, vectors] = &eigh(&x, true)[..] else {
                unreachable!()
            };
            assert_orthogonal(&turned(vectors, 40), 40, f64::EPSILON, what);
            let scaled = |at: usize| vectors[at] * (values[at % 40] / by);
            let scaled: Vec<f64> = (0..1600).map(scaled).collect();
            let unscaled: Vec<f64> = a.iter().map(|x| x / by).collect();
            let error = apart(&times(&unscaled, vectors, 40), &scaled);
            assert!(
                error <= 400.0 * f64::EPSILON * values[0].abs() / by,
                "{what}: {error:e}"
            );
        }
    }
}

#[test]
fn eigenvalues_of_second_differences_are_cosines() {
    for n in SIZES {
        let cell = |at: usize| match (at / n).abs_diff(at % n) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let a: Vec<f64> = (0..n * n).map(cell).collect();
        let step = std::f64::consts::PI / (n + 1) as f64;
        let expected: Vec<f64> = (1..=n)
            .rev()
            .map(|k| 2.0 - 2.0 * (k as f64 * step).cos())
            .collect();
        let values = &eigh(&tensor(&[n as u64; 2], &a), true)[0];
        assert!(apart(values, &expected) <= 10.0 * n as f64 * f64::EPSILON);
    }
}

#[test]
fn the_lower_triangle_is_read() {
    let n = 50;
    let a = random(n * n, 5);
    let lower = |at: usize| a[(at / n).max(at % n) * n + (at / n).min(at % n)];
    let lower: Vec<f64> = (0..n * n).map(lower).collect();
    let shape = [n as u64; 2];
    assert_eq!(
        eigh(&tensor(&shape, &a), true),
        eigh(&tensor(&shape, &lower), true)
    );
}

#[test]
fn hermitian_matrices_have_real_eigenvalues_and_unitary_vectors() {
    for n in [33, 47, 64, 65, 100] {
        for sparse in [false, true] {
            assert_hermitian(n, sparse);
        }
    }
}

fn assert_hermitian(n: usize, sparse: bool) {
    let parts = [random(n * n, 11), random(n * n, 12)];
    let cell = |i: usize, j: usize| match (i.cmp(&j), sparse && !(i + j).is_multiple_of(5)) {
        (std::cmp::Ordering::Equal, _) => [parts[0][i * n + i], 0.0],
        (_, true) => [0.0; 2],
        (std::cmp::Ordering::Greater, _) => [parts[0][i * n + j], parts[1][i * n + j]],
        (std::cmp::Ordering::Less, _) => [parts[0][j * n + i], -parts[1][j * n + i]],
    };
    let a: Vec<f64> = (0..n * n).flat_map(|at| cell(at / n, at % n)).collect();
    let x = Tensor {
        dtype: DType::C128,
        ..tensor(&[n as u64; 2], &a)
    };
    let [values, vectors] = &eigh(&x, true)[..] else {
        unreachable!()
    };
    assert!(values.iter().skip(1).step_by(2).all(|x| *x == 0.0));
    let values: Vec<f64> = values.iter().step_by(2).copied().collect();
    let exact: Vec<f64> = eigh(&x, false)[0].iter().step_by(2).copied().collect();
    let limit = 10.0 * n as f64 * f64::EPSILON;
    assert!(apart(&values, &exact) <= limit * exact[0].abs(), "{n}");
    let first = vectors[..2 * n].chunks(2);
    assert!(first.clone().all(|x| x[0] >= 0.0 && x[1].abs() <= limit));
    // As real matrices of twice as many rows: [re, im; -im, re].
    let real = |a: &[f64]| -> Vec<f64> {
        let rows = a.chunks(2 * n);
        let turned = |row: &[f64]| {
            row.chunks(2)
                .flat_map(|x| [-x[1], x[0]])
                .collect::<Vec<_>>()
        };
        rows.flat_map(|row| [row.to_vec(), turned(row)].concat())
            .collect()
    };
    let (a, v) = (real(&a), real(vectors));
    assert_orthogonal(&turned(&v, 2 * n), 2 * n, f64::EPSILON, "unitary");
    let scaled: Vec<f64> = (0..v.len())
        .map(|at| v[at] * values[at % (2 * n) / 2])
        .collect();
    assert!(
        apart(&times(&a, &v, 2 * n), &scaled) <= limit * exact[0].abs(),
        "{n}"
    );
}
