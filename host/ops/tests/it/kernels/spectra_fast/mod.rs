//! Eigenvalues and singular values of large matrices as users get them: what factors have to satisfy, closed forms, and what
//! others are compared with.

mod eigen;
mod singular;

use super::{Random, Sample, Tensor, tensor};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_ops::{
    attrs::Attr,
    kernels::{self, Out},
};

const EIGH: &str = "Nx.Block.LinAlg.Eigh";
const SVD: &str = "Nx.Block.LinAlg.SVD";

const SIZES: [usize; 8] = [33, 34, 47, 64, 65, 100, 129, 200];

/// Numbers of `x`'s type; a complex one is two.
fn numbers(bytes: &[u8], dtype: DType) -> Vec<f64> {
    match dtype {
        DType::F32 | DType::C64 => bytes.chunks(4).map(|x| f32::pop(x).into()).collect(),
        _ => bytes.chunks(8).map(f64::pop).collect(),
    }
}

fn results(op: &str, x: &Tensor, shapes: &[&[u64]], attrs: &[Attr], fast: bool) -> Vec<Vec<f64>> {
    let size = |shape: &[u64]| (x.dtype.size() * shape.iter().product::<u64>()) as usize;
    let mut bytes: Vec<Vec<u8>> = shapes.iter().map(|shape| vec![0xa5; size(shape)]).collect();
    let outs = shapes.iter().zip(&mut bytes).map(|(shape, bytes)| Out {
        dtype: x.dtype,
        shape,
        bytes,
    });
    let run = if fast {
        kernels::run_fast
    } else {
        kernels::run
    };
    run(op, &[x.view()], &mut outs.collect::<Vec<_>>(), attrs).unwrap();
    bytes.iter().map(|bytes| numbers(bytes, x.dtype)).collect()
}

fn eigh(x: &Tensor, fast: bool) -> Vec<Vec<f64>> {
    let n = x.shape[0];
    results(EIGH, x, &[&[n], &[n, n]], &[], fast)
}

fn svd(x: &Tensor, full: bool, fast: bool) -> Vec<Vec<f64>> {
    let [m, n] = x.shape[..] else { unreachable!() };
    let k = m.min(n);
    let (rows, columns) = if full { (m, n) } else { (k, k) };
    let attrs = [Attr::ints("full_matrices?", [full.into()])];
    results(SVD, x, &[&[m, rows], &[k], &[columns, n]], &attrs, fast)
}

fn times(a: &[f64], b: &[f64], k: usize) -> Vec<f64> {
    let n = b.len() / k;
    let row = |a: &[f64]| {
        let mut sums = vec![0.0; n];
        for (x, b) in a.iter().zip(b.chunks(n)) {
            sums.iter_mut().zip(b).for_each(|(sum, y)| *sum += x * y);
        }
        sums
    };
    a.chunks(k).flat_map(row).collect()
}

fn turned(a: &[f64], columns: usize) -> Vec<f64> {
    let rows = a.len() / columns;
    let cells = (0..a.len()).map(|at| a[at % rows * columns + at / rows]);
    cells.collect()
}

fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |x: f64, y| x.max(y.abs()))
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let apart = a.iter().zip(b).map(|(x, y)| (x - y).abs());
    apart.fold(0.0, |x, y| if y > x || y.is_nan() { y } else { x })
}

fn unit(n: usize) -> Vec<f64> {
    let cells = (0..n * n).map(|at| f64::from(u8::from(at % (n + 1) == 0)));
    cells.collect()
}

#[track_caller]
fn assert_orthogonal(rows: &[f64], columns: usize, eps: f64, what: &str) {
    let count = rows.len() / columns;
    let apart = apart(&times(rows, &turned(rows, columns), columns), &unit(count));
    assert!(apart <= 10.0 * columns as f64 * eps, "{what}: {apart:e}");
}

fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let one = |_| random.below(1 << 30) as f64 / (1u64 << 29) as f64 - 1.0;
    (0..count).map(one).collect()
}

#[test]
fn batches_are_their_matrices() {
    let n = 40;
    let a = random(5 * n * n, 7);
    let (rows, size) = (n as u64, n * n);
    let x = tensor(&[5, rows, rows], &a);
    let all = results(EIGH, &x, &[&[5, rows], &[5, rows, rows]], &[], true);
    for (i, a) in a.chunks(size).enumerate() {
        let one = eigh(&tensor(&[rows, rows], a), true);
        assert_eq!(one[0], all[0][i * n..(i + 1) * n]);
        assert_eq!(one[1], all[1][i * size..(i + 1) * size]);
    }
    let shapes: [&[u64]; 3] = [&[5, rows, rows], &[5, rows], &[5, rows, rows]];
    let all = results(SVD, &x, &shapes, &[], true);
    for (i, a) in a.chunks(size).enumerate() {
        let one = svd(&tensor(&[rows, rows], a), true, true);
        assert_eq!(one[0], all[0][i * size..(i + 1) * size]);
        assert_eq!(one[1], all[1][i * n..(i + 1) * n]);
    }
}

#[test]
fn what_is_not_finite_is_nan_throughout() {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut a = random(1600, 3);
        a[1000] = bad;
        let x = tensor(&[40, 40], &a);
        let all = [eigh(&x, true), svd(&x, false, true), svd(&x, true, true)];
        assert!(all.iter().flatten().flatten().all(|x| x.is_nan()));
    }
}
