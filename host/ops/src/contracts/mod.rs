//! The ops, a family each file: its contract, and one row for each op.
//!
//! No contract and no index of rows is a `static`: the compiler takes what those name into the tests of internals, whether they
//! use it or not, and all kernels would be compiled once more.

mod arg;
mod attention;
mod cast;
mod choose;
mod closure;
mod conv;
mod create;
mod dot;
mod elementwise;
mod fourier;
mod fused;
mod fused_rows;
mod gather;
mod join;
mod leapfrog;
mod linalg;
mod map;
mod pad;
mod reduce;
mod scan;
mod scatter;
mod shared;
mod slice;
mod sort;
mod window;
mod window_scatter;
mod zip;

use crate::op::Op;
pub(crate) use elementwise::elementwise;
pub(crate) use shared::broadcast;
use std::{collections::HashMap, sync::OnceLock};

/// The ops of all families but the elementwise ones, which come first, in the order of `docs/ops.md`.
const OTHERS: &[&[Op]] = &[
    fused::OPS,
    fused_rows::OPS,
    create::OPS,
    reduce::OPS,
    arg::OPS,
    scan::OPS,
    sort::OPS,
    dot::OPS,
    attention::OPS,
    fourier::OPS,
    gather::OPS,
    linalg::OPS,
    join::OPS,
    slice::OPS,
    pad::OPS,
    scatter::OPS,
    window::OPS,
    window_scatter::OPS,
    closure::OPS,
    conv::OPS,
    leapfrog::OPS,
];

/// Every op, in the order of `docs/ops.md`.
pub fn ops() -> impl Iterator<Item = &'static Op> + Clone {
    elementwise::ALL.iter().chain(OTHERS).copied().flatten()
}

/// The op of that name.
pub fn find(name: &str) -> Option<&'static Op> {
    static INDEX: OnceLock<HashMap<&str, &Op>> = OnceLock::new();
    let index = INDEX.get_or_init(|| ops().map(|op| (op.name, op)).collect());
    index.get(name).copied()
}
