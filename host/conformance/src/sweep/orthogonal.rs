//! Results whose columns or rows are orthogonal and of length 1 by definition: what a comparison of elements does not see where
//! these depend on the matrix without bound.

#[cfg(test)]
mod tests;

use super::{judge::Wrong, numbers::number};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::Spec;
use std::borrow::Cow;

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

/// A result with what is `expected` where any orthogonal vectors will do: those of a full SVD that no singular value belongs to. Where
/// either is no number they stay.
pub(super) fn settled<'a>(
    op: &str,
    outputs: &[Spec],
    result: usize,
    got: &'a [u8],
    expected: &[u8],
) -> Cow<'a, [u8]> {
    let own = results(op).iter().find(|own| own.0 == result);
    let (Some((_, are_rows)), "Nx.Block.LinAlg.SVD") = (own, op) else {
        return Cow::Borrowed(got);
    };
    let (dtype, shape) = &outputs[result];
    let ([.., rows, columns], Some(values)) = (&shape[..], outputs[1].1.last()) else {
        return Cow::Borrowed(got);
    };
    let vectors = if *are_rows { rows } else { columns };
    if vectors <= values {
        return Cow::Borrowed(got);
    }
    let mut settled = got.to_vec();
    let size = dtype.size() as usize;
    let pairs = settled
        .chunks_exact_mut(size)
        .zip(expected.chunks_exact(size));
    for (at, (got, expected)) in (0..).zip(pairs) {
        let at: u64 = at % (rows * columns);
        let vector = if *are_rows {
            at / columns
        } else {
            at % columns
        };
        let are_numbers = [&*got, expected]
            .iter()
            .all(|bytes| number(*dtype, bytes).is_finite());
        if vector >= *values && are_numbers {
            got.copy_from_slice(expected);
        }
    }
    Cow::Owned(settled)
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
