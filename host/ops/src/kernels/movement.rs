//! Moving elements from one place to another, as bytes.

use super::{convert, crew::Wakes, elementwise::TASK, operand::Operand, parallel};
use crate::view::{Out, View, count};
use nx_vulkan_abi::{
    DType,
    layout::{collapse, contiguous_strides},
};
use std::borrow::Cow;

/// The elements of a view in row-major order, as elements of `dtype`, where they lie or copied.
pub(super) fn contiguous<'a>(view: &View<'a>, dtype: DType) -> Result<Cow<'a, [u8]>, String> {
    let elements = count(view.shape).unwrap_or(0);
    if elements == 0 {
        return Ok(Cow::default());
    }
    let x = Operand::broadcast(view, view.shape).ok_or("it does not fit its own shape")?;
    let is_plain = view.strides == contiguous_strides(view.shape);
    if is_plain && view.dtype == dtype {
        return x.bytes(0, elements as usize);
    }
    let mut bytes = vec![0; (elements * dtype.size()) as usize];
    let mut out = Out {
        dtype,
        shape: view.shape,
        bytes: &mut bytes,
    };
    convert::as_type(&[x], &mut out)?;
    Ok(bytes.into())
}

/// The integers of a view in row-major order, whatever their type; those that are too large for an `i64` are its largest.
pub(super) fn integers(view: &View) -> Result<Vec<i64>, String> {
    let mut integers = vec![0; count(view.shape).unwrap_or(0) as usize];
    if !integers.is_empty() {
        let x = Operand::broadcast(view, view.shape).ok_or("it does not fit its own shape")?;
        if view.dtype == DType::U64 {
            let mut wide = vec![0u64; integers.len()];
            x.gather(0, 0, &mut wide);
            let narrow = wide.iter().map(|x| i64::try_from(*x).unwrap_or(i64::MAX));
            return Ok(narrow.collect());
        }
        x.gather(0, 0, &mut integers);
    }
    Ok(integers)
}

/// A place in a tensor, and its steps along the axes of a box.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) at: i64,
    pub(super) strides: Vec<i64>,
}

impl Place {
    /// The first element of a row-major tensor of that shape.
    pub(super) fn first(shape: &[u64]) -> Place {
        Place {
            at: 0,
            strides: contiguous_strides(shape),
        }
    }

    /// The place of a view's first element, among the view's bytes.
    fn of(view: &View) -> Place {
        Place {
            at: view.offset as i64,
            strides: view.strides.to_vec(),
        }
    }
}

/// A view's elements as elements of `dtype`, and where they lie: its own bytes where it has that type.
pub(super) fn elements<'a>(
    view: &View<'a>,
    dtype: DType,
) -> Result<(Cow<'a, [u8]>, Place), String> {
    if view.dtype == dtype {
        return Ok((Cow::Borrowed(view.bytes), Place::of(view)));
    }
    Ok((contiguous(view, dtype)?, Place::first(view.shape)))
}

/// Copies a box of elements of `size` bytes, on all cores where it is large and each row of it has its own part of the bytes.
pub(super) fn copy(
    shape: &[u64],
    size: usize,
    (from, source): (&[u8], &Place),
    (to, target): (&mut [u8], &Place),
) {
    let elements: u64 = shape.iter().product();
    if elements == 0 {
        return;
    }
    let line = line_of(size);
    match (shape, &*source.strides, &*target.strides) {
        ([], ..) => return line(1, size, (from, source.at, 1), (to, target.at, 1)),
        ([n], [a], [b]) if *n <= TASK as u64 => {
            return line(*n, size, (from, source.at, *a), (to, target.at, *b));
        }
        _ => {}
    }
    let space = collapse(shape, &[source.strides.clone(), target.strides.clone()]);
    let [a, b] = [0, 1].map(|operand: usize| &space.strides[operand][..]);
    let (&[rows, ref inner @ ..], &[step, ref steps @ ..]) = (&space.shape[..], b) else {
        return line(1, size, (from, source.at, 1), (to, target.at, 1));
    };
    let reach = inner
        .iter()
        .zip(steps)
        .map(|(n, step)| (*n as i64 - 1) * step);
    let reach: i64 = reach.sum();
    let is_apart = step > reach && steps.iter().all(|step| *step >= 0);
    if elements <= TASK as u64 || !is_apart {
        return lines(&space.shape, size, (from, source.at, a), (to, target.at, b));
    }
    let end = target.at + (rows as i64 - 1) * step + reach + 1;
    let to = &mut to[target.at as usize * size..end as usize * size];
    let own = (TASK as u64 / (elements / rows)).max(1);
    let size_of_part = own as usize * step as usize * size;
    parallel::parts(to, size_of_part, Wakes::Late, &|part, to| {
        let first = part as u64 * own;
        let mut shape = space.shape.clone();
        shape[0] = own.min(rows - first);
        let at = source.at + first as i64 * a[0];
        lines(&shape, size, (from, at, a), (to, 0, b));
    });
}

/// Copies a box that has axes, by lines of its last one.
fn lines(
    shape: &[u64],
    size: usize,
    (from, source, a): (&[u8], i64, &[i64]),
    (to, target, b): (&mut [u8], i64, &[i64]),
) {
    let line = line_of(size);
    let last = shape.len() - 1;
    let (outer, n) = (&shape[..last], shape[last]);
    let (mut index, mut places) = (vec![0; last], (source, target));
    loop {
        line(n, size, (from, places.0, a[last]), (to, places.1, b[last]));
        let mut axis = last;
        loop {
            let Some(next) = axis.checked_sub(1) else {
                return;
            };
            axis = next;
            index[axis] += 1;
            places = (places.0 + a[axis], places.1 + b[axis]);
            if index[axis] < outer[axis] {
                break;
            }
            let extent = outer[axis] as i64;
            places = (places.0 - extent * a[axis], places.1 - extent * b[axis]);
            index[axis] = 0;
        }
    }
}

/// Copies so many elements of a size: each place is that of the first one, with the step to the next, in elements.
type Line = fn(u64, usize, (&[u8], i64, i64), (&mut [u8], i64, i64));

fn line_of(size: usize) -> Line {
    match size {
        1 => line::<1>,
        2 => line::<2>,
        4 => line::<4>,
        8 => line::<8>,
        _ => line::<16>,
    }
}

fn line<const SIZE: usize>(
    n: u64,
    size: usize,
    (from, a, step_a): (&[u8], i64, i64),
    (to, b, step_b): (&mut [u8], i64, i64),
) {
    debug_assert_eq!(size, SIZE);
    if n == 1 || (step_a, step_b) == (1, 1) {
        let (a, b, bytes) = (a as usize * SIZE, b as usize * SIZE, n as usize * SIZE);
        to[b..b + bytes].copy_from_slice(&from[a..a + bytes]);
        return;
    }
    let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
    let (mut a, mut b) = (a, b);
    for _ in 0..n {
        to[b as usize] = from[a as usize];
        (a, b) = (a + step_a, b + step_b);
    }
}
