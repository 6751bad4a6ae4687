//! Factors of a length, and its roots of unity.

use super::C;

/// Factors whose product is `n`: fours first, then primes from the least on.
pub(super) fn factors(mut n: usize) -> Vec<usize> {
    let mut all = Vec::new();
    let mut factor = 4;
    while n > 1 {
        while n.is_multiple_of(factor) {
            all.push(factor);
            n /= factor;
        }
        factor = match factor {
            4 => 2,
            2 => 3,
            _ if factor * factor > n => n,
            _ => factor + 2,
        };
    }
    all
}

/// exp(-2πi k/n) for every k < n. An eighth of a circle holds them all.
pub(super) fn roots(n: usize) -> Vec<C> {
    if !n.is_multiple_of(8) {
        return (0..n).map(|k| root(k as u64, n as u64)).collect();
    }
    let eighth: Vec<C> = (0..=n / 8).map(|k| root(k as u64, n as u64)).collect();
    let quarter = (0..n / 4).map(|k| match k <= n / 8 {
        true => eighth[k],
        false => C {
            re: -eighth[n / 4 - k].im,
            im: -eighth[n / 4 - k].re,
        },
    });
    let quarter: Vec<C> = quarter.collect();
    let turn = |turns: usize| {
        let of = move |x: &C| match turns {
            0 => *x,
            1 => C {
                re: x.im,
                im: -x.re,
            },
            2 => C {
                re: -x.re,
                im: -x.im,
            },
            _ => C {
                re: -x.im,
                im: x.re,
            },
        };
        quarter.iter().map(of)
    };
    (0..4).flat_map(turn).collect()
}

/// exp(-2πi k/n) for k < n, from an angle of at most an eighth of a circle.
pub(super) fn root(k: u64, n: u64) -> C {
    let (quarter, rest) = ((4 * k) / n, (4 * k) % n);
    let angle = |of: u64| of as f64 / n as f64 * std::f64::consts::FRAC_PI_2;
    let (cos, sin) = match 2 * rest > n {
        true => (angle(n - rest).sin(), angle(n - rest).cos()),
        false => (angle(rest).cos(), angle(rest).sin()),
    };
    let (re, im) = match quarter {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    };
    C { re, im }
}
