//! Work on all cores: the caller's and those of the crew. The closures are trait objects so that little is compiled for every
//! kernel.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use super::crew::{Wakes, share};
use crate::view::Outcome;
use parking_lot::Mutex;

/// Calls `work(i, chunk)` for chunks of `size` bytes, the last one shorter.
pub(super) fn for_each_chunk(
    bytes: &mut [u8],
    size: usize,
    work: &(dyn Fn(usize, &mut [u8]) -> Outcome + Sync),
) -> Outcome {
    chunks(bytes, size, Wakes::Now, work)
}

/// The same of chunks that take microseconds.
pub(super) fn for_each_short_chunk(
    bytes: &mut [u8],
    size: usize,
    work: &(dyn Fn(usize, &mut [u8]) -> Outcome + Sync),
) -> Outcome {
    chunks(bytes, size, Wakes::Late, work)
}

fn chunks(
    bytes: &mut [u8],
    size: usize,
    wakes: Wakes,
    work: &(dyn Fn(usize, &mut [u8]) -> Outcome + Sync),
) -> Outcome {
    if bytes.len() <= size {
        return work(0, bytes);
    }
    let failure = OnceLock::new();
    parts(bytes, size, wakes, &|i, chunk| {
        if failure.get().is_none()
            && let Err(why) = work(i, chunk)
        {
            failure.get_or_init(|| why);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// The results of `work(0)` to `work(count - 1)`.
pub(super) fn collect<T: Send + Sync>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let slots: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    for_each_with(count, || (), &|(), i| {
        slots[i].get_or_init(|| work(i));
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// Calls `work(i, part)` for parts of `size` elements, the last one shorter.
pub(super) fn for_each_part<T: Send>(
    all: &mut [T],
    size: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    parts(all, size, Wakes::Now, work);
}

/// The same, and when other cores are woken.
pub(super) fn parts<T: Send>(
    all: &mut [T],
    size: usize,
    wakes: Wakes,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    parts_with(all, size, wakes, &|| (), &|(), i, part| work(i, part));
}

/// The same, with one state for each core.
pub(super) fn parts_with<T: Send, S>(
    all: &mut [T],
    size: usize,
    wakes: Wakes,
    state: &(dyn Fn() -> S + Sync),
    work: &(dyn Fn(&mut S, usize, &mut [T]) + Sync),
) {
    let count = all.len().div_ceil(size);
    let parts = Mutex::new(all.chunks_mut(size).enumerate());
    share(count, wakes, &|between| {
        let mut own = None;
        let next = || parts.lock().next();
        while let Some((i, part)) = next() {
            work(own.get_or_insert_with(state), i, part);
            between();
        }
    });
}

/// Calls `work(state, i)` for each `i` below `count`, with one state for each core.
pub(super) fn for_each_with<S>(
    count: usize,
    state: fn() -> S,
    work: &(dyn Fn(&mut S, usize) + Sync),
) {
    let next = AtomicUsize::new(0);
    share(count, Wakes::Now, &|between| {
        let mut state = state();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            work(&mut state, i);
            between();
        }
    });
}
