//! `pack.toml` of a code-free pack, read and checked on its own: every mistake at once, each with its place.

use super::{
    Table, VERSION,
    reader::Reader,
    row::{Condition, Row},
    step,
};
use crate::{
    MAX_RANK, NUMERICS,
    diagnostic::SourceText,
    expression::{self, Expression, Mistake, Names},
    is_pack_id, is_printable,
};
use nx_vulkan_abi::Numerics;
use semver::Version;
use std::{borrow::Cow, ops::Range, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const MAX_KERNELS: usize = 256;
/// Rank of a kernel that names none: a good general kernel's.
const RANK: i64 = 128;
/// Entries of any other list.
pub(super) const MAX_ENTRIES: usize = 64;

/// Reads a table; `files` are the names of the pack's other files.
pub(super) fn parse(path: &Path, text: &str, files: &[&str]) -> Result<Table, String> {
    let source = SourceText::new(path, text.to_owned());
    let document = DeTable::parse(source.text()).map_err(|error| {
        // The parser spreads what it expected over a second line.
        let message = error.message().replace('\n', ", ");
        source.report(error.span().unwrap_or_default(), &message)
    })?;
    let mut sheet = Sheet {
        reader: Reader::new(&source),
        text: source.text(),
        files,
        names: Names::new(),
    };
    let table = sheet.document(document.get_ref());
    sheet.reader.finish()?;
    table.ok_or_else(|| format!("{}: it describes no pack", path.display()))
}

/// A table that is being read.
pub(super) struct Sheet<'s> {
    pub(super) reader: Reader<'s>,
    text: &'s str,
    pub(super) files: &'s [&'s str],
    /// The expressions that the kernel at hand names.
    pub(super) names: Names,
}

impl Sheet<'_> {
    fn document(&mut self, root: &DeTable<'_>) -> Option<Table> {
        self.reader.keys(root, "the file", &["pack", "kernel"]);
        if root.get("pack").is_none() {
            self.reader.error(0..0, "the file needs a table [pack]");
        }
        let pack = self.reader.table(root, "pack");
        let pack = pack.and_then(|pack| self.pack(root.get("pack")?.span(), pack));
        let tables = self.reader.list_of_tables(root, "kernel");
        if tables.is_empty() && root.get("kernel").is_none() {
            self.reader.error(0..0, "the file needs a [[kernel]]");
        }
        if let Some((span, _)) = tables.get(MAX_KERNELS) {
            let message = format!("a pack has at most {MAX_KERNELS} kernels");
            self.reader.error(span.clone(), message);
        }
        let mut rows: Vec<Row> = Vec::new();
        for (span, table) in tables.into_iter().take(MAX_KERNELS) {
            let Some(row) = self.kernel(span.clone(), table) else {
                continue;
            };
            if rows.iter().any(|other| other.id == row.id) {
                let span = table.get("id").map_or(span, Spanned::span);
                let message = format!("two kernels are called `{}`", row.id);
                self.reader.error(span, message);
            }
            rows.push(row);
        }
        let (id, version) = pack?;
        Some(Table { id, version, rows })
    }

    fn pack(&mut self, at: Range<usize>, table: &DeTable<'_>) -> Option<(String, Version)> {
        self.reader.keys(table, "[pack]", &["id", "version", "abi"]);
        let id = self.required(table, &at, "[pack]", "id");
        let version = self.required(table, &at, "[pack]", "version");
        if let Some((abi, span)) = self.required(table, &at, "[pack]", "abi")
            && abi != VERSION
        {
            let message = format!("this host reads `abi = \"{VERSION}\"` only");
            self.reader.error(span, message);
        }
        let (id, span) = id?;
        if !is_pack_id(id) {
            self.reader.error(
                span,
                "a pack id is made of letters, digits, `.`, `_` and `-`, and is not `host`",
            );
        }
        let (text, span) = version?;
        let version = Version::parse(text).map_err(|error| {
            let message = format!("`{text}` is not a semantic version: {error}");
            self.reader.error(span, message);
        });
        Some((id.to_owned(), version.ok()?))
    }

    fn kernel(&mut self, at: Range<usize>, table: &DeTable<'_>) -> Option<Row> {
        let own = [
            "id",
            "op",
            "inputs",
            "outputs",
            "types",
            "needs",
            "numerics",
            "rank",
            "contiguous",
            "let",
            "when",
            "scratch",
            "step",
        ];
        let known: Vec<&str> = own.iter().chain(step::KEYS).copied().collect();
        self.reader.keys(table, "[[kernel]]", &known);
        let id = self.printable(table, &at, "id");
        let op = self.printable(table, &at, "op");
        self.names(table);
        let types = self.types(table);
        let inputs = self.set(table, &at, "inputs", &types, |signature| &signature.0);
        let outputs = self.set(table, &at, "outputs", &types, |signature| &signature.1);
        let needs = self.needs(table);
        let numerics = self.reader.choice(table, "numerics", NUMERICS);
        let rank = self.rank(table);
        let contiguous = self.flag(table, "contiguous").unwrap_or(true);
        let when = self.conditions(table);
        let scratch = self.list(table, "scratch", step::MAX_SCRATCH);
        let scratch: Vec<_> = scratch.iter().map(|value| self.expression(value)).collect();
        let steps = self.steps(at, table, scratch.len());
        let mut row = Row {
            id: id?,
            op: op?,
            inputs: inputs?,
            outputs: outputs?,
            types,
            needs,
            numerics: numerics.map_or(Numerics::IEEE, |(numerics, _)| numerics),
            rank,
            contiguous,
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
                let message = "a name is made of letters, digits and `_`, and has no meaning yet";
                self.reader.error(name.span(), message);
            }
            if let Some(expression) = self.expression(value) {
                names.insert(name.get_ref().to_string(), expression);
            }
        }
        self.names = names;
    }

    fn rank(&mut self, table: &DeTable<'_>) -> u32 {
        let rank = self.reader.integer(table, "rank").unwrap_or(RANK);
        let fits = u32::try_from(rank).ok().filter(|&rank| rank <= MAX_RANK);
        fits.unwrap_or_else(|| {
            let span = table.get("rank").map_or(0..0, Spanned::span);
            let message = format!("a rank is a number from 0 to {MAX_RANK}");
            self.reader.error(span, message);
            0
        })
    }

    fn flag(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => {
                let message = format!("`{key}` is true or false");
                self.reader.error(value.span(), message);
                None
            }
        }
    }

    fn conditions(&mut self, table: &DeTable<'_>) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for value in self.list(table, "when", MAX_ENTRIES) {
            let (check, reason) = match value.get_ref() {
                DeValue::Table(row) => {
                    self.reader.keys(row, "a condition", &["check", "reason"]);
                    let check = row.get("check");
                    if check.is_none() {
                        self.reader.error(value.span(), "a condition needs `check`");
                    }
                    let reason = self.required(row, &value.span(), "a condition", "reason");
                    (check, reason.map(|(reason, _)| reason.to_owned()))
                }
                _ => (Some(value), None),
            };
            let Some(holds) = check.and_then(|check| self.expression(check)) else {
                continue;
            };
            let reason = reason.unwrap_or_else(|| format!("`{}` does not hold", holds.text));
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
                        self.reader.error(value.span(), "this number is too large");
                        return None;
                    }
                }
            }
            _ => {
                let message = "expected an expression: a string or an integer";
                self.reader.error(value.span(), message);
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

    /// Reports a mistake inside a string, at its own place where the string is written plainly.
    pub(super) fn inside(&mut self, value: &Spanned<DeValue<'_>>, text: &str, mistake: Mistake) {
        let span = value.span();
        let written = self.text.get(span.start + 1..).unwrap_or_default();
        let place = if written.starts_with(text) && !matches!(value.get_ref(), DeValue::Integer(_))
        {
            let start = span.start + 1;
            start + mistake.span.start..start + mistake.span.end
        } else {
            span
        };
        self.reader.error(place, mistake.message);
    }

    /// The values of a list of any kind.
    pub(super) fn list<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        key: &str,
        most: usize,
    ) -> Vec<&'t Spanned<DeValue<'i>>> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!("`{key}` is a list");
            self.reader.error(value.span(), message);
            return Vec::new();
        };
        if let Some(first) = items.get(most) {
            let message = format!("`{key}` has at most {most} entries");
            self.reader.error(first.span(), message);
        }
        items.iter().take(most).collect()
    }

    pub(super) fn required<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        at: &Range<usize>,
        owner: &str,
        key: &str,
    ) -> Option<(&'t str, Range<usize>)> {
        let text = self.reader.required(table, at.clone(), owner, key)?;
        Some((text, table.get(key)?.span()))
    }

    fn printable(&mut self, table: &DeTable<'_>, at: &Range<usize>, key: &str) -> Option<String> {
        let (text, span) = self.required(table, at, "[[kernel]]", key)?;
        if !is_printable(text) {
            let message = format!("`{key}` is 1 to 128 printable characters without spaces");
            self.reader.error(span, message);
        }
        Some(text.to_owned())
    }
}
