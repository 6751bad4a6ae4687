//! Products of matrices of f32 and of f64, on all cores. Their crates are used by themselves: the one that joins them builds kernels for f16
//! and for complex numbers too, which take longer than all others.

pub(super) use gemm_common::Parallelism;

use super::{crew, number::Number, parallel};

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

macro_rules! moved {
    ($($pointer:ty),*) => { $(
        impl<T> Matrix<$pointer> {
            /// The same from another row and column on.
            ///
            /// # Safety
            /// They are in the matrix.
            unsafe fn moved(self, [row, column]: [usize; 2]) -> Self {
                let distance = row as isize * self.in_column + column as isize * self.in_row;
                // SAFETY: as the caller promises.
                let start = unsafe { self.start.offset(distance) };
                Matrix { start, ..self }
            }
        }

        // SAFETY: it says where elements are. Who reads or writes them promises what that asks for.
        unsafe impl<T: Sync> Sync for Matrix<$pointer> {}
    )* };
}
moved!(*const T, *mut T);

/// Multiplications from which on it pays to look at how rows fill vectors, or to give them to another core.
const MUCH: usize = 1 << 18;

/// A type of numbers with kernels for products.
pub(super) trait Matmul: Number {
    /// The same as [`Matmul::matmul`] of a result whose columns are stored, as the kernels share it among cores.
    ///
    /// # Safety
    /// As there.
    unsafe fn in_columns(
        extents: [usize; 3],
        to: Matrix<*mut Self>,
        factors: [Matrix<*const Self>; 2],
        adds: bool,
        parallelism: Parallelism,
    );

    /// Sets `to`, of `[rows, columns]`, to the product of `a` and `b`, which sums `depth` terms for each element; adds it
    /// where `adds`.
    ///
    /// # Safety
    /// The elements of all three can be reached, those of `to` written; they are written by nobody else and are not among
    /// those of `a` and `b`.
    unsafe fn matmul(
        [rows, columns, depth]: [usize; 3],
        to: Matrix<*mut Self>,
        [a, b]: [Matrix<*const Self>; 2],
        adds: bool,
        parallelism: Parallelism,
    ) {
        // The kernels store columns.
        let (rows, columns, to, a, b) = match to.in_row < to.in_column {
            true => (
                columns,
                rows,
                to.transposed(),
                b.transposed(),
                a.transposed(),
            ),
            false => (rows, columns, to, a, b),
        };
        // The larger extent is shared among the cores: the kernels' own way of that takes longer.
        let by_rows = rows > columns;
        let extent = if by_rows { rows } else { columns };
        let most = match parallelism {
            Parallelism::None => 1,
            Parallelism::Rayon(_) => {
                let worth_it =
                    ((rows * columns).saturating_mul(depth) / MUCH).min(extent / lanes::<Self>());
                crew::cores().min(worth_it).max(1)
            }
        };
        let part = |of: usize, i: usize| {
            let [first, end] = [i, i + 1].map(|i| match i == of {
                true => extent,
                false => i * extent / of / lanes::<Self>() * lanes::<Self>(),
            });
            let own = if by_rows {
                [end - first, columns]
            } else {
                [rows, end - first]
            };
            (first, own)
        };
        let sums = Summation::of::<Self>([rows, columns], depth);
        let fits = |of: usize| (0..of).all(|i| sums.is_of::<Self>(part(of, i).1, depth));
        let mut fewer = std::iter::successors(Some(most), |of| Some(of / 2));
        let cores = fewer.find(|&of| of <= 1 || fits(of)).unwrap_or(1);
        if cores == 1 {
            // SAFETY: as the caller promises.
            return unsafe {
                Self::in_columns([rows, columns, depth], to, [a, b], adds, parallelism)
            };
        }
        let all = (to, a, b);
        parallel::for_each_with(cores, || (), &|(), i| {
            let ((to, a, b), (first, [rows, columns])) = (all, part(cores, i));
            // SAFETY: as the caller promises; parts have no elements of the result in common.
            unsafe {
                let (to, factors) = match by_rows {
                    true => (to.moved([first, 0]), [a.moved([first, 0]), b]),
                    false => (to.moved([0, first]), [a, b.moved([0, first])]),
                };
                Self::in_columns([rows, columns, depth], to, factors, adds, Parallelism::None);
            }
        });
    }
}

/// Elements of a vector, of the widest there are.
const fn lanes<T>() -> usize {
    64 / size_of::<T>()
}

/// How many rows are multiplied first, and how many then: those that do not fill vectors are packed, which takes longer than some
/// products do, so the last ones go apart.
fn split<T>([rows, columns]: [usize; 2], depth: usize) -> [usize; 2] {
    match (rows * columns).saturating_mul(depth) > MUCH && rows > lanes::<T>() {
        true => [rows - rows % lanes::<T>(), rows % lanes::<T>()],
        false => [rows, 0],
    }
}

/// In which order the kernels add up terms of either: `gemm_basic_generic` of gemm-common 0.19 has ways of its own for at most
/// 16 x 16 elements of the result, and for at most 64 rows and columns. What cores make must not depend on how many they are.
///
/// Parts begin and end at whole vectors and are never a single row or column where all are not; all else that the kernels choose
/// by rows and columns leaves the order alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Summation([Option<[bool; 2]>; 2]);

impl Summation {
    fn of<T>(extents: [usize; 2], depth: usize) -> Summation {
        let way = |rows: usize| {
            let columns = extents[1];
            (rows > 0).then_some([rows * columns <= 256, rows <= 64 && columns <= 64])
        };
        Summation(split::<T>(extents, depth).map(way))
    }

    /// Whether a part of a product is added up so too.
    fn is_of<T>(self, part: [usize; 2], depth: usize) -> bool {
        let [all, [first, last]] = [self.0, Summation::of::<T>(part, depth).0];
        first == all[0] && (last == all[1] || part[0].is_multiple_of(lanes::<T>()))
    }
}

macro_rules! matmul {
    ($($t:ident, $kernel:path;)*) => { $(
        impl Matmul for $t {
            unsafe fn in_columns(
                [rows, columns, depth]: [usize; 3],
                to: Matrix<*mut $t>,
                [a, b]: [Matrix<*const $t>; 2],
                adds: bool,
                parallelism: Parallelism,
            ) {
                let [whole, rest] = split::<$t>([rows, columns], depth);
                for (first, rows) in [(0, whole), (whole, rest)] {
                    if rows == 0 {
                        continue;
                    }
                    // SAFETY: as the caller promises.
                    unsafe {
                        let (to, a) = (to.moved([first, 0]), a.moved([first, 0]));
                        $kernel()(
                            rows, columns, depth,
                            to.start, to.in_row, to.in_column, adds,
                            a.start, a.in_row, a.in_column,
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
