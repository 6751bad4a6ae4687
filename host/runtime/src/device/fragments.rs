//! What is known of how a device lays out cooperative matrices; `crate::fragments` finds it out.

use serde::{Deserialize, Serialize};

/// What is known of a device's fragments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order", content = "why")]
pub enum Fragments {
    /// Their elements are where kernels expect them.
    Known,
    /// They are elsewhere.
    Other(String),
    /// It could not be found out.
    Unknown(String),
}

impl std::fmt::Display for Fragments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fragments::Known => f.write_str("in the order that kernels rely on"),
            Fragments::Other(why) => write!(f, "in another order than kernels rely on: {why}"),
            Fragments::Unknown(why) => write!(f, "in an order that could not be found out: {why}"),
        }
    }
}
