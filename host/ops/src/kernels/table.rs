//! The table of ops: name, kind, operands and types of each. What an op computes is not here.

use std::collections::HashMap;
use std::sync::LazyLock;

use nx_vulkan_abi::dtype::{DType, DTypeSet};

/// Which contract an op follows; each is a section of `docs/ops.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Elementwise, one operand.
    Unary,
    /// Elementwise, two operands.
    Binary,
    /// `select`.
    Select,
    /// `clip`.
    Clip,
    /// `as_type`.
    Cast,
    /// `iota`.
    Iota,
    /// `eye`.
    Eye,
    /// `fill`.
    Fill,
    /// A reduction over some axes.
    Reduction,
    /// The index of an extreme element.
    ArgReduction,
    /// `dot`.
    Dot,
    /// Leapfrog steps of a chain.
    Leapfrog,
}

/// Which types an op's result may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultType {
    /// The type of the first operand.
    Operand,
    /// u8.
    Bool,
    /// An integer type.
    Integer,
    /// A float type.
    Float,
    /// A real type.
    Real,
    /// Every type.
    Any,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct OpInfo {
    /// Name, as in Nx.
    pub name: &'static str,
    /// Contract it follows.
    pub kind: OpKind,
    /// Number of operands.
    pub arity: usize,
    /// Real types that operands may have.
    pub operands: DTypeSet,
    /// Type of the result.
    pub result: ResultType,
}

impl OpInfo {
    /// Number of results.
    pub fn results(&self) -> usize {
        match self.kind {
            OpKind::Leapfrog => 4,
            _ => 1,
        }
    }
}

impl ResultType {
    /// Whether the result may be `dtype` when the first operand is `operand`.
    pub fn allows(self, dtype: DType, operand: Option<DType>) -> bool {
        match self {
            ResultType::Operand => operand == Some(dtype),
            ResultType::Bool => dtype == DType::U8,
            ResultType::Integer => dtype.is_integer(),
            ResultType::Float => dtype.is_float(),
            ResultType::Real => DTypeSet::REAL.has(dtype),
            ResultType::Any => dtype.is_known(),
        }
    }
}

/// Every op that the host runs.
pub fn ops() -> &'static [OpInfo] {
    &TABLE
}

/// The op of that name.
pub(super) fn find(op: &str) -> Option<&'static OpInfo> {
    INDEX.get(op).copied()
}

static TABLE: LazyLock<Vec<OpInfo>> = LazyLock::new(|| {
    let row = |&(names, kind, arity, operands, result): &Row| {
        let info = move |name| OpInfo {
            name,
            kind,
            arity,
            operands,
            result,
        };
        names.split_ascii_whitespace().map(info).collect::<Vec<_>>()
    };
    ROWS.iter().flat_map(row).collect()
});

static INDEX: LazyLock<HashMap<&str, &OpInfo>> =
    LazyLock::new(|| TABLE.iter().map(|info| (info.name, info)).collect());

type Row = (&'static str, OpKind, usize, DTypeSet, ResultType);

const REAL: DTypeSet = DTypeSet::REAL;
const INTEGER: DTypeSet = DTypeSet::INTEGER;
const WIDE: DTypeSet = DTypeSet::of(&[DType::F32, DType::F64]);

/// Names, kind, number of operands, types of operands, type of the result.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acosh asinh atanh acos asin atan sqrt rsqrt cbrt erf erfc erf_inv",
                                                             OpKind::Unary,        1, REAL,    ResultType::Float),
    ("abs negate sign round ceil floor",                     OpKind::Unary,        1, REAL,    ResultType::Operand),
    ("bitwise_not count_leading_zeros population_count",     OpKind::Unary,        1, INTEGER, ResultType::Operand),
    ("is_nan is_infinity",                                   OpKind::Unary,        1, REAL,    ResultType::Bool),
    ("conjugate real imag",                                  OpKind::Unary,        1, REAL,    ResultType::Real),
    ("add subtract multiply pow remainder min max",          OpKind::Binary,       2, REAL,    ResultType::Real),
    ("divide atan2",                                         OpKind::Binary,       2, REAL,    ResultType::Float),
    ("quotient bitwise_and bitwise_or bitwise_xor left_shift right_shift",
                                                             OpKind::Binary,       2, INTEGER, ResultType::Integer),
    ("equal not_equal greater less greater_equal less_equal logical_and logical_or logical_xor",
                                                             OpKind::Binary,       2, REAL,    ResultType::Bool),
    ("select",                                               OpKind::Select,       3, REAL,    ResultType::Real),
    ("clip",                                                 OpKind::Clip,         3, REAL,    ResultType::Real),
    ("as_type",                                              OpKind::Cast,         1, REAL,    ResultType::Any),
    ("iota",                                                 OpKind::Iota,         0, REAL,    ResultType::Real),
    ("eye",                                                  OpKind::Eye,          0, REAL,    ResultType::Real),
    ("fill",                                                 OpKind::Fill,         0, REAL,    ResultType::Any),
    ("sum product",                                          OpKind::Reduction,    1, REAL,    ResultType::Real),
    ("all any",                                              OpKind::Reduction,    1, REAL,    ResultType::Bool),
    ("reduce_max reduce_min",                                OpKind::Reduction,    1, REAL,    ResultType::Operand),
    ("argmax argmin",                                        OpKind::ArgReduction, 1, REAL,    ResultType::Real),
    ("dot",                                                  OpKind::Dot,          2, REAL,    ResultType::Real),
    ("leapfrog_normal leapfrog_exponential leapfrog_studentt leapfrog_cauchy leapfrog_halfnormal leapfrog_weibull leapfrog_beta leapfrog_gamma leapfrog_lognormal",
                                                             OpKind::Leapfrog,     4, WIDE,    ResultType::Operand),
];
