//! What is said of a plan that is refused.

use crate::{Error, Kind};

/// Why a spare field that is not zero is refused: what it means is unknown here, and ignoring it may be wrong.
pub(crate) const NEWER: &str =
    "it sets a field that this ABI has no meaning for; the pack needs a newer host";

pub(super) fn invalid(what: String) -> Error {
    Error::new(Kind::Pack, format!("the plan is invalid: {what}"))
}
