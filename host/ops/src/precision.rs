//! The attribute `precision` as the host sees it: which requests have it. Its values are read in the ABI.

use crate::{attrs::Attr, contracts::find};
pub use nx_vulkan_abi::precision::{ATTRIBUTE, Precision};

/// How exact a request of `op` has to be; the attribute of ops that do not know it means something else.
pub fn of(op: &str, attrs: &[Attr]) -> Precision {
    find(op).map_or_else(Precision::default, |op| op.precision(attrs))
}
