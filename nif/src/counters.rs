//! How often which op fell back to another backend: process-wide counts.

use parking_lot::Mutex;
use std::collections::BTreeMap;

static FALLBACKS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Counts one fallback of `op`.
#[rustler::nif]
fn count_fallback(op: &str) -> rustler::Atom {
    let mut counts = FALLBACKS.lock();
    match counts.get_mut(op) {
        Some(count) => *count += 1,
        None => {
            counts.insert(op.to_owned(), 1);
        }
    }
    rustler::types::atom::ok()
}

/// `[{op, count}]`, by op.
#[rustler::nif]
fn fallback_counts() -> Vec<(String, u64)> {
    let counts = FALLBACKS.lock();
    counts
        .iter()
        .map(|(op, count)| (op.clone(), *count))
        .collect()
}
