//! The ops that make each element of their result of one element of each operand: what expressions are made of.

use super::{cast, choose, map, zip};
use crate::op::Op;
use std::{collections::HashMap, sync::OnceLock};

/// Their families, in the order of `docs/ops.md`.
pub(super) const ALL: [&[Op]; 4] = [map::OPS, zip::OPS, choose::OPS, cast::OPS];

/// The elementwise op of that name.
pub(crate) fn elementwise(name: &str) -> Option<&'static Op> {
    static INDEX: OnceLock<HashMap<&str, &Op>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let all = ALL.iter().copied().flatten();
        all.map(|op| (op.name, op)).collect()
    });
    index.get(name).copied()
}
