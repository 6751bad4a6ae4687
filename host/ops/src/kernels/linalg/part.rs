//! Parts of matrices, and products of them.

use super::field::Field;
use crate::kernels::{
    element::Complex,
    product::{Matmul, Matrix, Parallelism},
};

/// Elements of a matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a, T> {
    cells: &'a [T],
    /// Rows and columns.
    pub(super) extents: [usize; 2],
    /// How far apart rows lie, and columns.
    steps: [usize; 2],
}

impl<'a, T: Field> Part<'a, T> {
    /// Rows and columns from the first cell on, the rows `step` apart.
    pub(super) fn new(cells: &'a [T], extents: [usize; 2], step: usize) -> Part<'a, T> {
        Part {
            cells,
            extents,
            steps: [step, 1],
        }
    }

    pub(super) fn turned(self) -> Part<'a, T> {
        let ([rows, columns], [down, right]) = (self.extents, self.steps);
        Part {
            cells: self.cells,
            extents: [columns, rows],
            steps: [right, down],
        }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> T {
        self.cells[i * self.steps[0] + j * self.steps[1]]
    }

    /// The part of it that begins at a row and a column.
    pub(super) fn part(self, [i, j]: [usize; 2], extents: [usize; 2]) -> Part<'a, T> {
        Part {
            cells: &self.cells[i * self.steps[0] + j * self.steps[1]..],
            extents,
            steps: self.steps,
        }
    }

    /// What `f` makes of its elements, row after row.
    pub(super) fn map<R>(&self, f: impl Fn(T) -> R + Copy) -> Vec<R> {
        let [rows, columns] = self.extents;
        let mut all = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            match self.steps[1] {
                1 => {
                    let row = &self.cells[i * self.steps[0]..][..columns];
                    all.extend(row.iter().map(|x| f(*x)));
                }
                _ => all.extend((0..columns).map(|j| f(self.at(i, j)))),
            }
        }
        all
    }

    pub(super) fn negated(&self) -> Vec<T> {
        self.map(|x| -x)
    }

    fn reaches(&self) -> bool {
        let last = |axis: usize| (self.extents[axis] - 1) * self.steps[axis];
        last(0) + last(1) < self.cells.len()
    }

    fn matrix(&self) -> Matrix<*const T> {
        let [down, right] = self.steps.map(|step| step as isize);
        Matrix::new(self.cells.as_ptr(), [right, down])
    }
}

/// Adds the product of `a` and `b` to what begins `to`, of rows `step` apart.
pub(super) fn add_product(
    to: &mut [f64],
    step: usize,
    [a, b]: [Part<f64>; 2],
    threads: Parallelism,
) {
    let ([rows, depth], columns) = (a.extents, b.extents[1]);
    if rows == 0 || columns == 0 || depth == 0 {
        return;
    }
    let fits = columns <= step && (rows - 1) * step + columns <= to.len();
    assert!(
        fits && a.reaches() && b.reaches() && b.extents[0] == depth,
        "parts lie within their matrices"
    );
    let place = Matrix::new(to.as_mut_ptr(), [1, step as isize]);
    // SAFETY: the assertion holds the largest index of all three within their slices, and `to` is borrowed mutably.
    unsafe {
        let factors = [a.matrix(), b.matrix()];
        f64::matmul([rows, columns, depth], place, factors, true, threads);
    }
}

/// The same of complex numbers, by products of their parts.
pub(super) fn add_complex_product(
    to: &mut [Complex<f64>],
    step: usize,
    [a, b]: [Part<Complex<f64>>; 2],
    threads: Parallelism,
) {
    let ([rows, _], columns) = (a.extents, b.extents[1]);
    let [a_re, a_im, less_a_im] = [a.map(|x| x.re), a.map(|x| x.im), a.map(|x| -x.im)];
    let [b_re, b_im] = [b.map(|x| x.re), b.map(|x| x.im)];
    let product = |pairs: [[&[f64]; 2]; 2]| {
        let mut sums = vec![0.0; rows * columns];
        for [x, y] in pairs {
            let factors = [
                Part::new(x, a.extents, a.extents[1]),
                Part::new(y, b.extents, columns),
            ];
            add_product(&mut sums, columns, factors, threads);
        }
        sums
    };
    let re = product([[&a_re, &b_re], [&less_a_im, &b_im]]);
    let im = product([[&a_re, &b_im], [&a_im, &b_re]]);
    for i in 0..rows {
        let sums = re[i * columns..].iter().zip(&im[i * columns..]);
        for (to, (re, im)) in to[i * step..][..columns].iter_mut().zip(sums) {
            to.re += re;
            to.im += im;
        }
    }
}
