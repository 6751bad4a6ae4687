//! Householder's QR, in f64. A matrix is its rows one after another.

use super::{eigen::scale, field::Field};

/// Sums of squares below it are not exact.
const LEAST: f64 = 1e-292;

/// Products of larger numbers may not be finite.
const MOST: f64 = 1e300;

/// What does not count beside the square of a diagonal element.
const NEGLIGIBLE: f64 = 1.9e-34;

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
        let is_last = m == n && k + 1 == n;
        let mut column: Vec<T> = (k..m).map(|i| a[i * n + k]).collect();
        let squares = |below: &[T]| below.iter().map(|x| x.square()).sum();
        let (tau, to) = mirror(&mut column, squares, eps, is_last);
        a[k * n + k] = to;
        (k + 1..m).for_each(|i| a[i * n + k] = column[i - k]);
        apply(&|i| column[i - k], k, tau, a, m, n, k + 1);
        taus.push(tau);
    }
    taus
}

/// Makes a reflector of a column from its diagonal element on, of which `squares` sums up squares; its first element is 1, and what
/// is below is 0 where there is nothing to reflect. Gives its factor, and what becomes of the diagonal element.
pub(super) fn mirror<T: Field>(
    column: &mut [T],
    squares: impl Fn(&[T]) -> f64,
    eps: f64,
    is_last: bool,
) -> (f64, T) {
    let (mut tail, mut power) = (squares(&column[1..]), 1.0);
    let square = column[0].square();
    let is_exact = tail.max(NEGLIGIBLE * square) >= LEAST && tail + square <= MOST;
    if !is_exact {
        power = scale(column.iter().flat_map(|x| x.parts())).unwrap_or(1.0);
        column.iter_mut().for_each(|x| *x = x.scaled(power));
        tail = squares(&column[1..]);
    }
    let (first, below) = column
        .split_first_mut()
        .expect("columns have a diagonal element");
    let x = std::mem::replace(first, T::ONE);
    let Some((head, tau, to)) = plan(x, tail, eps * power * power, is_last) else {
        below.fill(T::ZERO);
        return (0.0, x.scaled(1.0 / power));
    };
    below.iter_mut().for_each(|x| *x = *x / head);
    (tau, to.scaled(1.0 / power))
}

/// What a reflector is divided by, its factor, and what it makes of `x`, with squares below that sum up to `tail`; nothing where
/// there is nothing to reflect.
fn plan<T: Field>(x: T, tail: f64, eps: f64, is_last: bool) -> Option<(T, f64, T)> {
    let norm = (x.square() + tail).sqrt();
    if T::IS_COMPLEX {
        let (size, phase) = (x.magnitude(), x.phase());
        let is_done = norm == 0.0 || is_last;
        let all = || {
            (
                phase.scaled(size + norm),
                1.0 + size / norm,
                -phase.scaled(norm),
            )
        };
        return (!is_done).then(all);
    }
    let x = x.real();
    let to = if tail < eps && x < 0.0 { -norm } else { norm };
    let is_alike = x * to > 0.0;
    let head = if is_alike { -tail / (x + to) } else { x - to };
    let is_done = tail == 0.0 || (is_alike && tail <= NEGLIGIBLE * x * x);
    (!is_done).then(|| (T::of(head), -head / to, T::of(to)))
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
