//! Typed access to a parsed `pack.toml`, which collects every mistake with its place. It knows no key.

use crate::diagnostic::{SourceText, did_you_mean};
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value with its place in the file.
type Placed<T> = (T, Range<usize>);

/// Collects mistakes while values are read. A value of the wrong type counts as absent.
pub(super) struct Reader<'s> {
    source: &'s SourceText,
    errors: Vec<(Range<usize>, String)>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s SourceText) -> Reader<'s> {
        Reader {
            source,
            errors: Vec::new(),
        }
    }

    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.errors.push((span, message.into()));
    }

    /// Every mistake, in the order of the file.
    pub(super) fn finish(mut self) -> Result<(), String> {
        self.errors.sort_by_key(|(span, _)| span.start);
        let reports: Vec<String> = self
            .errors
            .into_iter()
            .map(|(span, message)| self.source.report(span, &message))
            .collect();
        if reports.is_empty() {
            Ok(())
        } else {
            Err(reports.join("\n"))
        }
    }

    /// Refuses every key of `table` that is not `known`.
    pub(super) fn keys(&mut self, table: &DeTable<'_>, owner: &str, known: &[&str]) {
        for key in table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
        {
            let hint = match did_you_mean(key.get_ref(), known.iter().copied()) {
                hint if hint.is_empty() => format!("; it has `{}`", known.join("`, `")),
                hint => hint,
            };
            self.error(
                key.span(),
                format!("{owner} has no key `{}`{hint}", key.get_ref()),
            );
        }
    }

    pub(super) fn text<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        key: &str,
    ) -> Option<Placed<&'t str>> {
        self.as_text(table.get(key)?)
    }

    pub(super) fn required<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        at: Range<usize>,
        owner: &str,
        key: &str,
    ) -> Option<&'t str> {
        if table.get(key).is_none() {
            self.error(at, format!("{owner} needs `{key}`"));
        }
        self.text(table, key).map(|(text, _)| text)
    }

    /// A list of texts.
    pub(super) fn texts<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        key: &str,
    ) -> Option<Vec<Placed<&'t str>>> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::Array(items) => {
                Some(items.iter().filter_map(|item| self.as_text(item)).collect())
            }
            other => self.mismatch(value.span(), "a list of strings", other),
        }
    }

    pub(super) fn integer(&mut self, table: &DeTable<'_>, key: &str) -> Option<i64> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                if parsed.is_err() {
                    self.error(value.span(), "this number is too large");
                }
                parsed.ok()
            }
            other => self.mismatch(value.span(), "an integer", other),
        }
    }

    /// The value that a word stands for.
    pub(super) fn choice<T: Copy>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        choices: &[(&str, T)],
    ) -> Option<Placed<T>> {
        let (word, span) = self.text(table, key)?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == word) {
            return Some((*value, span));
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let hint = did_you_mean(word, names.iter().copied());
        self.error(
            span,
            format!(
                "`{key}` is one of \"{}\", not \"{word}\"{hint}",
                names.join("\", \"")
            ),
        );
        None
    }

    pub(super) fn table<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        key: &str,
    ) -> Option<&'t DeTable<'i>> {
        self.as_table(table.get(key)?)
    }

    /// The tables of a `[[key]]` list, each with the place of its header.
    pub(super) fn list_of_tables<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        key: &str,
    ) -> Vec<(Range<usize>, &'t DeTable<'i>)> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| Some((item.span(), self.as_table(item)?)))
                .collect(),
            other => self
                .mismatch(value.span(), "a list of tables", other)
                .unwrap_or_default(),
        }
    }

    fn as_text<'t>(&mut self, value: &'t Spanned<DeValue<'_>>) -> Option<Placed<&'t str>> {
        match value.get_ref() {
            DeValue::String(text) => Some((text.as_ref(), value.span())),
            other => self.mismatch(value.span(), "a string", other),
        }
    }

    fn as_table<'t, 'i>(&mut self, value: &'t Spanned<DeValue<'i>>) -> Option<&'t DeTable<'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => self.mismatch(value.span(), "a table", other),
        }
    }

    fn mismatch<T>(&mut self, span: Range<usize>, expected: &str, got: &DeValue<'_>) -> Option<T> {
        let got = match got {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(span, format!("expected {expected}, got {got}"));
        None
    }
}
