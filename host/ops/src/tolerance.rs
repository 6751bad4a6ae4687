//! How far a pack's result may be from the CPU kernel's, in units in the last place of the result's type. Which op has
//! which bound stands in its row.

use nx_vulkan_abi::{DType, precision::Precision};

/// Binary digits of each element of f32 that count where less than all have to.
const HIGH: u32 = 16;

/// What is allowed for one op and result type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Units in the last place.
    pub ulp: u64,
    /// What the number of elements adds.
    pub growth: Growth,
    /// Whether denormal f32 and f64 operands and results may count as zero.
    pub flushes: bool,
    /// Whether zeros of either sign are the same.
    pub zeros_equal: bool,
    /// Significant binary digits that the result's type has and the computation may lack; 0 but for kernels that call
    /// themselves relaxed, and for requests that allow it.
    pub lost: u32,
}

impl Tolerance {
    /// What a kernel is held to that calls itself relaxed: it may compute f32 with the 11 digits of f16 and TF32, f64 with
    /// the 24 of f32, and narrower floats in their own type. Integers, and what only moves, stay exact.
    #[must_use]
    pub fn relaxed(self, result: DType) -> Tolerance {
        let is_double = result.register().part() == DType::F64;
        self.keeping(if is_double { 24 } else { 11 }, result)
    }

    /// The same of who computes with that many binary digits.
    fn keeping(self, kept: u32, result: DType) -> Tolerance {
        let digits = result.part().row().map_or(0, |row| row.digits);
        let computes = self.ulp > 0 || self.growth != Growth::None;
        if !result.part().is_float() || !computes {
            return self;
        }
        let lost = digits.saturating_sub(kept);
        Tolerance {
            ulp: self.ulp.max(1) << lost.max(1),
            flushes: true,
            zeros_equal: true,
            lost: lost.max(1),
            ..self
        }
    }

    /// What a request allows that has to be that exact.
    pub(crate) fn at(self, precision: Precision, result: DType) -> Tolerance {
        match precision == Precision::High && result == DType::F32 {
            true => self.keeping(HIGH, result),
            false => self,
        }
    }
}

/// How an error grows with the number of elements that make one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It does not.
    None,
    /// By half an ulp per element: every multiplication rounds once.
    Factors,
    /// By (1 + √n) ε times the sum of the terms' magnitudes, ε being that of the type it is summed in: the
    /// probabilistic bound for n roundings in any order (Higham and Mary 2019).
    Terms,
    /// By n ε² times the sum of the terms' magnitudes: the error of each addition is carried along (Kahan 1965).
    Compensated,
    /// Units are of the last place of a complex number's magnitude, for both parts, and so many for each element.
    Parts,
    /// By 4 (1 + n) ε times the largest magnitude in the result and in the state before, n being the number of steps: each
    /// goes on from the last one's roundings.
    Steps,
    /// As [`Growth::Steps`], and by 4 times as far as the element moves when every operand does by ε of itself: what is made of
    /// a matrix is as uncertain as its condition makes it (Higham 2002, chapter 7).
    Condition,
    /// By 4 (1 + log₂ n) ε times the largest magnitude in the result, n being the length of a transform (Higham 2002,
    /// theorem 24.2).
    Spectrum,
    /// By as far as roundings of scores and weights move a mean: the sweep finds it for each element
    /// (`host/conformance/src/sweep/oracle/weights.rs`).
    Weights,
}

/// What the row of an op allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// For f32 and for f64. f16 and bf16 are computed in f32: whatever is not exact is within 1.
    pub ulp: (u64, u64),
    /// What the number of elements adds.
    pub growth: Growth,
    /// For functions of complex numbers, of f32 and of f64: units in the last place of the result's magnitude. 0 where
    /// parts are what the other bounds say.
    pub parts: (u64, u64),
    /// Whether in f32 the growth is [`Growth::Compensated`] instead.
    pub compensated: bool,
    /// Whether denormals may count as zero.
    pub flushes: bool,
    /// Whether zeros of either sign are the same.
    pub zeros_equal: bool,
}

impl Bound {
    /// Arithmetic within that many units.
    pub(crate) const fn rounded(ulp: (u64, u64)) -> Bound {
        Bound {
            ulp,
            growth: Growth::None,
            parts: (0, 0),
            compensated: false,
            flushes: true,
            zeros_equal: false,
        }
    }

    /// Signs, bits and copies are not arithmetic: denormals stay what they are.
    pub(crate) const MOVES: Bound = Bound {
        flushes: false,
        ..Bound::rounded((0, 0))
    };

    /// The smaller or larger of two zeros is either.
    pub(crate) const ORDERS: Bound = Bound {
        zeros_equal: true,
        ..Bound::rounded((0, 0))
    };

    /// Many elements make one.
    pub(crate) const fn reduces(growth: Growth) -> Bound {
        Bound {
            growth,
            zeros_equal: true,
            ..Bound::rounded((1, 1))
        }
    }

    /// The same, and that many units for complex numbers.
    pub(crate) const fn and_parts(self, parts: (u64, u64)) -> Bound {
        Bound { parts, ..self }
    }

    /// How far a result may be, from operands of these types.
    pub(crate) fn tolerance(self, operands: &[DType], result: DType) -> Tolerance {
        let Bound {
            ulp,
            growth,
            parts,
            compensated,
            flushes,
            zeros_equal,
        } = self;
        let is_double = result.part() == DType::F64;
        let of_parts = if is_double { parts.1 } else { parts.0 };
        let is_complex = operands.iter().any(|dtype| dtype.is_complex()) || result.is_complex();
        if is_complex && of_parts > 0 && !result.is_integer() {
            return Tolerance {
                ulp: of_parts,
                growth: Growth::Parts,
                flushes: true,
                zeros_equal: true,
                lost: 0,
            };
        }
        if !result.part().is_float() {
            return Tolerance {
                ulp: 0,
                growth: Growth::None,
                flushes: flushes && operands.iter().any(|dtype| !dtype.is_integer()),
                zeros_equal: true,
                lost: 0,
            };
        }
        let converts = operands
            .iter()
            .any(|dtype| !dtype.is_integer() && *dtype != result);
        let is_narrow = result.part().size() < DType::F32.size();
        Tolerance {
            ulp: match (is_narrow, is_double) {
                (true, _) => ulp.0.min(1),
                (false, false) => ulp.0,
                (false, true) => ulp.1,
            },
            growth: if compensated && result == DType::F32 {
                Growth::Compensated
            } else {
                growth
            },
            // A conversion computes; the same type in and out is a copy.
            flushes: flushes || converts,
            zeros_equal,
            lost: 0,
        }
    }
}
