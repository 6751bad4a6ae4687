//! What an op is tried with: shapes and attributes. Element types and values are chosen elsewhere.

use crate::Attr;

/// Shapes of the operands (of the result, for an op that does not infer it) and attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Shapes of the operands.
    pub inputs: Vec<Vec<u64>>,
    /// Shape of the first result, where it does not follow.
    pub output: Vec<u64>,
    /// Attributes, without those that have a default.
    pub attrs: Vec<Attr>,
}
