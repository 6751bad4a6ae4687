//! What is said of a plan that is refused.

use crate::{Error, Kind};

/// Why a spare field that is not zero is refused: what it means is unknown here, and ignoring it may be wrong.
pub(crate) const NEWER: &str =
    "it sets a field that this ABI has no meaning for; the pack needs a newer host";

/// A plan that another device might take, or the same one for another request: no fault of the pack.
pub(super) fn beyond(what: String) -> Error {
    let what = format!("the plan goes beyond the device: {what}");
    Error::new(Kind::Unsupported, what)
}

pub(super) fn invalid(what: String) -> Error {
    Error::new(Kind::Pack, format!("the plan is invalid: {what}"))
}
