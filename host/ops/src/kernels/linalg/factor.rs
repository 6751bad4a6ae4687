//! Triangles: factors of square matrices, and systems that they solve. A matrix is its rows one after another.

use super::{Round, field::Field};

/// What stands for a pivot of 0 in a division, as in `Nx.LinAlg.Cholesky`.
pub(super) const TINY: f64 = 1.0e-10;

/// The lower triangle of Cholesky, from that of `a`, whose diagonal counts as real.
pub(super) fn cholesky<T: Field>(a: Vec<T>, n: usize, round: Round) -> Vec<T> {
    let mut l = vec![T::ZERO; n * n];
    for j in 0..n {
        let mut pivot = 0.0;
        for i in j..n {
            let sum = T::sum((0..j).map(|k| l[i * n + k] * l[j * n + k].conjugate()));
            let rest = (a[i * n + j] - sum.rounded(round)).rounded(round);
            if i == j {
                pivot = round(rest.real().sqrt());
            }
            let divisor = T::of(if pivot == 0.0 { TINY } else { pivot });
            l[i * n + j] = match i == j {
                true => T::of(pivot),
                false => (rest / divisor).rounded(round),
            };
        }
    }
    l
}

/// Replaces `a` by its factors, the lower one without its diagonal of ones; gives the row of `a` that each row was.
pub(super) fn lu<T: Field>(a: &mut [T], n: usize, round: Round) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    for k in 0..n {
        // NaN is no pivot.
        let key = |i: usize| {
            let magnitude = round(a[i * n + k].magnitude());
            if magnitude.is_nan() { -1.0 } else { magnitude }
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
            if top[k] != T::ZERO {
                row[k] = (row[k] / top[k]).rounded(round);
            }
            let factor = row[k];
            for (cell, above) in row[k + 1..].iter_mut().zip(&top[k + 1..]) {
                *cell = (*cell - (factor * *above).rounded(round)).rounded(round);
            }
        }
    }
    rows
}

/// The determinant, in the order of `Nx.LinAlg.determinant`. Products are rounded once, from f64: part of one may be more than a
/// narrower type holds, or less.
pub(super) fn determinant<T: Field>(mut a: Vec<T>, n: usize, round: Round) -> T {
    let all = |cells: &mut dyn Iterator<Item = T>| cells.fold(T::ONE, |product, x| product * x);
    let product = |cells: &[usize]| all(&mut cells.iter().map(|at| a[*at])).rounded(round);
    match n {
        2 => (product(&[0, 3]) - product(&[1, 2])).rounded(round),
        3 => {
            let plus = [[0, 4, 8], [1, 5, 6], [2, 3, 7]].map(|cells| product(&cells));
            let minus = [[2, 4, 6], [1, 3, 8], [0, 5, 7]].map(|cells| product(&cells));
            let sum = (plus[0] + plus[1]).rounded(round) + plus[2];
            let less = |sum: T, term: &T| (sum - *term).rounded(round);
            minus.iter().fold(sum.rounded(round), less)
        }
        _ => {
            let rows = lu(&mut a, n, round);
            let swaps = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            let odd = swaps.filter(|&(i, j)| rows[j] > rows[i]).count() % 2 == 1;
            let product = all(&mut (0..n).map(|i| a[i * n + i])).rounded(round);
            let zero = (0..n).any(|i| a[i * n + i] == T::ZERO);
            match (zero, odd) {
                (true, _) => T::ZERO,
                (_, true) => -product,
                (_, false) => product,
            }
        }
    }
}

/// Solves the triangle of elements `at` for the right side that begins `x`, every `step` elements; whether there is no 0 on
/// its diagonal.
pub(super) fn substitute<T: Field>(
    at: &dyn Fn(usize, usize) -> T,
    n: usize,
    lower: bool,
    x: &mut [T],
    step: usize,
) -> bool {
    let place = |k: usize| if lower { k } else { n - 1 - k };
    for k in 0..n {
        let i = place(k);
        let sum = T::sum((0..k).map(place).map(|j| at(i, j) * x[j * step]));
        x[i * step] = (x[i * step] - sum) / at(i, i);
    }
    (0..n).all(|i| at(i, i) != T::ZERO)
}
