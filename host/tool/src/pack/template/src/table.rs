//! The table of ops, parsed from `pack.toml`; it says what an op is, not how it is run.

use nx_vulkan_abi::DTypeSet;
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// How a row is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// An expression of the operands at one index.
    Map,
    /// The largest element along the last axes.
    Largest,
}

/// One row, with its types resolved.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// How it is run.
    pub(crate) family: Family,
    /// Name of the op, and id of the kernel.
    pub(crate) op: String,
    /// How many operands it takes.
    pub(crate) operands: usize,
    /// Types of operands and result.
    pub(crate) types: DTypeSet,
    /// Expression of `a` and `b`.
    pub(crate) glsl: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    op: String,
    operands: usize,
    types: Vec<String>,
    #[serde(default)]
    glsl: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    map: Vec<Written>,
    largest: Vec<Written>,
}

/// The rows, parsed on first use; the error says which row is wrong.
pub(crate) fn rows() -> Result<&'static [TableRow], String> {
    static ROWS: kit::Cached<Vec<TableRow>> = kit::Cached::new();
    ROWS.get(|| parse(include_str!("../pack.toml")))
        .map(Vec::as_slice)
}

fn parse(text: &str) -> Result<Vec<TableRow>, String> {
    let file: File = kit::parse(text)?;
    kit::rows(
        [(Family::Map, file.map), (Family::Largest, file.largest)],
        resolve,
    )
}

fn resolve(family: Family, row: Written) -> Result<TableRow, String> {
    let types = kit::types(&row.types, &row.op)?;
    if family == Family::Map && !(1..=2).contains(&row.operands) {
        return Err(format!(
            "pack.toml: {}: map.comp has 1 or 2 operands",
            row.op
        ));
    }
    Ok(TableRow {
        family,
        op: row.op,
        operands: row.operands,
        types,
        glsl: row.glsl,
    })
}
