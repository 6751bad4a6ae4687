//! The rows of the elementwise pack: what GLSL an op is on operands of given types. Where it is called is for others.

use crate::{
    mixed,
    table::{self, Cached},
};
use nx_vulkan_abi::DType;
use serde::Deserialize;

/// The type in which an operand enters the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// The result's type.
    Result,
    /// The operand's type.
    Own,
    /// The result's type, but a u64 that meets a signed integer stays a u64, and the other becomes an s64.
    Exact,
    /// The merge of both operands' types. Where it does not hold the values of both, the expression compares their
    /// order with 0 instead.
    Compared,
}

/// One row as written in `pack.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the op, and id of the kernel.
    pub op: String,
    /// The type set of each operand.
    #[serde(default)]
    pub takes: Vec<String>,
    /// The type sets of the result.
    pub gives: Vec<String>,
    #[serde(default)]
    compute: Vec<Compute>,
    /// Expression of `a`, `b`, `c`, or of the index `i`.
    pub glsl: String,
    /// The expression where operands and result are floats narrower than f32, if it is another one.
    narrow: Option<String>,
    /// The expression where operands or result are complex, if it is another one.
    pub complex: Option<String>,
    /// The type of operands of that expression, if it is not the result's.
    pub complex_in: Option<String>,
    /// Whether the expression calls functions of the math headers.
    #[serde(default)]
    pub math: bool,
}

/// The file, a list for each way to run a row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Conversions.
    pub cast: Vec<Row>,
    /// Expressions of the operands at one index.
    pub map: Vec<Row>,
    /// Expressions of the index.
    pub create: Vec<Row>,
    /// Expressions that requests bring along.
    pub fused: Vec<Row>,
}

/// How operands enter a row's expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As which type each of them does.
    pub types: Vec<DType>,
    /// Whether `a` is the order of the operands, and `b` is 0.
    pub is_order: bool,
    /// Whether the expression calls functions of `mixed.glsl`.
    pub is_mixed: bool,
}

/// The file `pack.toml` of the elementwise pack, read on first use.
///
/// # Errors
/// What is wrong with it.
pub fn file() -> Result<&'static File, String> {
    static FILE: Cached<File> = Cached::new();
    FILE.get(|| table::parse(include_str!("../../elementwise/pack.toml")))
}

/// The row of an op that makes an element of so many.
///
/// # Errors
/// What is wrong with the file; `None` where it has no such op.
pub fn of(op: &str, operands: usize) -> Result<Option<&'static Row>, String> {
    let file = file()?;
    let mut rows = file.map.iter().chain(&file.cast);
    Ok(rows.find(|row| row.op == op && row.takes.len() == operands))
}

impl Row {
    /// The expression of reals that enter as these types, for a result of that one.
    pub fn code(&self, types: &[DType], result: DType) -> &str {
        let mut all = types.iter().chain([&result]);
        match &self.narrow {
            Some(narrow) if all.all(|dtype| dtype.is_float() && dtype.size() < 4) => narrow,
            Some(_) | None => &self.glsl,
        }
    }

    /// The expression for a result of f32 that needs the digits of narrower types alone.
    pub fn loose(&self, types: &[DType]) -> &str {
        match &self.narrow {
            Some(narrow)
                if types
                    .iter()
                    .all(|dtype| dtype.is_float() && dtype.size() <= 4) =>
            {
                narrow
            }
            Some(_) | None => &self.glsl,
        }
    }

    /// How operand `index` enters the expression.
    pub fn compute(&self, index: usize) -> Compute {
        let last = self.compute.len().saturating_sub(1);
        self.compute
            .get(index.min(last))
            .copied()
            .unwrap_or(Compute::Own)
    }

    /// How operands of those types enter the expression of a result of that one.
    pub fn entry(&self, types: &[DType], result: DType) -> Entry {
        let merged = types.iter().copied().reduce(DType::merge).unwrap_or(result);
        let outgrown = mixed::outgrow(types);
        let (whole, ordered) = (outgrown && result.is_integer(), mixed::is_ordered(types));
        let mut all = types.iter().chain([&result]);
        let is_complex = all.any(|dtype| dtype.is_complex());
        let named = self.complex_in.as_deref().filter(|_| is_complex);
        let named = named.and_then(DType::from_name);
        let computed = |index: usize| match self.compute(index) {
            _ if named.is_some() => named.unwrap_or(result),
            Compute::Own => types[index],
            Compute::Compared if ordered => mixed::comparand(types[index], outgrown),
            Compute::Compared => merged,
            Compute::Exact if whole => mixed::comparand(types[index], true),
            // An expression of its own for complex numbers takes real ones as such.
            Compute::Result
                if types.len() > 1 && self.complex.is_some() && !types[index].is_complex() =>
            {
                result.part()
            }
            Compute::Exact | Compute::Result => result,
        };
        let is_order = ordered && self.compute(0) == Compute::Compared;
        Entry {
            types: (0..types.len()).map(computed).collect(),
            is_order,
            is_mixed: is_order || whole && self.compute(0) == Compute::Exact,
        }
    }
}
