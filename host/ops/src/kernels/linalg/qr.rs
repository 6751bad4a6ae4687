//! Householder's QR, in f64. A matrix is its rows one after another.

/// The factors `q` of `wide` columns and `r` of as many rows. The diagonal of `r` is not negative, but for what keeps its sign:
/// elements of which hardly anything is below, whose squares sum up to less than `eps`.
pub(super) fn qr(mut a: Vec<f64>, m: usize, n: usize, wide: usize, eps: f64) -> [Vec<f64>; 2] {
    let taus = reflect(&mut a, m, n, eps);
    let mut q = vec![0.0; m * wide];
    (0..wide).for_each(|j| q[j * wide + j] = 1.0);
    for (k, &tau) in taus.iter().enumerate().rev() {
        let column = |i: usize| a[i * n + k];
        apply(&column, k, tau, &mut q, m, wide, 0);
    }
    let r = (0..wide * n).map(|at| match at / n <= at % n {
        true => a[at],
        false => 0.0,
    });
    [q, r.collect()]
}

/// Replaces `a` by `r`, with the reflectors below its diagonal; gives the factor of each, 0 where there is nothing to reflect.
fn reflect(a: &mut [f64], m: usize, n: usize, eps: f64) -> Vec<f64> {
    let mut taus = Vec::new();
    for k in 0..m.min(n) {
        let tail: f64 = (k + 1..m).map(|i| a[i * n + k] * a[i * n + k]).sum();
        let x = a[k * n + k];
        let norm = (x * x + tail).sqrt();
        let to = if tail < eps && x < 0.0 { -norm } else { norm };
        let head = if x * to > 0.0 {
            -tail / (x + to)
        } else {
            x - to
        };
        if tail == 0.0 || head == 0.0 {
            taus.push(0.0);
            continue;
        }
        let tau = 2.0 * head * head / (tail + head * head);
        (k + 1..m).for_each(|i| a[i * n + k] /= head);
        a[k * n + k] = to;
        let column: Vec<f64> = (0..m).map(|i| a[i * n + k]).collect();
        apply(&|i| column[i], k, tau, a, m, n, k + 1);
        taus.push(tau);
    }
    taus
}

/// Reflects columns from `first` on; element `k` of the reflector is 1.
fn apply(
    v: &dyn Fn(usize) -> f64,
    k: usize,
    tau: f64,
    a: &mut [f64],
    m: usize,
    n: usize,
    first: usize,
) {
    if tau == 0.0 {
        return;
    }
    for j in first..n {
        let below: f64 = (k + 1..m).map(|i| v(i) * a[i * n + j]).sum();
        let share = tau * (a[k * n + j] + below);
        a[k * n + j] -= share;
        (k + 1..m).for_each(|i| a[i * n + j] -= share * v(i));
    }
}
