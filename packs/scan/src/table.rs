//! The table of ops, parsed from `pack.toml`.

use nx_vulkan_abi::{DType, DTypeSet};
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// One row as written in `pack.toml`, which explains the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Op {
    pub(crate) id: String,
    pub(crate) op: String,
    takes: Vec<String>,
    start: String,
    glsl: String,
    complex: Option<[String; 2]>,
}

impl Op {
    /// The identity of the op for values of `dtype`, and how two of them combine.
    pub(crate) fn combination(&self, dtype: DType) -> [&str; 2] {
        match &self.complex {
            Some([start, glsl]) if dtype.is_complex() => [start, glsl],
            Some(_) | None if self.start == "0" && !dtype.is_integer() => ["-0.0", &self.glsl],
            Some(_) | None => [&self.start, &self.glsl],
        }
    }
}

/// A row with its type set resolved.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// The types of operand and result.
    pub(crate) takes: DTypeSet,
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
    scan: Vec<Op>,
}

impl Table {
    /// The table, parsed on first use; the error says which row is wrong.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: kit::Cached<Table> = kit::Cached::new();
        TABLE.get(|| {
            let file: File = kit::parse(include_str!("../pack.toml"))?;
            let resolve = |(), op: Op| -> Result<TableRow, String> {
                let takes = kit::types(&op.takes, &op.op)?;
                Ok(TableRow { takes, op })
            };
            let rows = kit::rows([((), file.scan)], resolve)?;
            Ok(Table { rows })
        })
    }
}
