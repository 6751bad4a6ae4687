//! The attribute `precision` as the host sees it: which requests have it. Its values are read in the ABI.

use crate::{
    attrs::{Attr, text},
    contracts::find,
};
pub use nx_vulkan_abi::precision::{ATTRIBUTE, Precision};

/// Binary digits of each element of f32 that count where less than all have to.
pub(crate) const HIGH: u32 = 16;

/// How exact a request of `op` has to be; the attribute of ops that do not know it means something else.
pub fn of(op: &str, attrs: &[Attr]) -> Precision {
    let word = text(attrs, ATTRIBUTE).filter(|_| takes(op));
    word.and_then(Precision::named).unwrap_or_default()
}

/// The attributes of a request of `op` without it.
pub fn without(op: &str, attrs: &[Attr]) -> Option<Vec<Attr>> {
    let has = takes(op) && attrs.iter().any(|attr| attr.name == ATTRIBUTE);
    let others = attrs.iter().filter(|attr| attr.name != ATTRIBUTE);
    has.then(|| others.cloned().collect())
}

fn takes(op: &str) -> bool {
    let attributes = find(op).map(|op| op.contract.attributes);
    let mut attributes = attributes.unwrap_or_default().iter();
    attributes.any(|attribute| attribute.name == ATTRIBUTE)
}
