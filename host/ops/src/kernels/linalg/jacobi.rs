//! Jacobi's rotations in the order of Brent and Luk (1985), which `Nx.LinAlg.eigh` has too: each round pairs all indices off,
//! and signs follow from the rotations. Those of large matrices do not, so that other ways to find the vectors give the same
//! ones. All in f64; a matrix is its rows one after another.

use super::{Round, eigen::scale, field::Field, lines::Line, qr::qr};

/// Sweeps at most; ten are many.
const SWEEPS: usize = 40;

/// Rows up to which signs follow from the rotations; of larger matrices a vector's first component is not negative.
pub(super) const UNSIGNED: usize = 32;

/// What counts as 0 beside 1: less than the results' precision, f32's with a margin that f64 leaves.
fn negligible(round: Round) -> f64 {
    let one = 1.0 + 2f64.powi(-50);
    if round(one) == one {
        2f64.powi(-53)
    } else {
        2f64.powi(-34)
    }
}

/// The pairs of indices below `n` in a sweep, round after round; those of other sweeps are the same.
fn pairs(n: usize) -> Vec<[usize; 2]> {
    let half = n.div_ceil(2);
    let rounds = 0..(2 * half).saturating_sub(1);
    let all = rounds.flat_map(|round| (0..half).map(move |i| pair(i, round, half)));
    all.filter(|pair| pair.iter().all(|i| *i < n)).collect()
}

/// The pair number `i` of a round, of `2 * half` indices.
fn pair(i: usize, round: usize, half: usize) -> [usize; 2] {
    let cycle = 2 * half - 1;
    let index = |slot: usize| {
        let first = (slot + cycle - round) % cycle;
        if first + 1 < half {
            first + 1
        } else {
            3 * half - 2 - first
        }
    };
    let top = if i == 0 { 0 } else { index(i - 1) };
    [top, index(cycle - 1 - i)]
}

/// Tangent, cosine and sine that make 0 of `off` between diagonal elements `top` and `bottom`.
fn rotation(top: f64, bottom: f64, off: f64) -> [f64; 3] {
    let tau = (bottom - top) / (2.0 * off);
    let root = (1.0 + tau * tau).sqrt();
    let t = 1.0 / (tau + if tau >= 0.0 { root } else { -root });
    let c = 1.0 / (1.0 + t * t).sqrt();
    [t, c, t * c]
}

/// Takes `b` times the conjugate of `s` from `a`, and adds `a` times `s` to `b`, in columns `p` and `q`.
fn rotate_columns<T: Field>(x: &mut [T], [p, q]: [usize; 2], n: usize, (c, s): (f64, T)) {
    for row in x.chunks_mut(n) {
        let (a, b) = (row[p], row[q]);
        row[p] = a.scaled(c) - b * s.conjugate();
        row[q] = a * s + b.scaled(c);
    }
}

/// The magnitude of what is beside the diagonal, and the direction of its conjugate; of a real number itself, and 1.
fn polar<T: Field>(off: T) -> (f64, T) {
    match T::IS_COMPLEX {
        true => (off.magnitude(), off.phase().conjugate()),
        false => (off.real(), T::ONE),
    }
}

fn negate(x: &mut [f64]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// Places in descending order of what they are in the results' precision; equal ones stay in order.
pub(super) fn descending(keys: &[f64], round: Round) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| round(keys[b]).total_cmp(&round(keys[a])));
    order
}

/// Eigenvalues in descending order of magnitude and eigenvectors, of the matrix whose lower triangle is that of `a`; its
/// diagonal counts as real.
pub(super) fn eigh<T: Line>(mut a: Vec<T>, n: usize, round: Round) -> [Vec<T>; 2] {
    for i in 0..n {
        a[i * n + i] = T::of(a[i * n + i].real());
        (0..i).for_each(|j| a[j * n + i] = a[i * n + j].conjugate());
    }
    let scale = scale(a.iter().flat_map(|x| x.parts())).unwrap_or(1.0);
    a.iter_mut().for_each(|x| *x = x.scaled(scale));
    let norm = a.iter().map(|x| x.square()).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return [n, n * n].map(|count| vec![T::NAN; count]);
    }
    let least = negligible(round) * norm;
    let mut v = vec![T::ZERO; n * n];
    (0..n).for_each(|i| v[i * n + i] = T::ONE);
    let pairs = pairs(n);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for &[p, q] in &pairs {
            if a[p * n + q].magnitude() <= least {
                continue;
            }
            rotated = true;
            let (top, bottom) = (a[p * n + p].real(), a[q * n + q].real());
            let (off, direction) = polar(a[p * n + q]);
            let [t, c, s] = rotation(top, bottom, off);
            let s = direction.scaled(s);
            T::rotate(&mut a, [p, q], n, (c, s));
            rotate_columns(&mut a, [p, q], n, (c, s.conjugate()));
            T::rotate(&mut v, [p, q], n, (c, s));
            a[p * n + p] = T::of(top - t * off);
            a[q * n + q] = T::of(bottom + t * off);
            a[p * n + q] = T::ZERO;
            a[q * n + p] = T::ZERO;
        }
        if !rotated {
            break;
        }
    }
    for row in v.chunks_mut(n).filter(|_| n > UNSIGNED) {
        let phase = row[0].phase().conjugate();
        row.iter_mut().for_each(|x| *x = *x * phase);
    }
    let magnitudes: Vec<f64> = (0..n).map(|i| a[i * n + i].magnitude()).collect();
    let order = descending(&magnitudes, round);
    let values = order.iter().map(|i| a[i * n + i].scaled(1.0 / scale));
    let vectors = (0..n * n).map(|at| v[order[at % n] * n + at / n].conjugate());
    [values.collect(), vectors.collect()]
}

/// Singular values in descending order, of which those that are 0 beside the first one within the results' rounding are 0.
pub(super) fn values(mut s: Vec<f64>, round: Round) -> Vec<f64> {
    let precision = match round(1.0 + f64::EPSILON) > 1.0 {
        true => f64::EPSILON,
        false => f32::EPSILON.into(),
    };
    let least = s.len() as f64 * precision * s.first().copied().unwrap_or(0.0);
    s.iter_mut().filter(|x| **x <= least).for_each(|x| *x = 0.0);
    s
}

/// The factors `u`, `s` and `vᵀ` of `a`, with `m >= n`; all columns of `u` with `full`, else n.
pub(super) fn svd(a: Vec<f64>, m: usize, n: usize, full: bool, round: Round) -> [Vec<f64>; 3] {
    let wide = if full { m } else { n };
    let scale = scale(a.iter().copied()).unwrap_or(1.0);
    // Columns one after another.
    let mut a: Vec<f64> = (0..n * m)
        .map(|at| a[at % m * n + at / m] * scale)
        .collect();
    let norm = a.iter().map(|x| x * x).sum::<f64>();
    if !norm.is_finite() {
        return [m * wide, n, n * n].map(|count| vec![f64::NAN; count]);
    }
    let mut v = vec![0.0; n * n];
    (0..n).for_each(|i| v[i * n + i] = 1.0);
    orthogonalize(&mut a, &mut v, m, n, norm, round);
    for j in (0..n).filter(|_| n > UNSIGNED) {
        if v[j * n] < 0.0 {
            negate(&mut v[j * n..(j + 1) * n]);
            negate(&mut a[j * m..(j + 1) * m]);
        }
    }
    let column = |j: usize| &a[j * m..(j + 1) * m];
    let length = |j: usize| column(j).iter().map(|x| x * x).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..n).map(length).collect();
    let order = descending(&lengths, round);
    let s = values(order.iter().map(|&j| lengths[j] / scale).collect(), round);
    let vt = (0..n * n).map(|at| v[order[at / n] * n + at % n]).collect();
    let sorted = |at: usize| column(order[at % n])[at / n];
    // Rotations leave out what is negligible beside the norm.
    let least = 2.0 * negligible(round) * norm.sqrt();
    let u = if full || lengths.iter().any(|length| *length <= least) {
        let [mut q, r] = qr((0..m * n).map(sorted).collect(), m, n, wide, 0.0);
        for j in (0..n).filter(|j| r[j * n + j] < 0.0) {
            (0..m).for_each(|i| q[i * wide + j] = 0.0 - q[i * wide + j]);
        }
        q
    } else {
        let scaled = |at: usize| sorted(at) / lengths[order[at % n]];
        (0..m * n).map(scaled).collect()
    };
    [u, s, vt]
}

/// Rotates the columns `a`, and with them `v`, until they are orthogonal.
fn orthogonalize(a: &mut [f64], v: &mut [f64], m: usize, n: usize, norm: f64, round: Round) {
    let small = negligible(round);
    let (least, angle) = (small * small * norm, small * 4.0);
    let pairs = pairs(n);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for &[p, q] in &pairs {
            let columns = a[p * m..(p + 1) * m].iter().zip(&a[q * m..(q + 1) * m]);
            let zero = -0.0f64;
            let [top, bottom, off] = columns.fold([zero; 3], |[top, bottom, off], (x, y)| {
                [top + x * x, bottom + y * y, off + x * y]
            });
            if top.min(bottom) <= least || off.abs() <= angle * top.sqrt() * bottom.sqrt() {
                continue;
            }
            rotated = true;
            let [_, c, s] = rotation(top, bottom, off);
            f64::rotate(a, [p, q], m, (c, s));
            f64::rotate(v, [p, q], n, (c, s));
        }
        if !rotated {
            break;
        }
    }
}
