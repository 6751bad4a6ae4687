//! The table of families, parsed from `pack.toml`; it says what a family is, not how its steps are run.

use nx_vulkan_abi::{DType, Define, glsl, glsl::define};
use nx_vulkan_pack_kit::table::{Cached, parse};
use serde::Deserialize;

/// One row as written in `pack.toml`, which explains the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) op: String,
    pub(crate) parameters: Vec<String>,
}

impl Family {
    /// What makes the chain shader that of this family, in `dtype`.
    pub(crate) fn defines(&self, dtype: DType) -> Vec<Define> {
        let name = self.op.trim_start_matches("leapfrog_");
        let scalars = (1..=self.parameters.len()).map(|index| format!("parameter({index})"));
        let scalars: Vec<String> = scalars.collect();
        let mut defines = real(dtype);
        defines.extend([
            define("FORM", format!("FORM_{name}")),
            define("FAMILY", format!("new_{name}({})", scalars.join(", "))),
        ]);
        defines
    }
}

/// The defines of every shader in `dtype`.
pub(crate) fn real(dtype: DType) -> Vec<Define> {
    let name = if dtype == DType::F64 {
        "double"
    } else {
        "float"
    };
    let mut defines = glsl::needs(dtype);
    defines.push(define("REAL", name));
    defines
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The rows, in the file's order.
    #[serde(rename = "family")]
    pub(crate) families: Vec<Family>,
}

impl Table {
    /// The table, parsed on first use; the error says which row is wrong.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: Cached<Table> = Cached::new();
        TABLE.get(|| parse(include_str!("../pack.toml")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_family() {
        let families = &Table::get().unwrap().families;
        let listed: Vec<(&str, usize)> = families
            .iter()
            .map(|family| (family.op.as_str(), family.parameters.len()))
            .collect();
        let all = [
            ("leapfrog_normal", 2),
            ("leapfrog_exponential", 1),
            ("leapfrog_studentt", 3),
            ("leapfrog_cauchy", 2),
            ("leapfrog_halfnormal", 1),
            ("leapfrog_weibull", 2),
            ("leapfrog_beta", 2),
            ("leapfrog_gamma", 2),
            ("leapfrog_lognormal", 2),
        ];
        assert_eq!(listed, all);
    }

    #[test]
    fn a_wrong_row_is_named() {
        let error = parse::<Table>("[[family]]\nop = \"leapfrog_none\"\nlog = \"\"\n").unwrap_err();
        assert!(
            error.contains("pack.toml") && error.contains("log"),
            "{error}"
        );
    }
}
