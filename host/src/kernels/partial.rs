//! The ops on integers that have no result for some second operands: which, and what is said then.

use nx_vulkan_abi::dtype::DType;

use crate::error::Kind;

/// An op that is not defined everywhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Partial {
    op: &'static str,
    lacks: Lack,
    /// What callers tell the error by.
    pub(crate) kind: Kind,
    /// The error, as a sentence without the op's name.
    pub(crate) reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    Zero,
    Negative,
}

const TABLE: [Partial; 5] = [
    row(
        "quotient",
        Lack::Zero,
        Kind::Arithmetic,
        "integer division by zero",
    ),
    row(
        "remainder",
        Lack::Zero,
        Kind::Arithmetic,
        "integer division by zero",
    ),
    row(
        "pow",
        Lack::Negative,
        Kind::Arithmetic,
        "a negative exponent of an integer",
    ),
    row(
        "left_shift",
        Lack::Negative,
        Kind::BadInput,
        "a negative shift amount",
    ),
    row(
        "right_shift",
        Lack::Negative,
        Kind::BadInput,
        "a negative shift amount",
    ),
];

const fn row(op: &'static str, lacks: Lack, kind: Kind, reason: &'static str) -> Partial {
    Partial {
        op,
        lacks,
        kind,
        reason,
    }
}

/// The row of that op.
pub(crate) fn of(op: &str) -> Option<&'static Partial> {
    TABLE.iter().find(|row| row.op == op)
}

/// The row of that op, where operands of these types may be ones that it has no result for.
pub(crate) fn among(op: &str, inputs: &[DType]) -> Option<&'static Partial> {
    let row = of(op)?;
    let whole = inputs.iter().all(|dtype| dtype.is_integer());
    let second = *inputs.get(1)?;
    (whole && (row.lacks == Lack::Zero || second.is_signed())).then_some(row)
}

impl Partial {
    /// Whether there is no result for a second operand of that sign.
    pub(crate) fn lacks(&self, is_negative: bool, is_zero: bool) -> bool {
        match self.lacks {
            Lack::Zero => is_zero,
            Lack::Negative => is_negative,
        }
    }
}
