//! Tables: the file `pack.toml` that a pack brings along, whose rows say what its kernels are.

use nx_vulkan_abi::{DTypeSet, Refusal, Request};
use serde::de::DeserializeOwned;
use std::sync::OnceLock;

/// A table that is read when it is first used.
#[derive(Debug)]
pub struct Cached<T>(OnceLock<Result<T, String>>);

impl<T> Cached<T> {
    /// One that was not read yet.
    pub const fn new() -> Cached<T> {
        Cached(OnceLock::new())
    }

    /// The table, or what is wrong with it.
    ///
    /// # Errors
    /// That of `read`, which runs once.
    pub fn get(&self, read: impl FnOnce() -> Result<T, String>) -> Result<&T, String> {
        self.0.get_or_init(read).as_ref().map_err(Clone::clone)
    }
}

impl<T> Default for Cached<T> {
    fn default() -> Cached<T> {
        Cached::new()
    }
}

/// Reads `pack.toml`.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| format!("pack.toml: {error}"))
}

/// The types that row `of` lists by name: single ones and sets.
///
/// # Errors
/// The names, where one of them is none.
pub fn types<S: AsRef<str>>(names: &[S], of: &str) -> Result<DTypeSet, String> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    DTypeSet::from_names(&names).ok_or_else(|| format!("pack.toml: {of}: no type set in {names:?}"))
}

/// The rows of every family, in the order of the file.
///
/// # Errors
/// The first of those of `resolve`.
pub fn rows<F: Copy, W, R>(
    families: impl IntoIterator<Item = (F, Vec<W>)>,
    resolve: impl Fn(F, W) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    let families = families.into_iter();
    let rows = families.flat_map(|(family, rows)| rows.into_iter().map(move |row| (family, row)));
    rows.map(|(family, row)| resolve(family, row)).collect()
}

/// The row that the host asks for.
///
/// # Errors
/// [`Refusal::Internal`] where the table has none of that number.
pub fn row<T>(rows: &[T], number: u32) -> Result<&T, Refusal> {
    rows.get(number as usize)
        .ok_or_else(|| Refusal::Internal(format!("no row {number} in pack.toml")))
}

/// Refuses a request of another number of operands, or of results than one.
///
/// # Errors
/// [`Refusal::BadRequest`].
pub fn expect_operands(op: &str, operands: usize, request: &Request<'_>) -> Result<(), Refusal> {
    let (inputs, outputs) = (request.inputs.len(), request.outputs.len());
    if inputs == operands && outputs == 1 {
        return Ok(());
    }
    let plural = if operands == 1 { "" } else { "s" };
    Err(Refusal::BadRequest(format!(
        "{op} takes {operands} operand{plural} and gives 1 result, got: {inputs} and {outputs}"
    )))
}

/// Refuses a request of another number of operands or results, and of types that a row does not list: `takes` those of
/// each operand, `gives` those of the result.
///
/// # Errors
/// [`Refusal::BadRequest`], or a decline that names the type.
pub fn expect_types(
    op: &str,
    takes: &[DTypeSet],
    gives: DTypeSet,
    request: &Request<'_>,
) -> Result<(), Refusal> {
    expect_operands(op, takes.len(), request)?;
    for (position, (input, takes)) in request.inputs.iter().zip(takes).enumerate() {
        if !takes.has(input.dtype) {
            return Err(Refusal::decline(format!(
                "{op} does not take {} as operand {position}",
                input.dtype
            )));
        }
    }
    let dtype = request.outputs[0].dtype;
    if gives.has(dtype) {
        return Ok(());
    }
    Err(Refusal::decline(format!("{op} does not give {dtype}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_abi::DType;

    #[test]
    fn a_table_is_read_once_and_what_is_wrong_is_named() {
        let table: Cached<Vec<u32>> = Cached::new();
        assert_eq!(table.get(|| Ok(vec![1, 2])).unwrap(), &[1, 2]);
        assert_eq!(table.get(|| Err("again".to_owned())).unwrap(), &[1, 2]);
        assert_eq!(row(&[1, 2], 1), Ok(&2));
        assert_eq!(
            row(&[1, 2], 2),
            Err(Refusal::Internal("no row 2 in pack.toml".to_owned()))
        );
        let error = parse::<toml::Table>("a = [").unwrap_err();
        assert!(error.starts_with("pack.toml: "), "{error}");
        assert_eq!(types(&["f32"], "exp"), Ok(DTypeSet::of(&[DType::F32])));
        let error = types(&["f99"], "exp").unwrap_err();
        assert_eq!(error, "pack.toml: exp: no type set in [\"f99\"]");
    }
}
