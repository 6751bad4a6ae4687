//! Triangles: factors of square matrices, and systems that they solve. A matrix is its rows one after another.

use super::Round;

/// What stands for a pivot of 0 in a division, as in `Nx.LinAlg.Cholesky`.
const TINY: f64 = 1.0e-10;

/// The lower triangle of Cholesky, from that of `a`.
pub(super) fn cholesky(a: Vec<f64>, n: usize, round: Round) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for j in 0..n {
        let mut pivot = 0.0;
        for i in j..n {
            let sum: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = round(a[i * n + j] - round(sum));
            if i == j {
                pivot = round(rest.sqrt());
            }
            let divisor = if pivot == 0.0 { TINY } else { pivot };
            l[i * n + j] = if i == j { pivot } else { round(rest / divisor) };
        }
    }
    l
}

/// Replaces `a` by its factors, the lower one without its diagonal of ones; gives the row of `a` that each row was.
pub(super) fn lu(a: &mut [f64], n: usize, round: Round) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    for k in 0..n {
        // NaN is no pivot.
        let key = |i: usize| {
            let x: f64 = a[i * n + k];
            if x.is_nan() { -1.0 } else { x.abs() }
        };
        let better = |best: usize, i: usize| if key(i) > key(best) { i } else { best };
        let pivot = (k..n).fold(k, better);
        if pivot != k {
            rows.swap(k, pivot);
            (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
        }
        let (top, below) = a.split_at_mut((k + 1) * n);
        let top = &top[k * n..];
        for row in below.chunks_exact_mut(n) {
            if top[k] != 0.0 {
                row[k] = round(row[k] / top[k]);
            }
            let factor = row[k];
            for (cell, above) in row[k + 1..].iter_mut().zip(&top[k + 1..]) {
                *cell = round(*cell - round(factor * above));
            }
        }
    }
    rows
}

/// The determinant, in the order of `Nx.LinAlg.determinant`.
pub(super) fn determinant(mut a: Vec<f64>, n: usize, round: Round) -> f64 {
    let product = |cells: &[usize]| cells.iter().fold(1.0, |p, &at| round(p * a[at]));
    match n {
        2 => round(product(&[0, 3]) - product(&[1, 2])),
        3 => {
            let plus = [[0, 4, 8], [1, 5, 6], [2, 3, 7]].map(|cells| product(&cells));
            let minus = [[2, 4, 6], [1, 3, 8], [0, 5, 7]].map(|cells| product(&cells));
            let sum = round(round(plus[0] + plus[1]) + plus[2]);
            minus.iter().fold(sum, |sum, term| round(sum - term))
        }
        _ => {
            let rows = lu(&mut a, n, round);
            let swaps = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            let odd = swaps.filter(|&(i, j)| rows[j] > rows[i]).count() % 2 == 1;
            let product = (0..n).fold(1.0, |p, i| round(p * a[i * n + i]));
            let zero = (0..n).any(|i| a[i * n + i] == 0.0);
            match (zero, odd) {
                (true, _) => 0.0,
                (_, true) => -product,
                (_, false) => product,
            }
        }
    }
}

/// Solves the triangle of elements `at` for the right side that begins `x`, every `step` elements; whether there is no 0 on
/// its diagonal.
pub(super) fn substitute(
    at: &dyn Fn(usize, usize) -> f64,
    n: usize,
    lower: bool,
    x: &mut [f64],
    step: usize,
) -> bool {
    let place = |k: usize| if lower { k } else { n - 1 - k };
    for k in 0..n {
        let i = place(k);
        let sum: f64 = (0..k).map(place).map(|j| at(i, j) * x[j * step]).sum();
        x[i * step] = (x[i * step] - sum) / at(i, i);
    }
    (0..n).all(|i| at(i, i) != 0.0)
}
