//! The table of ops, parsed from `pack.toml`.

use nx_vulkan_abi::DTypeSet;
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// What makes a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// All elements along the axes that go.
    Axes,
    /// Those of a window.
    Windows,
    /// The rows of all operands.
    Rows,
}

/// One row as written in `pack.toml`, which explains the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Op {
    op: String,
    takes: Vec<String>,
    method: Method,
}

/// A row with its type set resolved.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// Name of the op, and id of the kernel.
    pub(crate) op: String,
    /// The types of operands and result.
    pub(crate) takes: DTypeSet,
    /// What makes a result.
    pub(crate) method: Method,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    closure: Vec<Op>,
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
pub(crate) fn rows() -> Result<&'static [TableRow], String> {
    static TABLE: kit::Cached<Vec<TableRow>> = kit::Cached::new();
    let rows = TABLE.get(|| {
        let file: File = kit::parse(include_str!("../pack.toml"))?;
        kit::rows([((), file.closure)], |(), row| {
            Ok(TableRow {
                takes: kit::types(&row.takes, &row.op)?,
                op: row.op,
                method: row.method,
            })
        })
    })?;
    Ok(rows.as_slice())
}
