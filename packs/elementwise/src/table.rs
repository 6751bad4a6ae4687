//! The table of ops, parsed from `pack.toml`; it says what an op is, not how it is run.

use nx_vulkan_abi::DTypeSet;
use nx_vulkan_pack_kit::{
    rows::{self, Row},
    table as kit,
};

/// How a row is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// An expression of the operands at one index.
    Map,
    /// As `Map`, but for a copy of bytes where the types are equal.
    Cast,
    /// An expression of the index.
    Create,
    /// The expression of a request, of as many operands as it has.
    Fused,
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
    pub(crate) op: Row,
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
#[derive(Debug)]
pub(crate) struct Table {
    /// The rows, in the file's order.
    pub(crate) rows: Vec<TableRow>,
}

impl Table {
    /// The table, parsed on first use; the error says which row is wrong.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: kit::Cached<Table> = kit::Cached::new();
        TABLE.get(parse)
    }
}

fn parse() -> Result<Table, String> {
    let file = rows::file()?;
    let families = [
        (Family::Cast, file.cast.clone()),
        (Family::Map, file.map.clone()),
        (Family::Create, file.create.clone()),
        (Family::Fused, file.fused.clone()),
    ];
    let rows = kit::rows(families, resolve)?;
    Ok(Table { rows })
}

fn resolve(family: Family, op: Row) -> Result<TableRow, String> {
    let set = |name: &String| kit::types(&[name], &op.op);
    Ok(TableRow {
        family,
        takes: op.takes.iter().map(set).collect::<Result<_, _>>()?,
        gives: kit::types(&op.gives, &op.op)?,
        op,
    })
}
