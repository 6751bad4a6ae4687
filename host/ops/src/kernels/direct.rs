//! Products of matrices of one float type whose axes lie in equal steps: read and written where they are, nothing packed.

use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::collapse;

use super::lanes::{AddProducts, TERMS};
use super::number::Number;
use super::parallel;
use super::product::{Matmul, Matrix, Parallelism};
use crate::attrs::{Attr, ints};
use crate::view::{Out, View};

/// Multiplications below which a product stays on one core.
const TASK: usize = 1 << 18;
/// Multiplications up to which products are made without the kernels, which prepare for longer than that takes.
const SMALL: usize = 1 << 11;
/// Rows that one core multiplies at a time where there are many, and the other factor stays in its cache.
const STRIP: usize = 512;
/// Elements of a factor that do.
const KEPT: usize = 1 << 14;
/// Elements of a vector that one core makes at a time.
const PART: usize = 1024;

/// One operand: elements between neighbours along its free and its contracted axes, and where each batch begins.
struct Steps {
    free: (usize, isize),
    depth: (usize, isize),
    batches: Vec<usize>,
}

/// Multiplies, unless types or strides ask for more than this.
pub(super) fn run(a: &View, b: &View, out: &mut Out, attrs: &[Attr]) -> bool {
    if a.dtype != out.dtype || b.dtype != out.dtype {
        return false;
    }
    match out.dtype {
        DType::F32 => multiply::<f32>(a, b, out, attrs),
        DType::F64 => multiply::<f64>(a, b, out, attrs),
        DType::C64 => complex::<f32>(DType::F32, a, b, out, attrs),
        DType::C128 => complex::<f64>(DType::F64, a, b, out, attrs),
        _ => None,
    }
    .is_some()
}

fn multiply<T: Matmul + AddProducts>(
    a: &View,
    b: &View,
    out: &mut Out,
    attrs: &[Attr],
) -> Option<()> {
    let x = steps(a, ints(attrs, "batch_a"), ints(attrs, "contract_a"))?;
    let y = steps(b, ints(attrs, "batch_b"), ints(attrs, "contract_b"))?;
    let (left, right) = (cells::<T>(a.bytes)?, cells::<T>(b.bytes)?);
    // SAFETY: every bit pattern is a float, and `align_to_mut` looks after alignment and length.
    let (before, results, after) = unsafe { out.bytes.align_to_mut::<T>() };
    if !before.is_empty() || !after.is_empty() {
        return None;
    }
    let (rows, columns, depth) = (x.free.0, y.free.0, x.depth.0);
    let work = (rows * columns).saturating_mul(depth);
    let is_large = work > TASK;
    let is_tall = is_large && rows >= 2 * STRIP && (2..=KEPT / depth).contains(&columns);
    let parallelism = match is_large && !is_tall {
        true => Parallelism::Rayon(0),
        false => Parallelism::None,
    };
    let one = |batch: usize, first: usize, to: &mut [T]| {
        let own = to.len() / columns;
        let (from, other) = (&left[x.batches[batch]..], &right[y.batches[batch]..]);
        let reach =
            |s: &Steps| (s.free.0 - 1) * s.free.1 as usize + (s.depth.0 - 1) * s.depth.1 as usize;
        assert!(
            reach(&x) < from.len() && reach(&y) < other.len() && first + own <= rows,
            "operands reach as far as their strides say"
        );
        let is_wide = is_large && to.len() >= PART / 4;
        if is_wide && rows == 1 && y.free.1 == 1 {
            return combine(from, x.depth, other, y.depth.1 as usize, to);
        }
        if is_wide && columns == 1 && x.free.1 == 1 {
            return combine(other, y.depth, from, x.depth.1 as usize, to);
        }
        if work <= SMALL && y.free.1 == 1 {
            let steps = [x.free.1, x.depth.1, y.depth.1].map(|step| step as usize);
            return T::small(to, [columns, depth], from, other, steps);
        }
        let to = Matrix::new(to.as_mut_ptr(), [1, columns as isize]);
        let from = &from[first * x.free.1 as usize..];
        let a = Matrix::new(from.as_ptr(), [x.depth.1, x.free.1]);
        let b = Matrix::new(other.as_ptr(), [y.free.1, y.depth.1]);
        let factors = [a, b];
        // SAFETY: no stride is negative, and the assertion holds the largest index that they reach within each slice;
        // the result is borrowed mutably, so it does not overlap the operands.
        unsafe {
            T::matmul([own, columns, depth], to, factors, false, parallelism);
        }
    };
    let matrices = results.chunks_mut(rows * columns).enumerate();
    if is_tall {
        matrices.for_each(|(batch, to)| {
            parallel::for_each_part(to, STRIP * columns, &|part, to| {
                one(batch, part * STRIP, to);
            });
        });
    } else if is_large {
        matrices.for_each(|(batch, to)| one(batch, 0, to));
    } else {
        let together = (TASK / work).max(1);
        parallel::for_each_part(results, together * rows * columns, &|part, to| {
            let own = to.chunks_mut(rows * columns).zip(part * together..);
            own.for_each(|(to, batch)| one(batch, 0, to));
        });
    }
    Some(())
}

/// Products of complex numbers: four of their real and imaginary parts, of that type, which lie two steps apart. Like other sums in
/// their own precision, those of f32 are infinite where f64 would not be.
fn complex<T: Matmul + AddProducts>(
    dtype: DType,
    a: &View,
    b: &View,
    out: &mut Out,
    attrs: &[Attr],
) -> Option<()> {
    let twice = |x: &View| {
        let steps = x.strides.iter().map(|step| step.checked_mul(2));
        steps.collect::<Option<Vec<_>>>()
    };
    let (steps_a, steps_b) = (twice(a)?, twice(b)?);
    // SAFETY: every bit pattern is a float, and `align_to_mut` looks after alignment and length.
    let (before, results, after) = unsafe { out.bytes.align_to_mut::<[T; 2]>() };
    if !before.is_empty() || !after.is_empty() {
        return None;
    }
    /// The real or the imaginary parts.
    fn part<'a>(x: &View<'a>, dtype: DType, strides: &'a [i64], which: u64) -> View<'a> {
        let offset = 2 * x.offset + which;
        View {
            dtype,
            strides,
            offset,
            ..*x
        }
    }
    let product = |i: u64, j: u64| {
        let mut made = vec![T::ZERO; results.len()];
        // SAFETY: a float is as many bytes, each of any value.
        let bytes = unsafe { made.align_to_mut::<u8>().1 };
        let mut to = Out {
            dtype,
            shape: out.shape,
            bytes,
        };
        let a = part(a, dtype, &steps_a, i);
        let b = part(b, dtype, &steps_b, j);
        multiply::<T>(&a, &b, &mut to, attrs)?;
        Some(made)
    };
    let both = |x: Vec<T>, y: Vec<T>, combine: fn(T, T) -> T| -> Vec<T> {
        x.into_iter().zip(y).map(|(x, y)| combine(x, y)).collect()
    };
    let real = both(product(0, 0)?, product(1, 1)?, T::subtract);
    let imaginary = both(product(0, 1)?, product(1, 0)?, T::add);
    for (to, parts) in results.iter_mut().zip(real.into_iter().zip(imaginary)) {
        *to = parts.into();
    }
    Some(())
}

/// Sets `to` to the sum of the rows of a matrix, `apart` from each other, each times its element of a vector: every row is read
/// once, as fast as memory gives it.
fn combine<T: AddProducts>(
    vector: &[T],
    (depth, step): (usize, isize),
    matrix: &[T],
    apart: usize,
    to: &mut [T],
) {
    parallel::for_each_part(to, PART, &|part, to| {
        to.fill(T::ZERO);
        let width = to.len();
        let none = vec![T::ZERO; width];
        let row = |k: usize| match k < depth {
            true => &matrix[k * apart + part * PART..][..width],
            false => &none,
        };
        let factor = |k: usize| match k < depth {
            true => vector[k * step as usize],
            false => T::ZERO,
        };
        for k in (0..depth).step_by(TERMS) {
            let factors = std::array::from_fn(|term| factor(k + term));
            T::to_one(to, factors, std::array::from_fn(|term| row(k + term)));
        }
    });
}

/// The elements of a buffer, where it is aligned for them.
pub(super) fn cells<T: Number>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: every bit pattern is a float, and `align_to` looks after alignment and length.
    let (before, cells, _) = unsafe { bytes.align_to::<T>() };
    before.is_empty().then_some(cells)
}

fn steps(x: &View, batch: &[i64], contract: &[i64]) -> Option<Steps> {
    let rank = x.shape.len();
    let free = (0..rank as i64).filter(|axis| !batch.contains(axis) && !contract.contains(axis));
    let free = one_step(x, &free.collect::<Vec<_>>())?;
    let depth = one_step(x, contract)?;
    let mut batches = vec![x.offset as usize];
    for &axis in batch {
        let (extent, stride) = (x.shape[axis as usize], x.strides[axis as usize]);
        let stride = usize::try_from(stride).ok()?;
        let of = |first: usize| (0..extent as usize).map(move |index| first + index * stride);
        batches = batches.into_iter().flat_map(of).collect();
    }
    Some(Steps {
        free,
        depth,
        batches,
    })
}

/// Extent and step of axes that lie as one.
fn one_step(x: &View, axes: &[i64]) -> Option<(usize, isize)> {
    let shape: Vec<u64> = axes.iter().map(|&axis| x.shape[axis as usize]).collect();
    let strides = axes.iter().map(|&axis| x.strides[axis as usize]).collect();
    let space = collapse(&shape, &[strides]);
    match (&space.shape[..], &space.strides[0][..]) {
        ([], _) => Some((1, 0)),
        ([extent], [stride]) => (*stride >= 0).then_some((*extent as usize, *stride as isize)),
        _ => None,
    }
}
