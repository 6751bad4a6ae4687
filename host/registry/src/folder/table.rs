//! `pack.toml` of a code-free pack, read and checked on its own: every mistake at once, each with its place.

use super::{
    plan::plan,
    row::{Condition, Row},
    schema::{self, MAX_ENTRIES, VERSION},
};
use crate::{
    codes::Code,
    diagnostic::SourceText,
    expression::{self, Expression, Mistake, Names},
    reader::{self, Reader},
    schema::CLASSES,
};
use nx_vulkan_abi::{Numerics, Reply, Request};
use semver::Version;
use std::{borrow::Cow, ops::Range, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const MAX_KERNELS: usize = 256;
const MAX_SCRATCH: usize = 16;
/// Rank of a kernel that names none: a good general kernel's.
const RANK: u32 = 128;

/// A code-free pack as its table describes it.
#[derive(Debug)]
pub struct Table {
    pub(super) id: String,
    pub(super) version: Version,
    pub(super) rows: Vec<Row>,
}

impl Table {
    /// Reads the text of a `pack.toml` that lies at `path`, next to `files`.
    ///
    /// # Errors
    /// Every mistake, each with file, line and column.
    pub fn parse(path: &Path, text: &str, files: &[&str]) -> Result<Table, String> {
        let source = SourceText::new(path, text.to_owned());
        let document = reader::document(source.text())
            .map_err(|(span, message)| source.report(span, &message))?;
        let mut sheet = Sheet {
            reader: Reader::new(&source),
            files,
            names: Names::new(),
        };
        sheet.reader.check(&document, 0..0, &schema::FILE);
        let table = sheet.document(&document);
        sheet.reader.reports()?;
        table.ok_or_else(|| format!("{}: it describes no pack", path.display()))
    }

    /// Number of kernels.
    pub fn kernels(&self) -> usize {
        self.rows.len()
    }

    /// What the kernel of that number does about `request`; `None` when there is no such kernel.
    pub fn plan(&self, kernel: usize, request: &Request<'_>) -> Option<Reply> {
        self.rows.get(kernel).map(|row| plan(row, request))
    }
}

/// A table that is being read.
pub(super) struct Sheet<'s> {
    pub(super) reader: Reader<'s>,
    pub(super) files: &'s [&'s str],
    /// The expressions that the kernel at hand names.
    pub(super) names: Names,
}

impl Sheet<'_> {
    fn document(&mut self, root: &DeTable<'_>) -> Option<Table> {
        let pack = self.reader.table(root, "pack");
        let pack = pack.and_then(|pack| self.pack(pack));
        let tables = self.reader.list_of_tables(root, "kernel");
        if let Some((span, _)) = tables.get(MAX_KERNELS) {
            let message = format!("a pack has at most {MAX_KERNELS} kernels");
            self.error(span.clone(), message);
        }
        let mut rows: Vec<Row> = Vec::new();
        for (span, table) in tables.into_iter().take(MAX_KERNELS) {
            let Some(row) = self.kernel(span.clone(), table) else {
                continue;
            };
            if rows.iter().any(|other| other.id == row.id) {
                let span = table.get("id").map_or(span, Spanned::span);
                let message = format!("two kernels are called `{}`", row.id);
                self.error(span, message);
            }
            rows.push(row);
        }
        let (id, version) = pack?;
        Some(Table { id, version, rows })
    }

    fn pack(&mut self, table: &DeTable<'_>) -> Option<(String, Version)> {
        if let Some((abi, span)) = self.reader.text(table, "abi")
            && abi != VERSION
        {
            let message = format!("this host reads `abi = \"{VERSION}\"` only");
            self.error(span, message);
        }
        let (id, _) = self.reader.text(table, "id")?;
        let (version, _) = self.reader.text(table, "version")?;
        Some((id.to_owned(), Version::parse(version).ok()?))
    }

    fn kernel(&mut self, at: Range<usize>, table: &DeTable<'_>) -> Option<Row> {
        self.names(table);
        let types = self.types(table);
        let inputs = self.set(table, &at, "inputs", &types, |signature| &signature.0);
        let outputs = self.set(table, &at, "outputs", &types, |signature| &signature.1);
        let numerics = self.reader.word(table, "numerics", CLASSES);
        let when = self.conditions(table);
        let scratch = self.list(table, "scratch", MAX_SCRATCH);
        let scratch: Vec<_> = scratch.iter().map(|value| self.expression(value)).collect();
        let steps = self.steps(at, table, scratch.len());
        let text = |key| self.reader.text(table, key);
        let mut row = Row {
            id: text("id")?.0.to_owned(),
            op: text("op")?.0.to_owned(),
            inputs: inputs?,
            outputs: outputs?,
            types,
            needs: self.reader.features(table),
            numerics: numerics.map_or(Numerics::IEEE, |(numerics, _)| numerics),
            rank: self.reader.integer(table, "rank").unwrap_or(RANK),
            contiguous: self.reader.boolean(table, "contiguous").unwrap_or(true),
            when,
            scratch: scratch.into_iter().collect::<Option<_>>()?,
            steps: steps?,
            offsets: Vec::new(),
        };
        let read = |index: &u32| {
            let tensor = expression::Tensor::Input(*index);
            row.expressions()
                .any(|expression| expression.reads(tensor, expression::Field::Offset))
        };
        row.offsets = (0..expression::MAX_TENSORS).filter(read).collect();
        Some(row)
    }

    /// The `let` of a kernel: expressions that the others of the kernel refer to by name.
    fn names(&mut self, table: &DeTable<'_>) {
        self.names.clear();
        let mut names = Names::new();
        let Some(list) = self.reader.table(table, "let") else {
            return;
        };
        for (name, value) in list {
            if !expression::is_free(name.get_ref()) {
                let message = match expression::tensor(name.get_ref()) {
                    Some(tensor) => format!(
                        "`{tensor}` is an operand or a result already; names of one letter go from `i` to `p`"
                    ),
                    None => "a name is made of letters, digits and `_`, and has no meaning yet"
                        .to_owned(),
                };
                self.error(name.span(), message);
            }
            if let DeValue::String(text) = value.get_ref()
                && let Err(mistake) = Expression::parse(text)
                && let Some(other) = text.get(mistake.span.clone())
                && list.contains_key(other)
            {
                let message = format!(
                    "`{other}` is a name of this `let`, and none is known inside it; write it out"
                );
                self.inside(value, text, Mistake { message, ..mistake });
            } else if let Some(expression) = self.expression(value) {
                names.insert(name.get_ref().to_string(), expression);
            }
        }
        self.names = names;
    }

    fn conditions(&mut self, table: &DeTable<'_>) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for value in self.list(table, "when", MAX_ENTRIES) {
            let (check, reason) = match value.get_ref() {
                DeValue::Table(row) => {
                    self.reader.check(row, value.span(), &schema::CONDITION);
                    (row.get("check"), self.reader.text(row, "reason"))
                }
                _ => (Some(value), None),
            };
            let Some(holds) = check.and_then(|check| self.expression(check)) else {
                continue;
            };
            let reason = match reason {
                Some((reason, _)) => reason.to_owned(),
                None => format!("`{}` does not hold", holds.text),
            };
            conditions.push(Condition { holds, reason });
        }
        conditions
    }

    /// An expression: a text, or a plain integer.
    pub(super) fn expression(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Expression> {
        let text: Cow<'_, str> = match value.get_ref() {
            DeValue::String(text) => text.clone(),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => number.to_string().into(),
                    Err(_) => {
                        self.error(value.span(), "this number is too large");
                        return None;
                    }
                }
            }
            _ => {
                let message = "expected an expression: a string or an integer";
                self.error(value.span(), message);
                return None;
            }
        };
        match Expression::parse_with(&text, &self.names) {
            Ok(expression) => Some(expression),
            Err(mistake) => {
                self.inside(value, &text, mistake);
                None
            }
        }
    }

    /// Mistakes of pack files are told without their codes.
    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.reader.error(Code::Syntax, span, message);
    }

    /// Reports a mistake inside a string.
    pub(super) fn inside(&mut self, value: &Spanned<DeValue<'_>>, text: &str, mistake: Mistake) {
        let place = self
            .reader
            .source()
            .inside(value.span(), text, mistake.span);
        self.error(place, mistake.message);
    }

    /// The values of a list of any kind.
    pub(super) fn list<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        key: &str,
        most: usize,
    ) -> Vec<&'t Spanned<DeValue<'i>>> {
        let Some(DeValue::Array(items)) = table.get(key).map(Spanned::get_ref) else {
            return Vec::new();
        };
        if let Some(first) = items.get(most) {
            let message = format!("`{key}` has at most {most} entries");
            self.error(first.span(), message);
        }
        items.iter().take(most).collect()
    }

    /// Whether a kernel has a key that not every kernel needs.
    pub(super) fn has(&mut self, table: &DeTable<'_>, at: &Range<usize>, key: &str) -> bool {
        let found = table.contains_key(key);
        if !found {
            self.error(at.clone(), format!("[[kernel]] needs `{key}`"));
        }
        found
    }
}
