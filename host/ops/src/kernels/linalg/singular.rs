//! Singular values and vectors of matrices that are too large for Jacobi's rotations.

use super::{
    Round,
    bidiagonal::Bidiagonal,
    chase::diagonalize,
    eigen::scale,
    householder::{BLOCK, Block, mirror},
    jacobi::{self, descending},
    rotations::Panels,
};
use crate::kernels::lanes::widest;

/// What `jacobi::svd` gives; nothing where that has to be asked.
pub(super) fn svd(
    a: &[f64],
    m: usize,
    n: usize,
    full: bool,
    round: Round,
) -> Option<[Vec<f64>; 3]> {
    let scale = scale(a.iter().copied())?;
    let tall = (m > n).then(|| Tall::new(a, m, n, scale));
    let bidiagonal = Bidiagonal::new(n, |i, j| match &tall {
        Some(tall) if i <= j => tall.columns[j * m + i],
        Some(_) => 0.0,
        None => a[i * n + j] * scale,
    });
    let [mut left, mut right] = bidiagonal.bases().map(|basis| Panels::new(&basis, n));
    let (mut d, mut e) = (bidiagonal.diagonal, bidiagonal.above);
    diagonalize(&mut d, &mut e[..n - 1], [&mut left, &mut right]).then_some(())?;
    let values: Vec<f64> = d.iter().map(|x| x.abs() / scale).collect();
    let order = descending(&values, round);
    let wide = if full { m } else { n };
    let (mut ut, mut vt) = (vec![0.0; wide * m], Vec::with_capacity(n * n));
    for (&i, to) in order.iter().zip(ut.chunks_mut(m)) {
        let row = right.row(i);
        let sign = 1f64.copysign(row[0] + 0.0);
        vt.extend(row.iter().map(|x| x * sign));
        let sign = sign * 1f64.copysign(d[i]);
        let row = left.row(i);
        to.iter_mut().zip(row).for_each(|(to, x)| *to = x * sign);
    }
    (n..wide).for_each(|i| ut[i * m + i] = 1.0);
    if let Some(tall) = tall {
        for (first, block) in tall.blocks.iter().rev() {
            block.apply(&mut ut, m, *first, true);
        }
    }
    let s = jacobi::values(order.iter().map(|&i| values[i]).collect(), round);
    let mut u = vec![0.0; m * wide];
    for (j, row) in ut.chunks(m).enumerate() {
        for (i, x) in row.iter().enumerate() {
            u[i * wide + j] = *x;
        }
    }
    Some([u, s, vt])
}

/// A matrix of more rows than columns made a triangle by reflectors.
#[derive(Debug)]
struct Tall {
    /// The triangle's columns, of which what is below the diagonal is not looked at.
    columns: Vec<f64>,
    blocks: Vec<(usize, Block)>,
}

impl Tall {
    fn new(a: &[f64], m: usize, n: usize, scale: f64) -> Tall {
        let mut columns = vec![0.0; n * m];
        for (i, row) in a.chunks(n).enumerate() {
            for (j, x) in row.iter().enumerate() {
                columns[j * m + i] = x * scale;
            }
        }
        let mut blocks = Vec::new();
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            let (panel, others) = columns[start * m..].split_at_mut((end - start) * m);
            let mut vectors = Vec::new();
            let mut taus = Vec::new();
            for k in start..end {
                let (column, next) = panel[(k - start) * m..].split_at_mut(m);
                let (head, below) = column[k..]
                    .split_first_mut()
                    .expect("more rows than columns");
                let (tau, end) = mirror(head, below);
                for next in next.chunks_mut(m) {
                    reflect(&mut next[k..], &column[k..], tau);
                }
                vectors.resize(vectors.len() + k - start, 0.0);
                vectors.extend(&column[k..]);
                taus.push(tau);
                column[k] = end;
            }
            let block = Block::new(vectors, m - start, &taus);
            block.apply(others, m, start, false);
            blocks.push((start, block));
        }
        Tall { columns, blocks }
    }
}

widest! {
    fn reflect(x: &mut [f64], by: &[f64], tau: f64) {
        let mut sums = [0.0; 32];
        let (parts, rest) = x.as_chunks::<32>();
        let (by_parts, by_rest) = by.as_chunks::<32>();
        for (x, y) in parts.iter().zip(by_parts) {
            for k in 0..32 {
                sums[k] = x[k].mul_add(y[k], sums[k]);
            }
        }
        let rest: f64 = rest.iter().zip(by_rest).map(|(x, y)| x * y).sum();
        let share = tau * (rest + sums.iter().sum::<f64>());
        for (x, y) in x.iter_mut().zip(by) {
            *x = y.mul_add(-share, *x);
        }
    }
}
