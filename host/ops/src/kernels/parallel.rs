//! Work on all cores: the caller's and the thread pool's. The closures are trait objects so that little is compiled for every
//! kernel.

use std::sync::{Mutex, OnceLock, PoisonError};

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
    let failure = OnceLock::new();
    for_each_part(bytes, size, &|i, chunk| {
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
    let count = all.len().div_ceil(size);
    let parts = Mutex::new(all.chunks_mut(size).enumerate());
    share(count, &|| {
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((i, part)) = next() {
            work(i, part);
        }
    });
}

/// Calls `work(state, i)` for each `i` below `count`, with one state for each core.
pub(super) fn for_each_with<S>(
    count: usize,
    state: fn() -> S,
    work: &(dyn Fn(&mut S, usize) + Sync),
) {
    let indices = Mutex::new(0..count);
    share(count, &|| {
        let mut state = state();
        let next = || {
            indices
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next()
        };
        while let Some(i) = next() {
            work(&mut state, i);
        }
    });
}

/// Calls `work` here and on other cores, which share among them what is to be done `count` times. The caller begins at once:
/// waking a core takes as long as many thousand elements do.
fn share(count: usize, work: &(dyn Fn() + Sync)) {
    if count <= 1 {
        return work();
    }
    let others = rayon::current_num_threads().min(count) - 1;
    rayon::in_place_scope(|scope| {
        for _ in 0..others {
            scope.spawn(|_| work());
        }
        work();
    });
}
