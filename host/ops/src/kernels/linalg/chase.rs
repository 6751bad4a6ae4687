//! Bidiagonal matrices made diagonal by the implicit QR iteration. Demmel and Kahan (1990), Accurate singular values of
//! bidiagonal matrices.

use super::{
    householder::TINY,
    rotations::{Panels, Rotations},
};

/// Passes for each singular value at most; two are usual.
const PASSES: usize = 30;

/// Makes a bidiagonal matrix of a norm near 1 diagonal, and rotates with it the rows on its left and on its right; tells whether it
/// could.
pub(super) fn diagonalize(d: &mut [f64], e: &mut [f64], rows: [&mut Panels; 2]) -> bool {
    let n = d.len();
    let norm = d.iter().chain(&*e).fold(0.0, |x: f64, y| x.max(y.abs()));
    let least = 0.5 * f64::EPSILON * norm;
    let mut rotations = [Rotations::default(), Rotations::default()];
    let [above, below] = rows;
    let mut block = 0..0;
    let mut is_turned = false;
    let mut high = n - 1;
    let mut left = PASSES * n;
    while high > 0 {
        if e[high - 1].abs() <= least {
            high -= 1;
            continue;
        }
        let low = (0..high).rev().find(|&i| i == 0 || e[i - 1].abs() <= least);
        let low = low.unwrap_or(0);
        if left == 0 {
            return false;
        }
        left -= 1;
        // From the larger end to the smaller one, as long as it is the same block.
        if low >= block.end || high <= block.start {
            is_turned = d[low].abs() < d[high].abs();
        }
        block = low..high;
        let (d, e) = (&mut d[low..=high], &mut e[low..high]);
        let first = if is_turned { high } else { low };
        rotations
            .iter_mut()
            .for_each(|x| x.begin(first, !is_turned));
        if is_turned {
            // The transpose, from its other end.
            d.reverse();
            e.reverse();
            rotations.reverse();
        }
        for x in d.iter_mut().filter(|x| x.abs() <= least) {
            *x = 0.0;
        }
        let [left_side, right_side] = &mut rotations;
        match shift(d, e) {
            0.0 => pass(d, e, left_side, right_side),
            shift => shifted_pass(d, e, shift, left_side, right_side),
        }
        if is_turned {
            d.reverse();
            e.reverse();
            rotations.reverse();
        }
        if rotations[0].are_many() {
            rotations[0].apply(above);
            rotations[1].apply(below);
        }
    }
    rotations[0].apply(above);
    rotations[1].apply(below);
    true
}

/// The smaller singular value of the last two rows; 0 where it does not count, or where the matrix is singular.
fn shift(d: &[f64], e: &[f64]) -> f64 {
    let last = e.len();
    let (f, g, h) = (d[last - 1].abs(), e[last - 1].abs(), d[last].abs());
    if d.contains(&0.0) {
        return 0.0;
    }
    let (low, high) = (f.min(h), f.max(h));
    let (sum, difference) = (1.0 + low / high, (high - low) / high);
    let smaller = if g < high {
        let square = (g / high) * (g / high);
        let root = |x: f64| (x * x + square).sqrt();
        2.0 * low / (root(sum) + root(difference))
    } else {
        let ratio = high / g;
        let root = |x: f64| (1.0 + (x * ratio) * (x * ratio)).sqrt();
        2.0 * low * ratio / (root(sum) + root(difference))
    };
    let share = smaller / d[0];
    if share * share < f64::EPSILON {
        0.0
    } else {
        smaller
    }
}

/// Cosine and sine that leave nothing of `g` beside `f`, and what becomes of `f`.
fn rotation(f: f64, g: f64) -> [f64; 3] {
    if g == 0.0 {
        return [1.0, 0.0, f];
    }
    let square = f * f + g * g;
    if square < TINY * TINY {
        let [c, s, r] = rotation(f / TINY, g / TINY);
        return [c, s, r * TINY];
    }
    let inverse = 1.0 / square.sqrt();
    [f * inverse, g * inverse, square * inverse]
}

/// A pass without a shift, which keeps small numbers exact and ends with a 0 where the matrix is singular.
fn pass(d: &mut [f64], e: &mut [f64], left: &mut Rotations, right: &mut Rotations) {
    let (mut c, mut own_c, mut own_s) = (1.0, 1.0, 0.0);
    for i in 0..e.len() {
        let [next_c, s, r] = rotation(d[i] * c, e[i]);
        if i > 0 {
            e[i - 1] = own_s * r;
        }
        right.push(next_c, s);
        [own_c, own_s, d[i]] = rotation(own_c * r, d[i + 1] * s);
        left.push(own_c, own_s);
        c = next_c;
    }
    let last = e.len();
    let end = d[last] * c;
    d[last] = end * own_c;
    e[last - 1] = end * own_s;
}

fn shifted_pass(
    d: &mut [f64],
    e: &mut [f64],
    shift: f64,
    left: &mut Rotations,
    right: &mut Rotations,
) {
    let mut f = (d[0].abs() - shift) * (1f64.copysign(d[0]) + shift / d[0]);
    let mut g = e[0];
    for i in 0..e.len() {
        let [c, s, r] = rotation(f, g);
        if i > 0 {
            e[i - 1] = r;
        }
        right.push(c, s);
        f = c * d[i] + s * e[i];
        e[i] = c * e[i] - s * d[i];
        g = s * d[i + 1];
        d[i + 1] *= c;
        let [c, s, r] = rotation(f, g);
        left.push(c, s);
        d[i] = r;
        f = c * e[i] + s * d[i + 1];
        d[i + 1] = c * d[i + 1] - s * e[i];
        if let Some(next) = e.get_mut(i + 1) {
            g = s * *next;
            *next *= c;
        }
    }
    e[e.len() - 1] = f;
}
