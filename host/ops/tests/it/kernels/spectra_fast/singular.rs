//! Singular values and vectors.

use super::{super::tensor, SIZES, apart, assert_orthogonal, numbers, random, svd, times, turned};
use nx_vulkan_abi::dtype::DType;

/// Matrices that are hard in one way or another.
fn matrices(m: usize, n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let cells = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..m * n).map(|at| f(at / n, at % n)).collect()
    };
    let any = random(m * n, (m + n) as u64);
    let any = |i: usize, j: usize| any[i * n + j];
    let grade = |i: usize| 10f64.powf(-20.0 * i as f64 / n as f64);
    vec![
        ("random", cells(&any)),
        ("0", cells(&|_, _| 0.0)),
        ("unit", cells(&|i, j| if i == j { 1.0 } else { 0.0 })),
        (
            "diagonal",
            cells(&|i, j| if i == j { any(i, j) } else { 0.0 }),
        ),
        ("of ones", cells(&|_, _| 1.0)),
        (
            "rank 3",
            cells(&|i, j| (0..3).map(|k| any(i, k) * any(k, j)).sum()),
        ),
        (
            "bidiagonal",
            cells(&|i, j| if i == j || i + 1 == j { 1.0 } else { 0.0 }),
        ),
        (
            "singular",
            cells(&|i, j| {
                if (i == j && i % 7 > 0) || i + 1 == j {
                    1.0
                } else {
                    0.0
                }
            }),
        ),
        (
            "nilpotent",
            cells(&|i, j| if i + 1 == j { any(i, j) } else { 0.0 }),
        ),
        ("Hilbert's", cells(&|i, j| 1.0 / (i + j + 1) as f64)),
        (
            "Toeplitz's",
            cells(&|i, j| 0.5f64.powi(i.abs_diff(j) as i32)),
        ),
        ("graded", cells(&|i, j| any(i, j) * grade(j))),
        ("graded upwards", cells(&|i, j| any(i, j) * grade(n - j))),
        ("graded rows", cells(&|i, j| any(i, j) * grade(i))),
        (
            "clustered",
            cells(&|i, j| if i == j { 1.0 } else { 1e-15 * any(i, j) }),
        ),
        (
            "in blocks",
            cells(&|i, j| if i / 9 == j / 9 { any(i, j) } else { 0.0 }),
        ),
    ]
}

#[track_caller]
fn assert_singular(a: &[f64], [m, n]: [usize; 2], dtype: DType, full: bool, what: &str) {
    let shape = [m as u64, n as u64];
    let (x, eps) = match dtype {
        DType::F32 => {
            let a: Vec<f32> = a.iter().map(|x| *x as f32).collect();
            (tensor(&shape, &a), f64::from(f32::EPSILON))
        }
        _ => (tensor(&shape, a), f64::EPSILON),
    };
    let what = format!("{what}, {dtype}[{m}, {n}], full: {full}");
    let got = svd(&x, full, true);
    let [u, s, vt] = &got[..] else { unreachable!() };
    let k = s.len();
    let a = numbers(&x.bytes, dtype);
    assert!(s.is_sorted_by(|x, y| x >= y) && s[k - 1] >= 0.0, "{what}");
    let (wide, high) = (u.len() / m, vt.len() / n);
    let first: Vec<f64> = match m >= n {
        true => vt.iter().step_by(n).copied().collect(),
        false => u[..k].to_vec(),
    };
    assert!(first.iter().all(|x| *x >= 0.0), "{what}");
    assert_orthogonal(&turned(u, wide), m, eps, &what);
    assert_orthogonal(vt, n, eps, &what);
    let cell = |at: usize| {
        if at % wide < k {
            u[at] * s[at % wide]
        } else {
            0.0
        }
    };
    let scaled: Vec<f64> = (0..m * wide)
        .filter(|at| at % wide < high)
        .map(cell)
        .collect();
    let limit = 10.0 * m.max(n) as f64 * eps * s[0];
    let error = apart(
        &times(&scaled, &vt[..wide.min(high) * n], wide.min(high)),
        &a,
    );
    assert!(error <= limit, "{what}: {error:e} > {limit:e}");
    if m.min(n) < 48 {
        let error = apart(s, &svd(&x, full, false)[1]);
        assert!(error <= limit, "{what}: {error:e} > {limit:e}");
    }
    assert_eq!(got, svd(&x, full, true), "{what}");
}

#[test]
fn singular_vectors_are_orthogonal_and_give_their_matrix_back() {
    let squares = SIZES.map(|n| [n, n]);
    let others = [
        [34, 33],
        [200, 33],
        [33, 70],
        [90, 65],
        [65, 90],
        [500, 40],
        [130, 129],
    ];
    for shape in squares.into_iter().chain(others) {
        for (what, a) in matrices(shape[0], shape[1]) {
            for (dtype, full) in [(DType::F64, false), (DType::F64, true), (DType::F32, false)] {
                // The largest squares are the same with all columns and without, and slow.
                if !full || shape[0] != shape[1] || shape[0] <= 100 {
                    assert_singular(&a, shape, dtype, full, what);
                }
            }
        }
    }
}

#[test]
fn scales_of_singular_values_do_not_matter() {
    for by in [
        2f64.powi(498),
        2f64.powi(-498),
        2f64.powi(990),
        2f64.powi(-990),
    ] {
        for (what, a) in matrices(50, 40) {
            let scaled: Vec<f64> = a.iter().map(|x| x * by).collect();
            let one = svd(&tensor(&[50, 40], &a), false, true);
            let other = svd(&tensor(&[50, 40], &scaled), false, true);
            let s: Vec<f64> = other[1].iter().map(|x| x / by).collect();
            assert!(
                apart(&s, &one[1]) <= 400.0 * f64::EPSILON * one[1][0],
                "{what}"
            );
        }
    }
}

#[test]
fn singular_values_of_first_differences_are_sines() {
    for n in SIZES {
        let cell = |at: usize| match at / n == at % n {
            true => 1.0,
            false if at / n == at % n + 1 => -1.0,
            false => 0.0,
        };
        let a: Vec<f64> = (0..(n + 1) * n).map(cell).collect();
        let step = std::f64::consts::FRAC_PI_2 / (n + 1) as f64;
        let expected: Vec<f64> = (1..=n)
            .rev()
            .map(|k| 2.0 * (k as f64 * step).sin())
            .collect();
        let s = &svd(&tensor(&[n as u64 + 1, n as u64], &a), false, true)[1];
        assert!(apart(s, &expected) <= 10.0 * n as f64 * f64::EPSILON);
    }
}
