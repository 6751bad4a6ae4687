//! Eigenvalues and eigenvectors of matrices that are too large for Jacobi's rotations.

use super::{
    Round,
    jacobi::descending,
    lines::Line,
    rotations::Panels,
    tridiagonal::{Tridiagonal, diagonalize},
};

/// The power of two that makes 1 to 2 of the largest of these numbers' magnitudes; nothing where one is not finite or all are 0.
pub(super) fn scale(parts: impl Iterator<Item = f64>) -> Option<f64> {
    let largest = parts.fold(0.0, |largest: f64, x| match x.is_nan() {
        true => f64::INFINITY,
        false => largest.max(x.abs()),
    });
    let exponent = (largest.to_bits() >> 52) as i64 - 1023;
    (largest > 0.0 && largest < f64::INFINITY)
        .then(|| 2f64.powi(-exponent.clamp(-1000, 1000) as i32))
}

/// What `jacobi::eigh` gives; nothing where that has to be asked.
pub(super) fn eigh<T: Line>(a: &[T], n: usize, round: Round) -> Option<[Vec<T>; 2]> {
    let cell = |i: usize, j: usize| match i == j {
        true => T::of(a[i * n + j].real()),
        false => a[i * n + j],
    };
    let lower = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let scale = scale(lower.flat_map(|(i, j)| cell(i, j).parts()))?;
    let tridiagonal = Tridiagonal::new(n, |i, j| cell(i, j).scaled(scale));
    let (basis, mut below) = tridiagonal.basis();
    let mut values = tridiagonal.diagonal;
    let mut vectors = Panels::new(&basis, basis.len() / n);
    diagonalize(&mut values, &mut below, &mut vectors).then_some(())?;
    values.iter_mut().for_each(|x| *x /= scale);
    let magnitudes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    let order = descending(&magnitudes, round);
    let mut sorted = vec![T::ZERO; n * n];
    for (j, &i) in order.iter().enumerate() {
        let row = vectors.row(i);
        let phase = T::of_parts(&row).phase().conjugate();
        for (k, parts) in row.chunks(T::PARTS).enumerate() {
            sorted[k * n + j] = T::of_parts(parts) * phase;
        }
    }
    Some([order.iter().map(|&i| T::of(values[i])).collect(), sorted])
}
