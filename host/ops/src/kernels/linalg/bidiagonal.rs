//! Square matrices made bidiagonal by Householder's reflectors. Golub and Kahan (1965), Calculating the singular values and
//! pseudo-inverse of a matrix.

use super::{
    householder::{BLOCK, Block, mirror},
    lines::{LANES, Lanes, plus_products},
};
use crate::kernels::lanes::widest;
use std::ops::Range;

/// A bidiagonal matrix: its diagonal and what is above.
#[derive(Debug)]
pub(super) struct Bidiagonal {
    pub(super) diagonal: Vec<f64>,
    pub(super) above: Vec<f64>,
    left: Reflectors,
    right: Reflectors,
}

/// Reflectors one after another, and their factors.
#[derive(Debug, Default)]
struct Reflectors {
    vectors: Vec<f64>,
    taus: Vec<f64>,
}

impl Bidiagonal {
    /// Of the matrix whose elements `cell` gives, none of them much larger than 1.
    pub(super) fn new(n: usize, cell: impl Fn(usize, usize) -> f64) -> Bidiagonal {
        let stride = n.next_multiple_of(LANES);
        let mut a = vec![0.0; n * stride];
        for (i, row) in a.chunks_mut(stride).enumerate() {
            (0..n).for_each(|j| row[j] = cell(i, j));
        }
        let (mut diagonal, mut above) = (vec![0.0; n], vec![0.0; n]);
        let mut reflectors = [Reflectors::default(), Reflectors::default()];
        // What is still to be taken from the matrix: `column rowᵀ`, twice.
        let mut columns = [(); 2].map(|()| vec![0.0; n]);
        let mut rows = [(); 2].map(|()| vec![0.0; stride]);
        let mut sums = vec![[0.0; LANES]; n];
        for k in 0..n {
            let mut column = vec![0.0; n];
            for i in k..n {
                let taken = columns[0][i] * rows[0][k] + columns[1][i] * rows[1][k];
                column[i] = a[i * stride + k] - taken;
            }
            diagonal[k] = reflectors[0].push(&mut column, k..n);
            let mut row = vec![0.0; stride];
            let start = k / LANES * LANES;
            let left = &mut a[k * stride..];
            let taken = columns.each_ref().map(|x| &x[k..]);
            let rows_taken = rows.each_ref().map(|x| &x[..]);
            take(
                left,
                stride,
                start,
                taken,
                rows_taken,
                &column[k..],
                &mut row,
            );
            row[..=k].fill(0.0);
            let tau = reflectors[0].taus[k];
            row.iter_mut().for_each(|x| *x *= tau);
            let mut across = vec![0.0; stride];
            (k + 1..n).for_each(|j| across[j] = left[j] - row[j]);
            above[k] = reflectors[1].push(&mut across, k + 1..n);
            let tau = reflectors[1].taus[k];
            multiply(left, stride, start, &across, &mut sums[k..]);
            let overlap: f64 = row.iter().zip(&across).map(|(x, y)| x * y).sum();
            let mut down = vec![0.0; n];
            for i in k + 1..n {
                down[i] = tau * (sums[i].iter().sum::<f64>() - column[i] * overlap);
            }
            (columns, rows) = ([column, down], [row, across]);
        }
        let [left, right] = reflectors;
        Bidiagonal {
            diagonal,
            above,
            left,
            right,
        }
    }

    /// The transposes of the matrices that make it bidiagonal from the left and from the right.
    pub(super) fn bases(&self) -> [Vec<f64>; 2] {
        [&self.left, &self.right].map(|reflectors| reflectors.basis(self.diagonal.len()))
    }
}

impl Reflectors {
    /// Makes of that part of `x` a reflector that leaves only its first element, which it gives.
    fn push(&mut self, x: &mut [f64], part: Range<usize>) -> f64 {
        let n = part.end;
        let (tau, end) = match x[part].split_first_mut() {
            Some((head, others)) => mirror(head, others),
            None => (0.0, 0.0),
        };
        self.vectors.extend(&x[..n]);
        self.taus.push(tau);
        end
    }

    /// The transpose of their product.
    fn basis(&self, n: usize) -> Vec<f64> {
        let mut basis = vec![0.0; n * n];
        (0..n).for_each(|i| basis[i * (n + 1)] = 1.0);
        for start in (0..n).step_by(BLOCK).rev() {
            let end = (start + BLOCK).min(n);
            let vectors = self.vectors[start * n..end * n].chunks(n);
            let vectors = vectors.flat_map(|x| &x[start..]).copied().collect();
            let block = Block::new(vectors, n - start, &self.taus[start..end]);
            block.apply(&mut basis[start * n..], n, start, true);
        }
        basis
    }
}

widest! {
    /// Takes two products of columns and rows from the matrix, and gives its transpose times `by`; both from element `start` of
    /// its rows on.
    fn take(a: &mut [f64], stride: usize, start: usize, columns: [&[f64]; 2], rows: [&[f64]; 2], by: &[f64], to: &mut [f64]) {
        let [first, second] = rows.map(|row| &row[start..]);
        let to = &mut to[start..];
        let factors = columns[0].iter().zip(columns[1]).zip(by);
        for (row, ((x, y), by)) in a.chunks_exact_mut(stride).zip(factors) {
            let cells = row[start..].iter_mut().zip(&mut *to);
            for ((cell, to), (first, second)) in cells.zip(first.iter().zip(second)) {
                *cell = y.mul_add(-second, x.mul_add(-first, *cell));
                *to = by.mul_add(*cell, *to);
            }
        }
    }

    /// The matrix times `x`, from element `start` of its rows on: sums that are still to be added up.
    fn multiply(a: &[f64], stride: usize, start: usize, x: &[f64], to: &mut [Lanes]) {
        let x = x[start..].as_chunks().0;
        for (row, to) in a.chunks_exact(stride).zip(to) {
            let mut sums = [0.0; LANES];
            for (x, cells) in x.iter().zip(row[start..].as_chunks().0) {
                sums = plus_products(sums, *cells, *x);
            }
            *to = sums;
        }
    }
}
