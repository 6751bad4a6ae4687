//! The ops, a family each file: its contract, and one row for each op.

mod arg;
mod cast;
mod choose;
mod create;
mod dot;
mod leapfrog;
mod map;
mod reduce;
mod shared;
mod zip;

use crate::op::Op;

/// The ops of all families, in the order of `docs/ops.md`.
pub(crate) const ALL: &[&[Op]] = &[
    map::OPS,
    zip::OPS,
    choose::OPS,
    cast::OPS,
    create::OPS,
    reduce::OPS,
    arg::OPS,
    dot::OPS,
    leapfrog::OPS,
];
