//! Linear algebra in blocks, against what factors have to satisfy and against single steps, which have oracles of their own.

mod qr;
mod triangles;

use super::linalg_complex::{C, product, times};
use nx_vulkan_abi::{DType, layout::contiguous_strides};
use nx_vulkan_ops::{
    Attr,
    kernels::{Out, View, run, run_fast},
    values::Rng,
};

/// About where parts of matrices begin and end.
const SIZES: [usize; 12] = [9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129];

const TYPES: [DType; 3] = [DType::F32, DType::F64, DType::C128];

/// A shape, and elements of it. Real ones have imaginary parts of 0.
type Matrix<'a> = (&'a [usize], &'a [C]);

fn bytes_of(dtype: DType, cells: &[C]) -> Vec<u8> {
    let bytes = |x: &C| match dtype {
        DType::F32 => (x.0 as f32).to_ne_bytes().to_vec(),
        DType::F64 => x.0.to_ne_bytes().to_vec(),
        _ => [x.0.to_ne_bytes(), x.1.to_ne_bytes()].concat(),
    };
    cells.iter().flat_map(bytes).collect()
}

fn cells_of(dtype: DType, bytes: &[u8]) -> Vec<C> {
    let wide = |x: &[u8]| f64::from_ne_bytes(x.try_into().unwrap());
    let cell = |x: &[u8]| match dtype {
        DType::F32 => (f32::from_ne_bytes(x.try_into().unwrap()).into(), 0.0),
        DType::F64 => (wide(x), 0.0),
        _ => (wide(&x[..8]), wide(&x[8..])),
    };
    bytes.chunks(dtype.size() as usize).map(cell).collect()
}

/// The results of those shapes, of single steps and of blocks.
fn both(
    op: &str,
    dtype: DType,
    inputs: &[Matrix<'_>],
    shapes: &[&[usize]],
    attrs: &[Attr],
) -> [Result<Vec<Vec<C>>, String>; 2] {
    let long = |shape: &[usize]| -> Vec<u64> { shape.iter().map(|n| *n as u64).collect() };
    let op = match op {
        "triangular_solve" => op.to_owned(),
        _ => format!("Nx.Block.LinAlg.{op}"),
    };
    let operands = inputs.iter().map(|(shape, cells)| {
        let shape = long(shape);
        (contiguous_strides(&shape), shape, bytes_of(dtype, cells))
    });
    let operands: Vec<_> = operands.collect();
    let views = operands.iter().map(|(strides, shape, bytes)| View {
        dtype,
        shape,
        strides,
        offset: 0,
        bytes,
    });
    let views: Vec<View<'_>> = views.collect();
    [run, run_fast].map(|kernel| {
        let shapes: Vec<Vec<u64>> = shapes.iter().map(|shape| long(shape)).collect();
        let size = |shape: &Vec<u64>| (shape.iter().product::<u64>() * dtype.size()) as usize;
        let mut bytes: Vec<Vec<u8>> = shapes.iter().map(|shape| vec![0xa5; size(shape)]).collect();
        let outs = shapes.iter().zip(&mut bytes).map(|(shape, bytes)| Out {
            dtype,
            shape,
            bytes,
        });
        let mut outs: Vec<Out<'_>> = outs.collect();
        kernel(&op, &views, &mut outs, attrs).map_err(|error| error.to_string())?;
        Ok(bytes.iter().map(|bytes| cells_of(dtype, bytes)).collect())
    })
}

/// The results of blocks.
fn fast(
    op: &str,
    dtype: DType,
    inputs: &[Matrix<'_>],
    shapes: &[&[usize]],
    attrs: &[Attr],
) -> Vec<Vec<C>> {
    let [_, fast] = both(op, dtype, inputs, shapes, attrs);
    fast.unwrap_or_else(|why| panic!("{why}"))
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f32::EPSILON.into(),
        _ => f64::EPSILON,
    }
}

/// Whether two are as near as rounding in so many steps allows, relative to the largest.
#[track_caller]
fn assert_near(dtype: DType, got: &[C], expected: &[C], steps: f64) {
    assert_eq!(got.len(), expected.len());
    let largest = expected
        .iter()
        .fold(0f64, |most, x| most.max(x.0.hypot(x.1)));
    let least = steps * epsilon(dtype) * largest;
    for (at, (x, y)) in got.iter().zip(expected).enumerate() {
        let apart = (x.0 - y.0).hypot(x.1 - y.1);
        assert!(apart <= least, "{dtype:?}, {at}: {x:?} for {y:?}");
    }
}

/// Numbers that every type has.
fn numbers(dtype: DType, count: usize, rng: &mut Rng) -> Vec<C> {
    let mut part = || (rng.below(4001) as f64 - 2000.0) / 1024.0;
    let complex = dtype.is_complex();
    let cell = |_| (part(), if complex { part() } else { 0.0 });
    (0..count).map(cell).collect()
}

fn rounded(dtype: DType, cells: &[C]) -> Vec<C> {
    cells_of(dtype, &bytes_of(dtype, cells))
}

/// Random, graded, ill conditioned, of rank 3, with columns of 0, and of 0 alone.
fn matrices(dtype: DType, m: usize, n: usize, rng: &mut Rng) -> Vec<Vec<C>> {
    let a = numbers(dtype, m * n, rng);
    let scaled = |by: &dyn Fn(usize, usize) -> f64| {
        let cells = (0..m * n).map(|at| times(a[at], (by(at / n, at % n), 0.0)));
        cells.collect::<Vec<C>>()
    };
    let graded = scaled(&|_, j| 10f64.powi(-(j as i32 % 13)));
    let hollow = scaled(&|_, j| f64::from(u8::from(j % 3 != 1)));
    let hilbert = (0..m * n).map(|at| (1.0 / (at / n + at % n + 1) as f64, 0.0));
    let low = product(&a[..m * 3], &a[..3 * n], m, 3, n);
    let all = [
        graded,
        hollow,
        hilbert.collect(),
        low,
        vec![(0.0, 0.0); m * n],
        a,
    ];
    all.iter().map(|a| rounded(dtype, a)).collect()
}
