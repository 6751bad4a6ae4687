//! Loops over rows of matrices, in parts that fill vectors.

use super::field::Field;
use crate::kernels::{element::Complex, lanes::widest};

/// Elements of a part.
pub(super) const LANES: usize = 8;

pub(super) type Lanes = [f64; LANES];

/// A number with loops over rows.
pub(super) trait Line: Field {
    /// Numbers that one is made of.
    const PARTS: usize;

    /// Of as many numbers as one is made of.
    fn of_parts(parts: &[f64]) -> Self;
    /// Takes row `q` times the conjugate of `s` from row `p`, and adds row `p` times `s` to row `q`.
    fn rotate(rows: &mut [Self], pair: [usize; 2], n: usize, by: (f64, Self));
    /// Takes `x yᴴ` and `y xᴴ` from the first rows of a Hermitian matrix, and gives its product with `by`. Of the matrix it has
    /// what is left of the diagonal, and around that squares of `LANES` by `LANES`.
    fn update(
        rows: &mut [Self],
        stride: usize,
        x: &[Self],
        y: &[Self],
        by: &[Self],
        to: &mut [Self],
    );
}

/// Rows `p` and `q` of those that lie `n` apart.
fn two<T>(rows: &mut [T], [p, q]: [usize; 2], n: usize) -> [&mut [T]; 2] {
    let (above, below) = rows.split_at_mut(p.max(q) * n);
    let (low, high) = (&mut above[p.min(q) * n..][..n], &mut below[..n]);
    if p < q { [low, high] } else { [high, low] }
}

impl Line for f64 {
    const PARTS: usize = 1;

    fn of_parts(parts: &[f64]) -> f64 {
        parts[0]
    }

    fn update(rows: &mut [f64], stride: usize, x: &[f64], y: &[f64], by: &[f64], to: &mut [f64]) {
        update_real(rows, stride, x, y, by, to);
    }

    fn rotate(rows: &mut [f64], pair: [usize; 2], n: usize, (c, s): (f64, f64)) {
        let [a, b] = two(rows, pair, n);
        rotate_real(a, b, c, s);
    }
}

type C = Complex<f64>;

impl Line for C {
    const PARTS: usize = 2;

    fn of_parts(parts: &[f64]) -> C {
        C {
            re: parts[0],
            im: parts[1],
        }
    }

    fn update(rows: &mut [C], stride: usize, x: &[C], y: &[C], by: &[C], to: &mut [C]) {
        update_complex(rows, stride, x, y, by, to);
    }

    fn rotate(rows: &mut [C], pair: [usize; 2], n: usize, (c, s): (f64, C)) {
        let [a, b] = two(rows, pair, n);
        for (a, b) in a.iter_mut().zip(b) {
            (*a, *b) = (a.scaled(c) - *b * s.conjugate(), *a * s + b.scaled(c));
        }
    }
}

widest! {
    fn rotate_real(a: &mut [f64], b: &mut [f64], c: f64, s: f64) {
        for (a, b) in a.iter_mut().zip(b) {
            (*a, *b) = (*a * c - *b * s, *a * s + *b * c);
        }
    }

    fn update_real(rows: &mut [f64], stride: usize, x: &[f64], y: &[f64], by: &[f64], to: &mut [f64]) {
        to.fill(0.0);
        for (i, row) in rows.chunks_mut(stride).enumerate() {
            let before = i / LANES;
            let row = &mut row.as_chunks_mut().0[..=before];
            let [xs, ys, bys] = [x, y, by].map(|x| &x.as_chunks().0[..=before]);
            let taken = |row, xs, ys| plus_scaled(plus_scaled(row, ys, -x[i]), xs, -y[i]);
            let mut sums = [0.0; LANES];
            let parts = row.iter_mut().zip(to.as_chunks_mut().0);
            for ((row, to), (xs, (ys, bys))) in parts.zip(xs.iter().zip(ys.iter().zip(bys))).take(before) {
                let cells = taken(*row, *xs, *ys);
                *row = cells;
                sums = plus_products(sums, cells, *bys);
                *to = plus_scaled(*to, cells, by[i]);
            }
            let cells = taken(row[before], xs[before], ys[before]);
            row[before] = cells;
            to[i] += plus_products(sums, cells, bys[before]).iter().sum::<f64>();
        }
    }

    fn update_complex(rows: &mut [C], stride: usize, x: &[C], y: &[C], by: &[C], to: &mut [C]) {
        to.fill(C::ZERO);
        for (i, row) in rows.chunks_mut(stride).enumerate() {
            let before = i / LANES;
            let row = &mut row.as_chunks_mut::<LANES>().0[..=before];
            let [xs, ys, bys] = [x, y, by].map(|x| &x.as_chunks::<LANES>().0[..=before]);
            let mut sums = [C::ZERO; LANES];
            for (part, row) in row.iter_mut().enumerate() {
                let to = &mut to.as_chunks_mut::<LANES>().0[part];
                let is_before = part < before;
                for k in 0..LANES {
                    let taken = plus(row[k], -x[i], ys[part][k].conjugate());
                    row[k] = plus(taken, -y[i], xs[part][k].conjugate());
                    sums[k] = plus(sums[k], row[k], bys[part][k]);
                    if is_before {
                        to[k] = plus(to[k], row[k].conjugate(), by[i]);
                    }
                }
            }
            to[i] = to[i] + C::sum(sums.into_iter());
        }
    }
}

/// `to` and `by` times `x`.
#[inline(always)]
pub(super) fn plus_scaled(to: Lanes, x: Lanes, by: f64) -> Lanes {
    std::array::from_fn(|k| by.mul_add(x[k], to[k]))
}

/// `to` and the products of `x` and `y`.
#[inline(always)]
pub(super) fn plus_products(to: Lanes, x: Lanes, y: Lanes) -> Lanes {
    std::array::from_fn(|k| x[k].mul_add(y[k], to[k]))
}

/// `to` and the product of `x` and `y`.
#[inline(always)]
fn plus(to: C, x: C, y: C) -> C {
    C {
        re: y.im.mul_add(-x.im, x.re.mul_add(y.re, to.re)),
        im: y.re.mul_add(x.im, x.re.mul_add(y.im, to.im)),
    }
}
