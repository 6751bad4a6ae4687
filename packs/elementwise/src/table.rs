//! The table of ops, parsed from `pack.toml`; it says what an op is, not how it is run.

use nx_vulkan_abi::DTypeSet;
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// How a row is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// An expression of the operands at one index.
    Map,
    /// As `Map`, but for a copy of bytes where the types are equal.
    Cast,
    /// An expression of the index.
    Create,
}

/// The type in which an operand enters the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compute {
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
pub(crate) struct Op {
    /// Name of the op, and id of the kernel.
    pub(crate) op: String,
    #[serde(default)]
    takes: Vec<String>,
    gives: Vec<String>,
    #[serde(default)]
    compute: Vec<Compute>,
    /// Expression of `a`, `b`, `c`, or of the index `i`.
    pub(crate) glsl: String,
    /// The expression where operands or result are complex, if it is another one.
    pub(crate) complex: Option<String>,
    /// The type of operands of that expression, if it is not the result's.
    pub(crate) complex_in: Option<String>,
    /// Whether the expression calls functions of the math headers.
    #[serde(default)]
    pub(crate) math: bool,
}

impl Op {
    /// How operand `index` enters the expression.
    pub(crate) fn compute(&self, index: usize) -> Compute {
        let last = self.compute.len().saturating_sub(1);
        self.compute
            .get(index.min(last))
            .copied()
            .unwrap_or(Compute::Own)
    }
}

/// A row with its type sets resolved.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// How it is run.
    pub(crate) family: Family,
    /// The types of each operand.
    pub(crate) takes: Vec<DTypeSet>,
    /// The types of the result.
    pub(crate) gives: DTypeSet,
    /// The row as written.
    pub(crate) op: Op,
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
#[derive(Debug)]
pub(crate) struct Table {
    /// The rows, in the file's order.
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cast: Vec<Op>,
    map: Vec<Op>,
    create: Vec<Op>,
}

impl Table {
    /// The table, parsed on first use; the error says which row is wrong.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: kit::Cached<Table> = kit::Cached::new();
        TABLE.get(|| parse(include_str!("../pack.toml")))
    }
}

fn parse(text: &str) -> Result<Table, String> {
    let file: File = kit::parse(text)?;
    let families = [
        (Family::Cast, file.cast),
        (Family::Map, file.map),
        (Family::Create, file.create),
    ];
    let rows = kit::rows(families, resolve)?;
    Ok(Table { rows })
}

fn resolve(family: Family, op: Op) -> Result<TableRow, String> {
    let set = |name: &String| kit::types(&[name], &op.op);
    Ok(TableRow {
        family,
        takes: op.takes.iter().map(set).collect::<Result<_, _>>()?,
        gives: kit::types(&op.gives, &op.op)?,
        op,
    })
}
