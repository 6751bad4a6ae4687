//! How far a pack's result may be from the host kernel's: one table, in units in the last place of the result's type.

use crate::kernels::OpInfo;
use nx_vulkan_abi::DType;

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
    /// By 4 (1 + n) ε times the largest magnitude in the result, n being the number of steps: each goes on from the
    /// last one's roundings.
    Steps,
}

struct Row {
    ops: &'static str,
    /// For f32 and for f64. f16 and bf16 are computed in f32: whatever is not exact is within 1.
    ulp: (u64, u64),
    growth: Growth,
    flushes: bool,
    zeros_equal: bool,
}

const fn row(ops: &'static str, ulp: (u64, u64)) -> Row {
    Row {
        ops,
        ulp,
        growth: Growth::None,
        flushes: true,
        zeros_equal: false,
    }
}

const fn moves(ops: &'static str) -> Row {
    Row {
        ops,
        ulp: (0, 0),
        growth: Growth::None,
        flushes: false,
        zeros_equal: false,
    }
}

const fn reduces(ops: &'static str, growth: Growth) -> Row {
    Row {
        ops,
        ulp: (1, 1),
        growth,
        flushes: true,
        zeros_equal: true,
    }
}

/// f64: 4 ulp are 1e-15 relative, what Nx.BinaryBackend's own C library promises at worst.
const TABLE: &[Row] = &[
    row(
        "exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acosh asinh atanh acos asin atan",
        (2, 4),
    ),
    row("cbrt erf erfc erf_inv atan2 pow", (2, 4)),
    row("sqrt rsqrt divide", (1, 2)),
    row("add subtract multiply remainder", (0, 0)),
    row("round ceil floor", (0, 0)),
    row(
        "equal not_equal greater less greater_equal less_equal argmax argmin",
        (0, 0),
    ),
    Row {
        zeros_equal: true,
        ..row("min max clip reduce_max reduce_min", (0, 0))
    },
    reduces("sum dot", Growth::Terms),
    reduces("product", Growth::Factors),
    reduces(
        "leapfrog_normal leapfrog_exponential leapfrog_studentt leapfrog_cauchy leapfrog_halfnormal leapfrog_weibull \
         leapfrog_beta leapfrog_gamma leapfrog_lognormal",
        Growth::Steps,
    ),
    // Signs, bits and copies are not arithmetic: denormals stay what they are.
    moves("abs negate sign is_nan is_infinity real imag conjugate as_type select iota eye fill"),
    moves("all any logical_and logical_or logical_xor"),
    moves("bitwise_not count_leading_zeros population_count bitwise_and bitwise_or bitwise_xor"),
    moves("quotient left_shift right_shift"),
];

/// The tolerance of `op` from `operands` to `result`.
pub fn tolerance(op: &OpInfo, operands: &[DType], result: DType) -> Tolerance {
    let row = TABLE
        .iter()
        .find(|row| row.ops.split(' ').any(|name| name == op.name));
    let row = row.expect("every op is in the table of tolerances");
    if !result.is_float() {
        let flushes = row.flushes && operands.iter().any(|dtype| dtype.is_float());
        return Tolerance {
            ulp: 0,
            growth: Growth::None,
            flushes,
            zeros_equal: true,
        };
    }
    let ulp = match result {
        DType::F64 => row.ulp.1,
        DType::F32 => row.ulp.0,
        _ => row.ulp.0.min(1),
    };
    // The sum of f32 carries its rounding errors along.
    let compensated = op.name == "sum" && result == DType::F32;
    Tolerance {
        ulp,
        growth: if compensated {
            Growth::Compensated
        } else {
            row.growth
        },
        // A conversion computes; the same type in and out is a copy.
        flushes: row.flushes
            || operands
                .iter()
                .any(|dtype| dtype.is_float() && *dtype != result),
        zeros_equal: row.zeros_equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn every_op_is_in_the_table_once() {
        for op in kernels::ops() {
            let rows = TABLE
                .iter()
                .filter(|row| row.ops.split(' ').any(|name| name == op.name));
            assert_eq!(rows.count(), 1, "{}", op.name);
        }
        let names = TABLE.iter().flat_map(|row| row.ops.split(' '));
        for name in names {
            assert!(
                kernels::ops().iter().any(|op| op.name == name),
                "{name} is no op"
            );
        }
    }
}
