//! Matrices by which linear algebra is judged, the same bits wherever they are made: for the tests, and for the program that
//! asks faer about them.

/// What a matrix is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Random,
    /// Hilbert's, as badly conditioned as a type can tell.
    Hilbert,
    /// Of half the rank.
    Deficient,
    /// Rows from 1 down to 1e-6.
    Graded,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Random, Kind::Hilbert, Kind::Deficient, Kind::Graded];
pub(crate) const SIZES: [usize; 8] = [1, 2, 5, 17, 32, 33, 70, 130];
/// Right sides of a system.
pub(crate) const RIGHT: usize = 2;

/// Row-major.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) cells: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, cell: impl FnMut(usize, usize) -> f64) -> Matrix {
        let mut cell = cell;
        let places = (0..rows * columns).map(|at| cell(at / columns, at % columns));
        Matrix {
            rows,
            columns,
            cells: places.collect(),
        }
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[i * self.columns + j]
    }

    fn times(&self, other: &Matrix) -> Matrix {
        Matrix::new(self.rows, other.columns, |i, j| {
            (0..self.columns)
                .map(|k| self.at(i, k) * other.at(k, j))
                .sum()
        })
    }
}

/// A matrix and what is made of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) n: usize,
    /// Whether its elements are those of f32, not f64.
    pub(crate) is_single: bool,
}

impl Problem {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Problem> {
        let of = |is_single| {
            let sizes = SIZES.into_iter();
            sizes.flat_map(move |n| KINDS.map(|kind| Problem { kind, n, is_single }))
        };
        [true, false].into_iter().flat_map(of)
    }

    pub(crate) fn square(self) -> Matrix {
        self.matrix(self.n, self.n)
    }

    pub(crate) fn tall(self) -> Matrix {
        self.matrix(self.n + 3, self.n)
    }

    pub(crate) fn wide(self) -> Matrix {
        self.matrix(self.n, 2 * self.n)
    }

    pub(crate) fn symmetric(self) -> Matrix {
        let a = self.square();
        Matrix::new(self.n, self.n, |i, j| a.at(i.max(j), i.min(j)))
    }

    /// Positive definite, of a condition that is bounded by its norm.
    pub(crate) fn positive(self) -> Matrix {
        let a = self.square();
        let turned = Matrix::new(self.n, self.n, |i, j| a.at(j, i));
        let square = a.times(&turned);
        let one = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
        self.stored(Matrix::new(self.n, self.n, |i, j| {
            square.at(i.max(j), i.min(j)) + one(i, j)
        }))
    }

    pub(crate) fn right(self) -> Matrix {
        let mut draw = Draw(77 + self.n as u64);
        self.stored(Matrix::new(self.n, RIGHT, |_, _| draw.next()))
    }

    fn matrix(self, m: usize, n: usize) -> Matrix {
        let mut draw = Draw((1000 * m + n) as u64);
        let mut random = |m, n| Matrix::new(m, n, |_, _| draw.next());
        self.stored(match self.kind {
            Kind::Random => random(m, n),
            Kind::Hilbert => Matrix::new(m, n, |i, j| 1.0 / (i + j + 1) as f64),
            Kind::Deficient => {
                let rank = m.min(n).div_ceil(2);
                let left = random(m, rank);
                left.times(&random(rank, n))
            }
            Kind::Graded => {
                let a = random(m, n);
                // Powers of two down to 2^-20, so that every library has the same.
                let scale = |i: usize| 0.5f64.powi((20 * i / m) as i32);
                Matrix::new(m, n, |i, j| a.at(i, j) * scale(i))
            }
        })
    }

    fn stored(self, mut matrix: Matrix) -> Matrix {
        if self.is_single {
            let cells = matrix.cells.iter_mut();
            cells.for_each(|cell| *cell = f64::from(*cell as f32));
        }
        matrix
    }
}

/// Numbers from -1 to 1 of 20 bits.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        self.0 = self
            .0
            .wrapping_mul(FACTOR)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 44) as f64 / f64::from(1 << 19) - 1.0
    }
}
