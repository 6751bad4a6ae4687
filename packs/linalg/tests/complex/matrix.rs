//! Matrices of complex numbers, and what they have to satisfy.

use nx_vulkan_abi::DType;
use nx_vulkan_ops::values::Rng;
use std::ops::{Add, Mul, Sub};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct C(pub(crate) f64, pub(crate) f64);

impl C {
    pub(crate) const ZERO: C = C(0.0, 0.0);
    pub(crate) const ONE: C = C(1.0, 0.0);

    pub(crate) fn conjugate(self) -> C {
        C(self.0, -self.1)
    }

    pub(crate) fn magnitude(self) -> f64 {
        self.0.hypot(self.1)
    }

    pub(crate) fn scaled(self, by: f64) -> C {
        C(self.0 * by, self.1 * by)
    }
}

impl Add for C {
    type Output = C;

    fn add(self, other: C) -> C {
        C(self.0 + other.0, self.1 + other.1)
    }
}

impl Sub for C {
    type Output = C;

    fn sub(self, other: C) -> C {
        C(self.0 - other.0, self.1 - other.1)
    }
}

impl Mul for C {
    type Output = C;

    fn mul(self, other: C) -> C {
        C(
            self.0 * other.0 - self.1 * other.1,
            self.0 * other.1 + self.1 * other.0,
        )
    }
}

/// A matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) cells: Vec<C>,
}

impl Matrix {
    pub(crate) fn from(
        rows: usize,
        columns: usize,
        mut cell: impl FnMut(usize, usize) -> C,
    ) -> Matrix {
        let cells = (0..rows * columns).map(|at| cell(at / columns, at % columns));
        Matrix {
            rows,
            columns,
            cells: cells.collect(),
        }
    }

    pub(crate) fn random(rows: usize, columns: usize, rng: &mut Rng) -> Matrix {
        Matrix::from(rows, columns, |_, _| {
            C(rng.between(-1.0, 1.0), rng.between(-1.0, 1.0))
        })
    }

    pub(crate) fn unit(n: usize) -> Matrix {
        Matrix::from(n, n, |i, j| if i == j { C::ONE } else { C::ZERO })
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> C {
        self.cells[i * self.columns + j]
    }

    pub(crate) fn times(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows);
        Matrix::from(self.rows, other.columns, |i, j| {
            let terms = (0..self.columns).map(|k| self.at(i, k) * other.at(k, j));
            terms.fold(C::ZERO, C::add)
        })
    }

    pub(crate) fn minus(&self, other: &Matrix) -> Matrix {
        Matrix::from(self.rows, self.columns, |i, j| {
            self.at(i, j) - other.at(i, j)
        })
    }

    pub(crate) fn adjoint(&self) -> Matrix {
        Matrix::from(self.columns, self.rows, |i, j| self.at(j, i).conjugate())
    }

    pub(crate) fn turned(&self) -> Matrix {
        Matrix::from(self.columns, self.rows, |i, j| self.at(j, i))
    }

    pub(crate) fn largest(&self) -> f64 {
        let magnitudes = self.cells.iter().map(|x| x.magnitude());
        magnitudes.fold(0.0, |most, x| if x.is_nan() { x } else { x.max(most) })
    }

    /// As elements of that type have it.
    pub(crate) fn rounded(self, dtype: DType) -> Matrix {
        let round = |x: f64| match dtype {
            DType::C64 => f64::from(x as f32),
            _ => x,
        };
        Matrix::from(self.rows, self.columns, |i, j| {
            let C(re, im) = self.at(i, j);
            C(round(re), round(im))
        })
    }
}

/// A square matrix of a kind.
pub(crate) fn of_kind(kind: &str, n: usize, rng: &mut Rng) -> Matrix {
    let a = Matrix::random(n, n, rng);
    match kind {
        "graded" => Matrix::from(n, n, |i, j| {
            a.at(i, j).scaled(10f64.powf(-6.0 * j as f64 / n as f64))
        }),
        "low" => Matrix::random(n, 3, rng).times(&Matrix::random(3, n, rng)),
        "equal rows" => Matrix::from(n, n, |i, j| a.at(i / 3, j)),
        _ => a,
    }
}
