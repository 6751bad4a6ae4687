//! Results whose columns or rows are orthogonal and of length 1 by definition: what a comparison of elements does not see where
//! these depend on the matrix without bound.

#[cfg(test)]
mod tests;

use super::{judge::Wrong, numbers::number};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::Spec;

/// Of a sum of n products, in n ε.
const UNITS: f64 = 10.0;

/// Which results of an op that is, and whether their rows are instead of their columns.
fn results(op: &str) -> &'static [(usize, bool)] {
    match op {
        "Nx.Block.LinAlg.QR" => &[(0, false)],
        "Nx.Block.LinAlg.Eigh" => &[(1, false)],
        "Nx.Block.LinAlg.SVD" => &[(0, false), (2, true)],
        _ => &[],
    }
}

/// The first matrix among results that is not as it has to be. Those with NaN are left out.
pub(super) fn judge(op: &str, outputs: &[Spec], got: &[Vec<u8>]) -> Option<Wrong> {
    let each = results(op).iter();
    let mut wrong =
        each.filter_map(|(result, are_rows)| skewed(&outputs[*result], &got[*result], *are_rows));
    wrong.next()
}

fn skewed((dtype, shape): &Spec, got: &[u8], are_rows: bool) -> Option<Wrong> {
    let [.., rows, columns] = shape[..] else {
        return None;
    };
    let [rows, columns] = [rows, columns].map(|extent| extent as usize);
    let cells = cells(*dtype, got);
    let (vectors, len) = if are_rows {
        (rows, columns)
    } else {
        (columns, rows)
    };
    let bound = UNITS * len as f64 * dtype.part().epsilon();
    for (matrix, cells) in cells.chunks((rows * columns).max(1)).enumerate() {
        let cell = |vector: usize, k: usize| match are_rows {
            true => cells[vector * columns + k],
            false => cells[k * columns + vector],
        };
        for (i, j) in (0..vectors).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let product = (0..len).fold([0.0; 2], |[re, im], k| {
                let ([a, b], [c, d]) = (cell(i, k), cell(j, k));
                [re + a * c + b * d, im + a * d - b * c]
            });
            let expected = f64::from(u8::from(i == j));
            if (product[0] - expected).hypot(product[1]) > bound {
                return Some(Wrong {
                    index: (matrix * rows * columns) as u64,
                    got: format!("{:e} as the product of vectors {j} and {i}", product[0]),
                    expected: format!("{expected} within {bound:e}"),
                    ulp: None,
                });
            }
        }
    }
    None
}

/// Real and imaginary parts.
fn cells(dtype: DType, bytes: &[u8]) -> Vec<[f64; 2]> {
    let part = dtype.part();
    let parts = bytes.chunks_exact(part.size() as usize);
    let parts: Vec<f64> = parts.map(|bytes| number(part, bytes)).collect();
    match dtype.is_complex() {
        true => parts.as_chunks().0.to_vec(),
        false => parts.iter().map(|re| [*re, 0.0]).collect(),
    }
}
