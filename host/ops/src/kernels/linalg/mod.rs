//! Linear algebra: each matrix of a batch by itself. What is rounded on the way to the results is rounded to the results'
//! precision, f32 at least, as Nx's own functions do; sums are in f64. Large matrices are computed in blocks, and rounded once,
//! for those who need no more than a device gives.

mod bidiagonal;
mod blocked;
mod chase;
mod eigen;
mod factor;
mod field;
mod householder;
mod jacobi;
mod lines;
mod part;
mod qr;
mod reflect;
mod rotations;
mod rows;
mod singular;
mod tridiagonal;

use self::{field::Field, part::Part};
use super::{
    element::{Complex, Register},
    elementwise::is_single,
    kernel::Sums,
    lanes::is_fused,
    operand::Operand,
    parallel,
    product::Parallelism,
};
use crate::{
    attrs::{Attr, ints, number, text},
    partial::SINGULAR,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::DType;
use std::{borrow::Cow, sync::OnceLock};

/// Rounds to the precision of results.
type Round = fn(f64) -> f64;

fn rounding(dtype: DType) -> Round {
    match is_single(dtype.part()) {
        true => |x| f64::from(x as f32),
        false => |x| x,
    }
}

/// Runs `$body` with `$T` naming what matrices are made of where results are of `$dtype`.
macro_rules! by_field {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.is_complex() {
            true => {
                type $T = Complex<f64>;
                $body
            }
            false => {
                type $T = f64;
                $body
            }
        }
    };
}

/// The elements of an operand.
fn read<T: Field>(x: &View, round: Round) -> Result<Vec<T>, String> {
    let count = x.shape.iter().product::<u64>() as usize;
    let mut cells = vec![T::ZERO; count];
    if count > 0 {
        let operand = Operand::broadcast(x, x.shape).ok_or("shapes do not fit")?;
        T::gather(&operand, &mut cells);
    }
    let rounds = round(1.0 + f64::EPSILON) == 1.0;
    if rounds && !is_single(x.dtype.part()) {
        cells
            .iter_mut()
            .for_each(|cell| *cell = cell.rounded(round));
    }
    Ok(cells)
}

/// Rows and columns of the last two axes.
fn extents(shape: &[u64]) -> (usize, usize) {
    match shape {
        [.., rows, columns] => (*rows as usize, *columns as usize),
        _ => (1, 1),
    }
}

fn store<T: Field>(cells: &[T], out: &mut Out) {
    if !out.dtype.is_integer() {
        return T::store(cells, out.dtype, out.bytes);
    }
    let whole: Vec<i64> = cells.iter().map(|cell| cell.real() as i64).collect();
    i64::store(&whole, out.dtype, out.bytes);
}

/// Results of each matrix of `a`, one after another: `work` is given its number and its elements.
fn each<'a, T: Field, const N: usize>(
    a: impl Into<Cow<'a, [T]>>,
    size: usize,
    outputs: &mut [Out],
    work: impl Fn(usize, Vec<T>) -> Result<[Vec<T>; N], String> + Sync,
) -> Outcome {
    let a = a.into();
    let batch = a.len().checked_div(size).unwrap_or(0);
    let put = |results: [Vec<T>; N], outputs: &mut [Out]| {
        let pairs = outputs.iter_mut().zip(&results);
        pairs.for_each(|(out, cells)| store(cells, out));
    };
    if batch == 1 {
        put(work(0, a.into_owned())?, outputs);
        return Ok(());
    }
    let mut places: Vec<Vec<Out>> = (0..batch).map(|_| Vec::with_capacity(N)).collect();
    for out in outputs {
        let size = out.bytes.len().checked_div(batch).unwrap_or(0);
        let mut rest = &mut *out.bytes;
        for place in &mut places {
            let (bytes, after) = rest.split_at_mut(size);
            rest = after;
            place.push(Out {
                dtype: out.dtype,
                shape: &[],
                bytes,
            });
        }
    }
    let failure = OnceLock::new();
    parallel::for_each_part(&mut places, 1, &|i, places| match work(
        i,
        a[i * size..(i + 1) * size].to_vec(),
    ) {
        Ok(results) => put(results, &mut places[0]),
        Err(why) => drop(failure.set(why)),
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Rows and columns up to which every step is rounded whoever asks, as the documentation of Nx shows it.
const SMALL: usize = 8;

/// On how many cores a matrix is worked on in blocks, where results may differ from those of single steps.
fn blocks(sums: Sums, x: &View) -> Option<Parallelism> {
    let (m, n) = extents(x.shape);
    let is_one = x.shape.iter().product::<u64>() == (m * n) as u64;
    let threads = if is_one {
        Parallelism::Rayon(0)
    } else {
        Parallelism::None
    };
    (sums == Sums::Own && m.max(n) > SMALL).then_some(threads)
}

pub(crate) fn cholesky(inputs: &[View], outputs: &mut [Out], _: &[Attr], sums: Sums) -> Outcome {
    let (n, _) = extents(inputs[0].shape);
    let round = rounding(outputs[0].dtype);
    let blocks = blocks(sums, &inputs[0]);
    by_field!(outputs[0].dtype, T => {
        let a = read::<T>(&inputs[0], round)?;
        each(a, n * n, outputs, |_, mut a| {
            let Some(threads) = blocks else {
                return Ok([factor::cholesky(a, n, round)]);
            };
            blocked::cholesky(&mut a, n, threads);
            Ok([a])
        })
    })
}

pub(crate) fn lu(inputs: &[View], outputs: &mut [Out], _: &[Attr], sums: Sums) -> Outcome {
    by_field!(outputs[1].dtype, T => lu_of::<T>(&inputs[0], outputs, sums))
}

fn lu_of<T: Field>(x: &View, outputs: &mut [Out], sums: Sums) -> Outcome {
    let (n, _) = extents(x.shape);
    let round = rounding(outputs[1].dtype);
    let a = read::<T>(x, round)?;
    let blocks = blocks(sums, x);
    each(a, n * n, outputs, |_, mut a| {
        let rows = match blocks {
            Some(threads) => blocked::lu(&mut a, n, threads),
            None => factor::lu(&mut a, n, round),
        };
        let mut p = vec![T::ZERO; n * n];
        let mut l = p.clone();
        for (i, u) in a.chunks_exact_mut(n).enumerate() {
            p[rows[i] * n + i] = T::ONE;
            l[i * n..i * n + i].copy_from_slice(&u[..i]);
            l[i * n + i] = T::ONE;
            u[..i].fill(T::ZERO);
        }
        Ok([p, l, a])
    })
}

pub(crate) fn determinant(inputs: &[View], outputs: &mut [Out], _: &[Attr], sums: Sums) -> Outcome {
    let (n, _) = extents(inputs[0].shape);
    let round = rounding(outputs[0].dtype);
    let blocks = blocks(sums, &inputs[0]);
    by_field!(outputs[0].dtype, T => {
        let a = read::<T>(&inputs[0], round)?;
        if n == 0 {
            let ones = vec![T::ONE; outputs[0].shape.iter().product::<u64>() as usize];
            store(&ones, &mut outputs[0]);
            return Ok(());
        }
        each(a, n * n, outputs, |_, a| {
            Ok([vec![match blocks {
                Some(threads) => blocked::determinant(a, n, threads),
                None => factor::determinant(a, n, round),
            }]])
        })
    })
}

/// A matrix of right sides: how many, and how far apart their elements and they themselves lie.
fn sides(shape: &[u64], n: usize, vectors: bool, left: bool) -> (usize, usize, usize) {
    let (rows, columns) = extents(shape);
    match (vectors, left) {
        (true, _) => (1, 1, n),
        (false, true) => (columns, columns, 1),
        (false, false) => (rows, 1, columns),
    }
}

pub(crate) fn triangular_solve(
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
    sums: Sums,
) -> Outcome {
    by_field!(outputs[0].dtype, T => triangular_solve_of::<T>(inputs, outputs, attrs, sums))
}

fn triangular_solve_of<T: Field>(
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
    sums: Sums,
) -> Outcome {
    let [a, b] = inputs else {
        return Err("expected two operands".to_owned());
    };
    let (n, _) = extents(a.shape);
    let round = rounding(outputs[0].dtype);
    let left = ints(attrs, "left_side") != [0];
    let turned = transposes(attrs) == left;
    let conjugated = conjugates(attrs);
    let lower = (ints(attrs, "lower") != [0]) != turned;
    let vectors = b.shape.len() < a.shape.len();
    let (count, step, apart) = sides(b.shape, n, vectors, left);
    let (own, right) = (read::<T>(a, round)?, read::<T>(b, round)?);
    let blocks = blocks(sums, a);
    each(own, n * n, outputs, |i, mut a| {
        let b = &right[i * n * count..(i + 1) * n * count];
        if let Some(threads) = blocks {
            if conjugated {
                a.iter_mut().for_each(|x| *x = x.conjugate());
            }
            let a = Part::new(&a, [n, n], n);
            let a = if turned { a.turned() } else { a };
            let x = blocked::triangular_solve(a, lower, b, step == 1, threads);
            return Ok([x.ok_or(SINGULAR.reason)?]);
        }
        let at = |i: usize, j: usize| {
            let x = if turned { a[j * n + i] } else { a[i * n + j] };
            if conjugated { x.conjugate() } else { x }
        };
        let mut x = b.to_vec();
        for side in 0..count {
            if !factor::substitute(&at, n, lower, &mut x[side * apart..], step) {
                return Err(SINGULAR.reason.to_owned());
            }
        }
        Ok([x])
    })
}

/// Whether conjugates are asked for.
fn conjugates(attrs: &[Attr]) -> bool {
    text(attrs, "transform_a") == Some("conjugate")
}

/// Whether a transposition is asked for.
fn transposes(attrs: &[Attr]) -> bool {
    text(attrs, "transform_a") == Some("transpose")
}

pub(crate) fn solve(inputs: &[View], outputs: &mut [Out], _: &[Attr], sums: Sums) -> Outcome {
    by_field!(outputs[0].dtype, T => solve_of::<T>(inputs, outputs, sums))
}

fn solve_of<T: Field>(inputs: &[View], outputs: &mut [Out], sums: Sums) -> Outcome {
    let [a, b] = inputs else {
        return Err("expected two operands".to_owned());
    };
    let (n, _) = extents(a.shape);
    let round = rounding(outputs[0].dtype);
    let (count, step, apart) = sides(b.shape, n, b.shape.len() < a.shape.len(), true);
    let (own, right) = (read::<T>(a, round)?, read::<T>(b, round)?);
    let blocks = blocks(sums, a);
    each(own, n * n, outputs, |i, mut a| {
        let b = &right[i * n * count..(i + 1) * n * count];
        if let Some(threads) = blocks {
            let x = blocked::solve(a, n, b, threads).ok_or(SINGULAR.reason)?;
            return Ok([x]);
        }
        let rows = factor::lu(&mut a, n, round);
        let mut x: Vec<T> = rows
            .iter()
            .flat_map(|row| b[row * count..(row + 1) * count].iter().copied())
            .collect();
        let lower = |i: usize, j: usize| if i == j { T::ONE } else { a[i * n + j] };
        let upper = |i: usize, j: usize| a[i * n + j];
        for side in 0..count {
            let x = &mut x[side * apart..];
            factor::substitute(&lower, n, true, x, step);
            (0..n).for_each(|i| x[i * step] = x[i * step].rounded(round));
            if !factor::substitute(&upper, n, false, x, step) {
                return Err(SINGULAR.reason.to_owned());
            }
        }
        Ok([x])
    })
}

pub(crate) fn qr(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let (m, n) = extents(inputs[0].shape);
    let wide = if text(attrs, "mode") == Some("complete") {
        m
    } else {
        m.min(n)
    };
    let eps = number(attrs, "eps").unwrap_or(1.0e-10);
    let round = rounding(outputs[0].dtype);
    let blocks = blocks(sums, &inputs[0]);
    by_field!(outputs[0].dtype, T => {
        let a = read::<T>(&inputs[0], round)?;
        each(a, m * n, outputs, |_, a| {
            Ok(match blocks {
                Some(threads) => reflect::qr(a, [m, n, wide], eps, threads),
                None => qr::qr(a, m, n, wide, eps),
            })
        })
    })
}

/// Whether vectors of so many rows may be found in other ways than by what others are compared with.
fn is_fast(n: usize, sums: Sums) -> bool {
    n > jacobi::UNSIGNED && sums == Sums::Own && is_fused()
}

pub(crate) fn eigh(inputs: &[View], outputs: &mut [Out], _: &[Attr], sums: Sums) -> Outcome {
    let (n, _) = extents(inputs[0].shape);
    let round = rounding(outputs[0].dtype);
    by_field!(outputs[0].dtype, T => {
        let a = read::<T>(&inputs[0], round)?;
        each(&a, n * n, outputs, |_, a| {
            let fast = is_fast(n, sums).then(|| eigen::eigh(&a, n, round)).flatten();
            Ok(fast.unwrap_or_else(|| jacobi::eigh(a, n, round)))
        })
    })
}

/// A matrix that has more columns than rows is turned.
pub(crate) fn svd(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], sums: Sums) -> Outcome {
    let (m, n) = extents(inputs[0].shape);
    let full = ints(attrs, "full_matrices?") != [0];
    let round = rounding(outputs[0].dtype);
    let a = read(&inputs[0], round)?;
    let turned = |a: &[f64], m: usize, n: usize| -> Vec<f64> {
        (0..m * n).map(|at| a[at % m * n + at / m]).collect()
    };
    let factors = |a: Vec<f64>, m: usize, n: usize| {
        let fast = is_fast(n, sums).then(|| singular::svd(&a, m, n, full, round));
        fast.flatten()
            .unwrap_or_else(|| jacobi::svd(a, m, n, full, round))
    };
    each(&a, m * n, outputs, |_, a| {
        if m >= n {
            return Ok(factors(a, m, n));
        }
        let [v, s, ut] = factors(turned(&a, m, n), n, m);
        let wide = if full { n } else { m };
        Ok([turned(&ut, m, m), s, turned(&v, n, wide)])
    })
}
