//! Triangles as `factor` has them, of large matrices: in f64 throughout, and mostly by products of blocks. A matrix is its rows
//! one after another.

use super::{factor::TINY, field::Field, part::Part};
use crate::kernels::product::Parallelism;

/// Rows or columns that are not halved any more.
const NARROW: usize = 16;

/// Rows of products of which only a triangle is needed.
const STRIP: usize = 128;

/// The first half of so many rows or columns, more than are not halved.
fn half(extent: usize) -> usize {
    (extent / 2).next_multiple_of(NARROW)
}

/// Columns from the row of the first one on, one column after another.
pub(super) fn columns<T: Field>(a: &[T], n: usize, [first, end]: [usize; 2]) -> Vec<T> {
    let height = a.len() / n - first;
    let mut columns = vec![T::ZERO; (end - first) * height];
    for (i, row) in a[first * n..].chunks_exact(n).enumerate() {
        for (j, x) in row[first..end].iter().enumerate() {
            columns[j * height + i] = *x;
        }
    }
    columns
}

/// Puts them back.
fn replace<T: Field>(a: &mut [T], n: usize, [first, end]: [usize; 2], columns: &[T]) {
    let height = a.len() / n - first;
    for (i, row) in a[first * n..].chunks_exact_mut(n).enumerate() {
        for (j, x) in row[first..end].iter_mut().enumerate() {
            *x = columns[j * height + i];
        }
    }
}

/// Replaces `a` by the lower triangle of Cholesky.
pub(super) fn cholesky<T: Field>(a: &mut [T], n: usize, threads: Parallelism) {
    root(a, n, [0, n], threads);
    for (i, row) in a.chunks_exact_mut(n).enumerate() {
        row[i + 1..].fill(T::ZERO);
    }
}

/// Factors those columns, which what is left of them has been taken from.
fn root<T: Field>(a: &mut [T], n: usize, [first, end]: [usize; 2], threads: Parallelism) {
    if end - first <= NARROW {
        return narrow_root(a, n, [first, end]);
    }
    let middle = first + half(end - first);
    root(a, n, [first, middle], threads);
    let (depth, width, below) = (middle - first, end - middle, &mut a[middle * n..]);
    let height = below.len() / n;
    let left = Part::new(&below[first..], [height, depth], n);
    let (rows, less) = (left.map(|x| x), left.part([0, 0], [width, depth]));
    let less = less.map(|x| -x.conjugate());
    let mut strips: Vec<usize> = (0..width).step_by(STRIP).collect();
    strips.extend([width, height]);
    strips.dedup();
    for strip in strips.windows(2) {
        let columns = strip[1].min(width);
        let factors = [
            Part::new(
                &rows[strip[0] * depth..],
                [strip[1] - strip[0], depth],
                depth,
            ),
            Part::new(&less, [columns, depth], depth).turned(),
        ];
        T::add_product(&mut below[strip[0] * n + middle..], n, factors, threads);
    }
    root(a, n, [middle, end], threads);
}

fn narrow_root<T: Field>(a: &mut [T], n: usize, range: [usize; 2]) {
    let mut columns = columns(a, n, range);
    let height = n - range[0];
    for j in 0..range[1] - range[0] {
        let (done, rest) = columns.split_at_mut((j + 1) * height);
        let column = &mut done[j * height + j..];
        let pivot = column[0].real().sqrt();
        column[0] = T::of(pivot);
        let divisor = T::of(if pivot == 0.0 { TINY } else { pivot });
        column[1..].iter_mut().for_each(|x| *x = *x / divisor);
        for (l, other) in (1..).zip(rest.chunks_exact_mut(height)) {
            T::subtract(&mut other[j + l..], column[l].conjugate(), &column[l..]);
        }
    }
    replace(a, n, range, &columns);
}

/// Replaces `a` by its factors, the lower one without its diagonal of ones; gives the row of `a` that each row was.
pub(super) fn lu<T: Field>(a: &mut [T], n: usize, threads: Parallelism) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    eliminate(a, [0, n], &mut rows, threads);
    rows
}

/// Factors those columns, which what is left of them has been eliminated from; swaps whole rows.
fn eliminate<T: Field>(
    a: &mut [T],
    [first, end]: [usize; 2],
    rows: &mut [usize],
    threads: Parallelism,
) {
    let n = rows.len();
    if end - first <= NARROW {
        return narrow_eliminate(a, [first, end], rows);
    }
    let middle = first + half(end - first);
    eliminate(a, [first, middle], rows, threads);
    let (depth, width) = (middle - first, end - middle);
    let (top, below) = a.split_at_mut(middle * n);
    let top = &mut top[first * n..];
    let mut right = Part::new(&top[middle..], [depth, width], n).map(|x| x);
    let triangle = Part::new(&top[first..], [depth, depth], n);
    substitute(triangle, Triangle::Ones, &mut right, threads);
    for (row, solved) in top.chunks_exact_mut(n).zip(right.chunks_exact(width)) {
        row[middle..end].copy_from_slice(solved);
    }
    let less = Part::new(&below[first..], [n - middle, depth], n).negated();
    let factors = [
        Part::new(&less, [n - middle, depth], depth),
        Part::new(&right, [depth, width], width),
    ];
    T::add_product(&mut below[middle..], n, factors, threads);
    eliminate(a, [middle, end], rows, threads);
}

fn narrow_eliminate<T: Field>(a: &mut [T], range: [usize; 2], rows: &mut [usize]) {
    let n = rows.len();
    let mut columns = columns(a, n, range);
    let height = n - range[0];
    for k in 0..range[1] - range[0] {
        let pivot = k + largest(&columns[k * height + k..(k + 1) * height]);
        if pivot != k {
            columns
                .chunks_exact_mut(height)
                .for_each(|x| x.swap(k, pivot));
            let [upper, lower] = [k, pivot].map(|i| range[0] + i);
            rows.swap(upper, lower);
            let (above, from) = a.split_at_mut(lower * n);
            above[upper * n..][..n].swap_with_slice(&mut from[..n]);
        }
        let (done, rest) = columns.split_at_mut((k + 1) * height);
        let column = &mut done[k * height + k..];
        let top = column[0];
        if top != T::ZERO {
            column[1..].iter_mut().for_each(|x| *x = *x / top);
        }
        for other in rest.chunks_exact_mut(height) {
            let by = other[k];
            T::subtract(&mut other[k + 1..], by, &column[1..]);
        }
    }
    replace(a, n, range, &columns);
}

/// The place of the first of the largest; NaN is none.
fn largest<T: Field>(column: &[T]) -> usize {
    let (mut place, mut most) = (0, -1.0);
    for (i, x) in column.iter().enumerate() {
        let magnitude = x.magnitude();
        if magnitude > most {
            (place, most) = (i, magnitude);
        }
    }
    place
}

/// The determinant, by LU.
pub(super) fn determinant<T: Field>(mut a: Vec<T>, n: usize, threads: Parallelism) -> T {
    let mut rows = lu(&mut a, n, threads);
    let diagonal = || a.iter().step_by(n + 1);
    if diagonal().any(|x| *x == T::ZERO) {
        return T::ZERO;
    }
    let mut product = diagonal().fold(T::ONE, |product, x| product * *x);
    for i in 0..n {
        while rows[i] != i {
            let place = rows[i];
            rows.swap(i, place);
            product = -product;
        }
    }
    product
}

/// The solution of `a x = b` for as many right sides as a row of `b` has, unless `a` is singular.
pub(super) fn solve<T: Field>(
    mut a: Vec<T>,
    n: usize,
    b: &[T],
    threads: Parallelism,
) -> Option<Vec<T>> {
    let rows = lu(&mut a, n, threads);
    let count = b.len() / n;
    let row = |i: &usize| &b[i * count..(i + 1) * count];
    let mut x: Vec<T> = rows.iter().flat_map(row).copied().collect();
    let a = Part::new(&a, [n, n], n);
    substitute(a, Triangle::Ones, &mut x, threads);
    solve_triangle(a, false, &mut x, threads).then_some(x)
}

/// The solution for a triangle and the right sides `b`, which are its rows or its columns, unless a 0 is on the diagonal.
pub(super) fn triangular_solve<T: Field>(
    a: Part<T>,
    lower: bool,
    b: &[T],
    are_rows: bool,
    threads: Parallelism,
) -> Option<Vec<T>> {
    let [n, _] = a.extents;
    let count = b.len() / n;
    let turned = |x: &[T], extents: [usize; 2]| {
        let turned = Part::new(x, extents, extents[1]).turned();
        turned.map(|x| x)
    };
    let mut x = if are_rows {
        turned(b, [count, n])
    } else {
        b.to_vec()
    };
    let is_regular = solve_triangle(a, lower, &mut x, threads);
    if are_rows {
        x = turned(&x, [n, count]);
    }
    is_regular.then_some(x)
}

/// As [`substitute`], unless a 0 is on the diagonal; whether there is none.
fn solve_triangle<T: Field>(a: Part<T>, lower: bool, x: &mut [T], threads: Parallelism) -> bool {
    let is_regular = (0..a.extents[0]).all(|i| a.at(i, i) != T::ZERO);
    let triangle = if lower {
        Triangle::Lower
    } else {
        Triangle::Upper
    };
    if is_regular {
        substitute(a, triangle, x, threads);
    }
    is_regular
}

/// The elements of a matrix that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Triangle {
    Lower,
    /// The lower ones, with ones on the diagonal.
    Ones,
    Upper,
}

/// Solves the triangle for the right sides `x`, of which each row has one element of each.
fn substitute<T: Field>(a: Part<T>, triangle: Triangle, x: &mut [T], threads: Parallelism) {
    let n = a.extents[0];
    let count = x.len() / n;
    if n <= NARROW {
        return narrow_substitute(a, triangle, x, count);
    }
    let top = half(n);
    let below = n - top;
    let (first, last) = x.split_at_mut(top * count);
    let corners = [a.part([0, 0], [top; 2]), a.part([top; 2], [below; 2])];
    let (solved, other, corners, between) = match triangle {
        Triangle::Upper => {
            let between = a.part([0, top], [top, below]);
            (last, first, [corners[1], corners[0]], between)
        }
        Triangle::Lower | Triangle::Ones => (first, last, corners, a.part([top, 0], [below, top])),
    };
    substitute(corners[0], triangle, solved, threads);
    let extents = [corners[0].extents[0], count];
    let less = Part::new(solved, extents, count).negated();
    let factors = [between, Part::new(&less, extents, count)];
    T::add_product(other, count, factors, threads);
    substitute(corners[1], triangle, other, threads);
}

fn narrow_substitute<T: Field>(a: Part<T>, triangle: Triangle, x: &mut [T], count: usize) {
    let n = a.extents[0];
    for k in 0..n {
        let j = if triangle == Triangle::Upper {
            n - 1 - k
        } else {
            k
        };
        let (before, from) = x.split_at_mut(j * count);
        let (row, after) = from.split_at_mut(count);
        if triangle != Triangle::Ones {
            let divisor = a.at(j, j);
            row.iter_mut().for_each(|x| *x = *x / divisor);
        }
        let (others, first) = match triangle {
            Triangle::Upper => (before, 0),
            Triangle::Lower | Triangle::Ones => (after, j + 1),
        };
        for (i, other) in (first..).zip(others.chunks_exact_mut(count)) {
            T::subtract(other, a.at(i, j), row);
        }
    }
}
