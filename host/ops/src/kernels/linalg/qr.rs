//! Householder's QR, in f64. A matrix is its rows one after another.

use super::field::Field;

/// The factors `q` of `wide` columns and `r` of as many rows. The diagonal of a real `r` is not negative, but for what keeps
/// its sign: elements of which hardly anything is below, whose squares sum up to less than `eps`. That of a complex one points
/// away from what it was.
pub(super) fn qr<T: Field>(
    mut a: Vec<T>,
    m: usize,
    n: usize,
    wide: usize,
    eps: f64,
) -> [Vec<T>; 2] {
    let taus = reflect(&mut a, m, n, eps);
    let mut q = vec![T::ZERO; m * wide];
    (0..wide).for_each(|j| q[j * wide + j] = T::ONE);
    for (k, &tau) in taus.iter().enumerate().rev() {
        let column = |i: usize| a[i * n + k];
        apply(&column, k, tau, &mut q, m, wide, 0);
    }
    let r = (0..wide * n).map(|at| match at / n <= at % n {
        true => a[at],
        false => T::ZERO,
    });
    [q, r.collect()]
}

/// Replaces `a` by `r`, with the reflectors below its diagonal; gives the factor of each, 0 where there is nothing to reflect.
fn reflect<T: Field>(a: &mut [T], m: usize, n: usize, eps: f64) -> Vec<f64> {
    let mut taus = Vec::new();
    for k in 0..m.min(n) {
        let tail: f64 = (k + 1..m).map(|i| a[i * n + k].square()).sum();
        let is_last = m == n && k + 1 == n;
        let Some((head, to)) = mirror(a[k * n + k], tail, eps, is_last) else {
            taus.push(0.0);
            continue;
        };
        let tau = 2.0 * head.square() / (tail + head.square());
        (k + 1..m).for_each(|i| a[i * n + k] = a[i * n + k] / head);
        a[k * n + k] = to;
        let column: Vec<T> = (0..m).map(|i| a[i * n + k]).collect();
        apply(&|i| column[i], k, tau, a, m, n, k + 1);
        taus.push(tau);
    }
    taus
}

/// The first element of a reflector, and what it makes of `x`, with squares below that sum up to `tail`; nothing where there is
/// nothing to reflect.
pub(super) fn mirror<T: Field>(x: T, tail: f64, eps: f64, is_last: bool) -> Option<(T, T)> {
    let norm = (x.square() + tail).sqrt();
    if T::IS_COMPLEX {
        let reach = x.magnitude() + norm;
        let phase = x.phase();
        return (norm != 0.0 && !is_last).then(|| (phase.scaled(reach), -phase.scaled(norm)));
    }
    let x = x.real();
    let to = if tail < eps && x < 0.0 { -norm } else { norm };
    let head = if x * to > 0.0 {
        -tail / (x + to)
    } else {
        x - to
    };
    (tail != 0.0 && head != 0.0).then(|| (T::of(head), T::of(to)))
}

/// Reflects columns from `first` on; element `k` of the reflector is 1.
fn apply<T: Field>(
    v: &dyn Fn(usize) -> T,
    k: usize,
    tau: f64,
    a: &mut [T],
    m: usize,
    n: usize,
    first: usize,
) {
    if tau == 0.0 {
        return;
    }
    for j in first..n {
        let below = T::sum((k + 1..m).map(|i| v(i).conjugate() * a[i * n + j]));
        let share = (a[k * n + j] + below).scaled(tau);
        a[k * n + j] = a[k * n + j] - share;
        (k + 1..m).for_each(|i| a[i * n + j] = a[i * n + j] - share * v(i));
    }
}
