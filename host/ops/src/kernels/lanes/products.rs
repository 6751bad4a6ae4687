//! Sums of products, each rounded or wrapped: rows of a tile, four terms at a time.

use super::widest;
use crate::kernels::number::Ring;

/// Terms that are added at a time.
pub(in crate::kernels) const TERMS: usize = 4;

/// Adds products to rows: to element `j` of row `i` those of `factors[i][k]` and `lines[k][j]`.
pub(in crate::kernels) trait AddProducts: Ring {
    fn to_one(row: &mut [Self], factors: [Self; TERMS], lines: [&[Self]; TERMS]);
    fn to_four(rows: [&mut [Self]; 4], factors: [[Self; TERMS]; 4], lines: [&[Self]; TERMS]);

    /// Sets `to`, rows of `extents[0]` elements, to a product of matrices that sums `extents[1]` terms for each. `steps` are the
    /// elements of the left one from a row to the next and from a term to the next, and those of the right one from a term to the
    /// next, whose columns are neighbours.
    fn small(
        to: &mut [Self],
        extents: [usize; 2],
        left: &[Self],
        right: &[Self],
        steps: [usize; 3],
    );
}

/// The product of as many columns as have the same rows, from column `first` on, `R` rows and `W` columns of it at a time.
#[inline(always)]
fn block<T: Ring, const R: usize, const W: usize>(
    to: &mut [T],
    [columns, depth]: [usize; 2],
    mut first: usize,
    left: &[T],
    right: &[T],
    [row, term, apart]: [usize; 3],
) -> usize {
    while first + W <= columns {
        let mut sums = [[T::ZERO; W]; R];
        for k in 0..depth {
            let line = &right[k * apart + first..][..W];
            for (i, sums) in sums.iter_mut().enumerate() {
                let factor = left[i * row + k * term];
                for (sum, x) in sums.iter_mut().zip(line) {
                    *sum = sum.add(factor.multiply(*x));
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            to[i * columns + first..][..W].copy_from_slice(sums);
        }
        first += W;
    }
    first
}

#[inline(always)]
fn some_rows<T: Ring, const R: usize>(
    to: &mut [T],
    extents: [usize; 2],
    left: &[T],
    right: &[T],
    steps: [usize; 3],
) {
    let first = block::<T, R, 16>(to, extents, 0, left, right, steps);
    let first = block::<T, R, 8>(to, extents, first, left, right, steps);
    let first = block::<T, R, 4>(to, extents, first, left, right, steps);
    block::<T, R, 1>(to, extents, first, left, right, steps);
}

macro_rules! add_products {
    ($($t:ident: $one:ident, $four:ident, $small:ident;)*) => { $(
        impl AddProducts for $t {
            fn to_one(row: &mut [$t], factors: [$t; TERMS], lines: [&[$t]; TERMS]) {
                $one(row, factors, lines);
            }

            fn to_four(rows: [&mut [$t]; 4], factors: [[$t; TERMS]; 4], lines: [&[$t]; TERMS]) {
                $four(rows, factors, lines);
            }

            fn small(
                to: &mut [$t],
                extents: [usize; 2],
                left: &[$t],
                right: &[$t],
                steps: [usize; 3],
            ) {
                $small(to, extents, left, right, steps);
            }
        }

        widest! {
            fn $one(row: &mut [$t], factors: [$t; TERMS], lines: [&[$t]; TERMS]) {
                let lines = lines.map(|line| &line[..row.len()]);
                for j in 0..row.len() {
                    for k in 0..TERMS {
                        row[j] = Ring::add(row[j], Ring::multiply(factors[k], lines[k][j]));
                    }
                }
            }

            fn $four(rows: [&mut [$t]; 4], factors: [[$t; TERMS]; 4], lines: [&[$t]; TERMS]) {
                let width = rows[0].len();
                let lines = lines.map(|line| &line[..width]);
                let rows = rows.map(|row| &mut row[..width]);
                for j in 0..width {
                    let terms = lines.map(|line| line[j]);
                    for i in 0..4 {
                        let mut sum = rows[i][j];
                        for k in 0..TERMS {
                            sum = Ring::add(sum, Ring::multiply(factors[i][k], terms[k]));
                        }
                        rows[i][j] = sum;
                    }
                }
            }

            fn $small(to: &mut [$t], extents: [usize; 2], left: &[$t], right: &[$t], steps: [usize; 3]) {
                let rows = to.len() / extents[0];
                let whole = rows - rows % 4;
                for row in (0..whole).step_by(4) {
                    let own = &mut to[row * extents[0]..];
                    some_rows::<$t, 4>(own, extents, &left[row * steps[0]..], right, steps);
                }
                for row in whole..rows {
                    let own = &mut to[row * extents[0]..];
                    some_rows::<$t, 1>(own, extents, &left[row * steps[0]..], right, steps);
                }
            }
        }
    )* };
}
add_products! {
    i32: i32_to_one, i32_to_four, i32_small;
    i64: i64_to_one, i64_to_four, i64_small;
    f32: f32_to_one, f32_to_four, f32_small;
    f64: f64_to_one, f64_to_four, f64_small;
}
