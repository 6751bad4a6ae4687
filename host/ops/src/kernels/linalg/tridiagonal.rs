//! Hermitian matrices made tridiagonal by Householder's reflectors, and real tridiagonal ones made diagonal by the implicit QL
//! iteration. Martin, Reinsch and Wilkinson (1968), Householder's tridiagonalization of a symmetric matrix.

use super::{
    householder::{BLOCK, Block, TINY, mirror},
    lines::{LANES, Line},
    rotations::{Panels, Rotations},
};
use std::ops::Range;

/// Passes for each eigenvalue at most; two are usual.
const PASSES: usize = 30;

/// A tridiagonal matrix: its diagonal and what is below.
#[derive(Debug)]
pub(super) struct Tridiagonal<T> {
    pub(super) diagonal: Vec<f64>,
    pub(super) below: Vec<T>,
    /// Row `i` has a reflector of `i` elements.
    reflectors: Vec<T>,
    stride: usize,
    taus: Vec<f64>,
}

impl<T: Line> Tridiagonal<T> {
    /// Of the Hermitian matrix whose lower triangle `cell` gives, where no element is much larger than 1.
    pub(super) fn new(n: usize, cell: impl Fn(usize, usize) -> T) -> Tridiagonal<T> {
        let stride = n.next_multiple_of(LANES);
        let mut a = vec![T::ZERO; n * stride];
        for i in 0..n {
            for j in 0..i {
                a[i * stride + j] = cell(i, j);
                a[j * stride + i] = cell(i, j).conjugate();
            }
            a[i * stride + i] = T::of(cell(i, i).real());
        }
        let mut taus = vec![0.0; n];
        let (mut diagonal, mut below) = (vec![0.0; n], vec![T::ZERO; n]);
        // `x yᴴ` and `y xᴴ` are still to be taken from the matrix.
        let [mut x, mut y, mut reflector, mut product] = [(); 4].map(|()| vec![T::ZERO; stride]);
        for i in (1..n).rev() {
            let (above, row) = a.split_at_mut(i * stride);
            for j in 0..=i {
                row[j] = row[j] - x[i] * y[j].conjugate() - y[i] * x[j].conjugate();
            }
            diagonal[i] = row[i].real();
            reflector.fill(T::ZERO);
            (0..i).for_each(|j| reflector[j] = row[j].conjugate());
            let (others, head) = reflector[..i].split_at_mut(i - 1);
            let (tau, end) = mirror(&mut head[0], others);
            (taus[i], below[i - 1]) = (tau, end.conjugate());
            T::update(above, stride, &x, &y, &reflector, &mut product);
            let overlap = T::sum((0..i).map(|j| reflector[j].conjugate() * product[j]));
            let share = overlap.scaled(0.5 * tau);
            y.fill(T::ZERO);
            (0..i).for_each(|j| y[j] = (product[j] - reflector[j] * share).scaled(tau));
            row[..i].copy_from_slice(&reflector[..i]);
            std::mem::swap(&mut x, &mut reflector);
        }
        diagonal[0] = a[0].real();
        Tridiagonal {
            diagonal,
            below,
            reflectors: a,
            stride,
            taus,
        }
    }

    /// The transpose of the vectors that make the matrix tridiagonal and real, and what is below its diagonal then. A row has the
    /// parts of its elements.
    pub(super) fn basis(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.diagonal.len();
        let width = n * T::PARTS;
        let mut basis = vec![0.0; n * width];
        let mut phase = T::ONE;
        for i in 0..n {
            basis[i * (width + T::PARTS)..][..T::PARTS].copy_from_slice(&phase.parts()[..T::PARTS]);
            phase = phase * self.below[i].phase();
        }
        let together = BLOCK / T::PARTS;
        for start in (2..n).step_by(together) {
            let end = (start + together).min(n);
            let block = self.block(start..end);
            block.apply(&mut basis[..(end - 1) * width], width, 0, false);
        }
        let below = self.below.iter().map(|x| x.magnitude()).collect();
        (basis, below)
    }

    /// The reflectors of those rows. A complex one is two of real numbers: its parts, and those of it times i.
    fn block(&self, rows: Range<usize>) -> Block {
        let len = (rows.end - 1) * T::PARTS;
        let (mut vectors, mut taus) = (Vec::new(), Vec::new());
        for i in rows {
            let own = &self.reflectors[i * self.stride..][..i];
            for turn in 0..T::PARTS {
                let parts = own.iter().map(|x| x.parts());
                let turned = parts.map(|[re, im]| if turn == 0 { [re, im] } else { [-im, re] });
                vectors.extend(turned.flat_map(|parts| parts.into_iter().take(T::PARTS)));
                vectors.resize(vectors.len().next_multiple_of(len), 0.0);
                taus.push(self.taus[i]);
            }
        }
        Block::new(vectors, len, &taus)
    }
}

/// Makes a real tridiagonal matrix of a norm near 1 diagonal and rotates `rows` with it; tells whether it could.
pub(super) fn diagonalize(d: &mut [f64], e: &mut [f64], rows: &mut Panels) -> bool {
    let n = d.len();
    let all = d.iter().chain(&e[..n - 1]);
    let norm = all.fold(0.0, |norm: f64, x| norm.max(x.abs()));
    let is_small = |d: &[f64], e: &[f64], i: usize| {
        e[i].abs() <= 0.5 * f64::EPSILON * norm.max(d[i].abs() + d[i + 1].abs())
    };
    let mut rotations = Rotations::default();
    let mut left = PASSES * n;
    for l in 0..n {
        loop {
            let m = (l..n - 1).find(|&i| is_small(d, e, i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            pass(d, e, [l, m], &mut rotations);
            if rotations.are_many() {
                rotations.apply(rows);
            }
        }
    }
    rotations.apply(rows);
    true
}

/// One iteration between `l` and `m`, by which `e[l]` becomes smaller.
fn pass(d: &mut [f64], e: &mut [f64], [l, m]: [usize; 2], rotations: &mut Rotations) {
    let half = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let root = half.hypot(1.0).copysign(half);
    let mut g = d[m] - d[l] + e[l] / (half + root);
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    rotations.begin(m, false);
    e[m] = 0.0;
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let square = f * f + g * g;
        if square <= TINY * TINY {
            e[i + 1] = 0.0;
            d[i + 1] -= p;
            e[i] = b;
            return;
        }
        let inverse = 1.0 / square.sqrt();
        if i + 1 < m {
            e[i + 1] = square * inverse;
        }
        (s, c) = (f * inverse, g * inverse);
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotations.push(c, s);
    }
    d[l] -= p;
    e[l] = g;
}
