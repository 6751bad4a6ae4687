//! Sums of products, each rounded or wrapped: rows of a tile, four terms at a time.

use super::widest;
use crate::kernels::number::Ring;

/// Terms that are added at a time.
pub(in crate::kernels) const TERMS: usize = 4;

/// Adds products to rows: to element `j` of row `i` those of `factors[i][k]` and `lines[k][j]`.
pub(in crate::kernels) trait AddProducts: Ring {
    fn to_one(row: &mut [Self], factors: [Self; TERMS], lines: [&[Self]; TERMS]);
    fn to_four(rows: [&mut [Self]; 4], factors: [[Self; TERMS]; 4], lines: [&[Self]; TERMS]);
}

macro_rules! add_products {
    ($($t:ident: $one:ident, $four:ident;)*) => { $(
        impl AddProducts for $t {
            fn to_one(row: &mut [$t], factors: [$t; TERMS], lines: [&[$t]; TERMS]) {
                $one(row, factors, lines);
            }

            fn to_four(rows: [&mut [$t]; 4], factors: [[$t; TERMS]; 4], lines: [&[$t]; TERMS]) {
                $four(rows, factors, lines);
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
        }
    )* };
}
add_products! {
    i32: i32_to_one, i32_to_four;
    i64: i64_to_one, i64_to_four;
    f32: f32_to_one, f32_to_four;
    f64: f64_to_one, f64_to_four;
}
