//! Operands on which an op on integers has no result: which, and what is said then.

use crate::error::Kind;

/// What an op of integers is not defined for.
#[derive(Debug, PartialEq, Eq)]
pub struct Partial {
    lacks: Lack,
    /// What callers tell the error by.
    pub kind: Kind,
    /// The error, as a sentence without the op's name.
    pub reason: &'static str,
}

/// Second operands without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    Zero,
    Negative,
}

/// Divisors.
pub(crate) static DIVISOR: Partial = Partial {
    lacks: Lack::Zero,
    kind: Kind::Arithmetic,
    reason: "integer division by zero",
};

/// Exponents.
pub(crate) static EXPONENT: Partial = Partial {
    lacks: Lack::Negative,
    kind: Kind::Arithmetic,
    reason: "a negative exponent of an integer",
};

/// Amounts of a shift.
pub(crate) static AMOUNT: Partial = Partial {
    lacks: Lack::Negative,
    kind: Kind::BadInput,
    reason: "a negative shift amount",
};

impl Partial {
    /// Whether there is no result for a second operand of that sign.
    pub(crate) fn lacks(&self, is_negative: bool, is_zero: bool) -> bool {
        match self.lacks {
            Lack::Zero => is_zero,
            Lack::Negative => is_negative,
        }
    }

    /// Whether second operands, signed or not, may lack a result.
    pub(crate) fn concerns(&self, is_signed: bool) -> bool {
        self.lacks(is_signed, true)
    }
}
