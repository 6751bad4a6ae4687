//! The table of ops, parsed from `pack.toml`, which explains the columns.

use nx_vulkan_abi::{DType, DTypeSet, Row};
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// What a row transforms and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Of {
    Line,
    Plane,
    Half,
    Mirror,
}

/// One row as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    pub(crate) op: String,
    pub(crate) of: Of,
    #[serde(default)]
    pub(crate) inverse: bool,
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) kernel: Vec<Kernel>,
}

impl Table {
    /// The table, parsed on first use.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: kit::Cached<Table> = kit::Cached::new();
        TABLE.get(|| kit::parse(include_str!("../pack.toml")))
    }
}

/// Every number, computed with elsewhere or not.
const ALL: DTypeSet = DTypeSet(DTypeSet::NUMBER.0 | DTypeSet::of(&[DType::C128]).0);

impl Kernel {
    pub(crate) fn takes(&self) -> DTypeSet {
        match self.of {
            Of::Half => DTypeSet::REAL,
            Of::Line | Of::Plane | Of::Mirror => ALL,
        }
    }

    pub(crate) fn gives(&self) -> DTypeSet {
        match self.of {
            Of::Mirror => DTypeSet::FLOAT,
            Of::Line | Of::Plane | Of::Half => DTypeSet::of(&[DType::C64, DType::C128]),
        }
    }

    pub(crate) fn row(&self) -> Row {
        Row {
            id: self.op.replace("Nx.Block.", "").to_lowercase(),
            op: self.op.clone(),
            inputs: self.takes(),
            outputs: self.gives(),
            ..Row::default()
        }
    }
}
