//! Work on all cores. The closures are trait objects so that the thread pool is compiled once, not for every kernel.

use std::sync::OnceLock;

use rayon::prelude::*;

use crate::view::Outcome;

/// Calls `work(i, chunk)` for chunks of `size` bytes, the last one shorter.
pub(super) fn for_each_chunk(
    bytes: &mut [u8],
    size: usize,
    work: &(dyn Fn(usize, &mut [u8]) -> Outcome + Sync),
) -> Outcome {
    if bytes.len() <= size {
        return work(0, bytes);
    }
    bytes
        .par_chunks_mut(size)
        .enumerate()
        .try_for_each(|(i, chunk)| work(i, chunk))
}

/// The results of `work(0)` to `work(count - 1)`.
pub(super) fn collect<T: Send + Sync>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let slots: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    for_each_index(count, &|i| {
        slots[i].get_or_init(|| work(i));
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

fn for_each_index(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count == 1 {
        return work(0);
    }
    (0..count).into_par_iter().for_each(work);
}

/// Calls `work(i, part)` for parts of `size` elements, the last one shorter.
pub(super) fn for_each_part<T: Send>(
    all: &mut [T],
    size: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    all.par_chunks_mut(size)
        .enumerate()
        .for_each(|(i, part)| work(i, part));
}

/// Calls `work(state, i)` for each `i` below `count`, with few states.
pub(super) fn for_each_with<S: Send>(
    count: usize,
    state: fn() -> S,
    work: &(dyn Fn(&mut S, usize) + Sync),
) {
    let least = count.div_ceil(STATES * rayon::current_num_threads());
    (0..count)
        .into_par_iter()
        .with_min_len(least)
        .for_each_init(state, |state, i| work(state, i));
}

/// States for each thread, so that one that is late does not keep the others waiting for long.
const STATES: usize = 8;
