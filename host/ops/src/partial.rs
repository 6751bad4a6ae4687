//! Operands on which an op has no result: which, and what is said then.

use crate::error::Kind;
use nx_vulkan_abi::DType;

/// What an op is not defined for.
#[derive(Debug, PartialEq, Eq)]
pub struct Partial {
    lacks: Lack,
    /// What callers tell the error by.
    pub kind: Kind,
    /// The error, as a sentence without the op's name.
    pub reason: &'static str,
}

/// Operands without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// 0, where all operands are integers.
    Zero,
    /// Negative ones, where all operands are integers.
    Negative,
    /// Indices that the first operand does not have.
    Outside,
    /// A matrix that divides by 0.
    Singular,
    /// What several ops are not defined for.
    Several,
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

/// Operands of an expression whose calls lack results for different reasons: which it was, no device tells.
pub(crate) static SEVERAL: Partial = Partial {
    lacks: Lack::Several,
    kind: Kind::Arithmetic,
    reason: "integer division by zero, a negative exponent of an integer or a negative shift amount",
};

/// Indices.
pub(crate) static INDEX: Partial = Partial {
    lacks: Lack::Outside,
    kind: Kind::BadInput,
    reason: "an index is out of bounds",
};

/// Matrices of systems of equations.
pub(crate) static SINGULAR: Partial = Partial {
    lacks: Lack::Singular,
    kind: Kind::BadInput,
    reason: "can't solve for singular matrix",
};

impl Partial {
    /// Whether there is no result for a number of that sign.
    pub(crate) fn lacks(&self, is_negative: bool, is_zero: bool) -> bool {
        match self.lacks {
            Lack::Zero | Lack::Singular => is_zero,
            Lack::Negative => is_negative,
            Lack::Outside | Lack::Several => false,
        }
    }

    /// Whether operands of these types may lack a result.
    pub(crate) fn concerns(&self, inputs: &[DType]) -> bool {
        let whole = inputs.iter().all(|dtype| dtype.is_integer());
        let is_signed = inputs.get(1).is_some_and(|second| second.is_signed());
        match self.lacks {
            Lack::Zero => whole && inputs.len() > 1,
            Lack::Negative => whole && is_signed,
            Lack::Outside | Lack::Singular | Lack::Several => true,
        }
    }
}
