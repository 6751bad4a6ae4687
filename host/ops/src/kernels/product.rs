//! Products of matrices of f32 and of f64. Their crates are used by themselves: the one that joins them builds kernels for f16
//! and for complex numbers too, which take longer than all others.

pub(super) use gemm_common::Parallelism;

use super::number::Number;

/// Elements of a matrix in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<P> {
    start: P,
    in_row: isize,
    in_column: isize,
}

impl<P> Matrix<P> {
    /// From `start` on, with so many elements between neighbours in a row and between those in a column, none of them
    /// negative.
    pub(super) fn new(start: P, [in_row, in_column]: [isize; 2]) -> Matrix<P> {
        Matrix {
            start,
            in_row,
            in_column,
        }
    }

    fn transposed(self) -> Matrix<P> {
        Matrix {
            start: self.start,
            in_row: self.in_column,
            in_column: self.in_row,
        }
    }
}

/// Multiplications from which on it pays to look at how rows fill vectors.
const MUCH: usize = 1 << 18;

/// A type of numbers with kernels for products.
pub(super) trait Matmul: Number {
    /// Sets `to`, of `[rows, columns]`, to the product of `a` and `b`, which sums `depth` terms for each element; adds it
    /// where `adds`.
    ///
    /// # Safety
    /// The elements of all three can be reached, those of `to` written; they are written by nobody else and are not among
    /// those of `a` and `b`.
    unsafe fn matmul(
        extents: [usize; 3],
        to: Matrix<*mut Self>,
        factors: [Matrix<*const Self>; 2],
        adds: bool,
        parallelism: Parallelism,
    );
}

macro_rules! matmul {
    ($($t:ident, $kernel:path;)*) => { $(
        impl Matmul for $t {
            unsafe fn matmul(
                [rows, columns, depth]: [usize; 3],
                to: Matrix<*mut $t>,
                [a, b]: [Matrix<*const $t>; 2],
                adds: bool,
                parallelism: Parallelism,
            ) {
                // The kernels store columns.
                let (rows, columns, to, a, b) = match to.in_row < to.in_column {
                    true => (columns, rows, to.transposed(), b.transposed(), a.transposed()),
                    false => (rows, columns, to, a, b),
                };
                // Rows that do not fill vectors are packed, which takes longer than some products do: the last ones go apart.
                let lanes = 64 / size_of::<$t>();
                let whole = match rows * columns * depth > MUCH && rows > lanes {
                    true => rows - rows % lanes,
                    false => rows,
                };
                for (first, rows) in [(0, whole), (whole, rows - whole)] {
                    if rows == 0 {
                        continue;
                    }
                    // SAFETY: as the caller promises.
                    unsafe {
                        $kernel()(
                            rows, columns, depth,
                            to.start.offset(first as isize * to.in_column), to.in_row, to.in_column, adds,
                            a.start.offset(first as isize * a.in_column), a.in_row, a.in_column,
                            b.start, b.in_row, b.in_column,
                            1.0, 1.0, false, false, false, parallelism,
                        );
                    }
                }
            }
        }
    )* };
}

matmul! {
    f32, gemm_f32::gemm::f32::get_gemm_fn;
    f64, gemm_f64::gemm::f64::get_gemm_fn;
}
