//! Why a shader could not be compiled or built elsewhere, and whether that passes.

use crate::{Error, Kind};
use std::time::Instant;

/// Why a shader is not tried again, and until when.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) until: Option<Instant>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) why: String,
    /// There may be one in a while.
    pub(crate) is_passing: bool,
}

impl Unanswered {
    pub(super) fn passing(why: String) -> Unanswered {
        Unanswered {
            why,
            is_passing: true,
        }
    }

    /// As an error of that kind.
    pub(super) fn error(self, kind: Kind) -> Error {
        Error::new(kind, self.why).passing(self.is_passing)
    }
}

impl From<String> for Unanswered {
    fn from(why: String) -> Unanswered {
        Unanswered {
            why,
            is_passing: false,
        }
    }
}

impl From<Failure> for Unanswered {
    fn from(Failure { why, until }: Failure) -> Unanswered {
        Unanswered {
            why,
            is_passing: until.is_some(),
        }
    }
}
