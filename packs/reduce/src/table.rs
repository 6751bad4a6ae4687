//! The table of ops, parsed from `pack.toml`; it says what an op is, not how it is run.

use nx_vulkan_abi::{DType, DTypeSet, Refusal, Request};
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// What a row keeps of the elements it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// One value.
    Fold,
    /// A value and its index.
    Pick,
}

/// One row as written in `pack.toml`, which explains the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Op {
    pub(crate) op: String,
    takes: Vec<String>,
    gives: String,
    compute: String,
    pub(crate) start: String,
    pub(crate) glsl: String,
    pub(crate) each: Option<String>,
    pub(crate) complex: Option<[String; 2]>,
    #[serde(default)]
    pub(crate) compensate: bool,
    #[serde(default)]
    pub(crate) repeats: bool,
    #[serde(default)]
    pub(crate) exact: bool,
}

/// A row with its type sets resolved.
#[derive(Debug)]
pub(crate) struct TableRow {
    pub(crate) family: Family,
    /// The types of the operand.
    pub(crate) takes: DTypeSet,
    /// The types of the result.
    pub(crate) gives: DTypeSet,
    /// The row as written.
    pub(crate) op: Op,
}

impl TableRow {
    /// Refuses a request of the wrong arity or with types that the row does not list.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let name = &self.op.op;
        kit::expect_types(name, &[self.takes], self.gives, request)?;
        let (operand, result) = (&request.inputs[0], &request.outputs[0]);
        if self.gives_operand() && operand.dtype != result.dtype {
            return Err(Refusal::BadRequest(format!(
                "{name} of {0} gives {0}, not {1}",
                operand.dtype, result.dtype
            )));
        }
        Ok(())
    }

    /// Whether the op gives an index.
    pub(crate) fn picks(&self) -> bool {
        self.family == Family::Pick
    }

    /// The type of values on the way from elements of `operand` to a `result`: one that shaders compute with as it is.
    pub(crate) fn compute(&self, operand: DType, result: DType) -> Result<DType, Refusal> {
        match self.op.compute.as_str() {
            "result" => Ok(result.register()),
            "own" => Ok(operand.register()),
            name => DType::from_name(name)
                .ok_or_else(|| Refusal::Internal(format!("{}: unknown type {name}", self.op.op))),
        }
    }

    fn gives_operand(&self) -> bool {
        self.family == Family::Fold && self.op.compute == "own"
    }
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
    fold: Vec<Op>,
    pick: Vec<Op>,
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
    let families = [(Family::Fold, file.fold), (Family::Pick, file.pick)];
    let rows = kit::rows(families, resolve)?;
    Ok(Table { rows })
}

fn resolve(family: Family, op: Op) -> Result<TableRow, String> {
    Ok(TableRow {
        family,
        takes: kit::types(&op.takes, &op.op)?,
        gives: kit::types(&[&op.gives], &op.op)?,
        op,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_reduction() {
        let rows = &Table::get().unwrap().rows;
        let ops: Vec<&str> = rows.iter().map(|row| row.op.op.as_str()).collect();
        let all = [
            "sum",
            "product",
            "all",
            "any",
            "reduce_max",
            "reduce_min",
            "argmax",
            "argmin",
        ];
        assert_eq!(ops, all);
        assert!(rows[..4].iter().all(|row| row.takes == DTypeSet::NUMBER));
        assert!(rows[4..].iter().all(|row| row.takes == DTypeSet::REAL));
        assert_eq!(rows[2].gives, DTypeSet::of(&[DType::U8]));
    }

    #[test]
    fn values_are_computed_in_a_register_type() {
        let rows = &Table::get().unwrap().rows;
        assert_eq!(rows[0].compute(DType::U8, DType::U32), Ok(DType::U32));
        assert_eq!(rows[0].compute(DType::BF16, DType::BF16), Ok(DType::F32));
        assert_eq!(rows[2].compute(DType::F64, DType::U8), Ok(DType::U32));
        assert_eq!(rows[6].compute(DType::S16, DType::S64), Ok(DType::S32));
    }

    #[test]
    fn a_wrong_row_is_named() {
        let row = r#"{ op = "sum", takes = ["f99"], gives = "real", compute = "result", start = "0", glsl = "a + b" }"#;
        let error = parse(&format!("fold = [{row}]\npick = []")).unwrap_err();
        assert!(error.contains("sum") && error.contains("f99"), "{error}");
        assert!(
            parse("fold = [{ op = \"sum\", glsll = \"\" }]\npick = []")
                .unwrap_err()
                .contains("pack.toml")
        );
    }
}
