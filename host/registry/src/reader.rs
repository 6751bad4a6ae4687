//! Access to a parsed TOML document: checks it against the schema table, collecting every mistake with its place.

use super::{
    codes::Code,
    diagnostic::{Diagnostic, Severity, SourceText, did_you_mean, shown},
    format::check_text,
    schema::{Block, Format, Value},
};
use nx_vulkan_abi::Features;
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

/// A value with its place in the file.
type Placed<T> = (T, Range<usize>);

/// What is odd or wrong about a place of the file.
pub(super) type Finding = (Range<usize>, Code, Severity, String);

/// Mistakes beyond this many are not reported.
pub(super) const MOST: usize = 100;

/// The document that `text` is, or where and why it is none.
pub(super) fn document(text: &str) -> Result<DeTable<'_>, (Range<usize>, String)> {
    let parsed = DeTable::parse(text).map_err(|error| {
        // The parser spreads what it expected over a second line.
        let message = error.message().replace('\n', ", ");
        (error.span().unwrap_or_default(), message)
    });
    parsed.map(Spanned::into_inner)
}

/// Collects mistakes while values are read. A value that [`Reader::check`] refuses counts as absent.
pub(super) struct Reader<'s> {
    source: &'s SourceText,
    found: Vec<Finding>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s SourceText) -> Reader<'s> {
        Reader {
            source,
            found: Vec::new(),
        }
    }

    pub(super) fn source(&self) -> &'s SourceText {
        self.source
    }

    pub(super) fn error(&mut self, code: Code, span: Range<usize>, message: impl Into<String>) {
        self.add((span, code, Severity::Error, message.into()));
    }

    pub(super) fn warning(&mut self, code: Code, span: Range<usize>, message: impl Into<String>) {
        self.add((span, code, Severity::Warning, message.into()));
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    /// The warnings, in the order of the file; or everything that was found, where an error is among it.
    pub(super) fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        self.sort();
        let failed = self.found.iter().any(|found| found.2 == Severity::Error);
        let diagnostics = self
            .found
            .into_iter()
            .map(|(span, code, severity, message)| {
                self.source.diagnostic(code, severity, span, message)
            })
            .collect();
        if failed {
            Err(diagnostics)
        } else {
            Ok(diagnostics)
        }
    }

    /// Every mistake of a file whose mistakes have no codes, in its order.
    pub(super) fn reports(mut self) -> Result<(), String> {
        self.sort();
        let found = self.found.iter();
        let reports: Vec<String> = found
            .map(|(span, _, _, message)| self.source.report(span.clone(), message))
            .collect();
        match reports.is_empty() {
            true => Ok(()),
            false => Err(reports.join("\n")),
        }
    }

    fn sort(&mut self) {
        // What is cut off are warnings as long as there are any.
        self.found
            .sort_by_key(|(span, _, severity, _)| (*severity != Severity::Error, span.start));
        self.found.truncate(MOST);
        self.found.sort_by_key(|(span, ..)| span.start);
    }

    /// Reports every key of `table` that `block` does not have or wants and every value that is not as it says.
    pub(super) fn check(&mut self, table: &DeTable<'_>, at: Range<usize>, block: &Block) {
        for (key, value) in table {
            match block
                .keys
                .iter()
                .find(|known| known.name == key.get_ref().as_ref())
            {
                Some(known) => self.check_value(value, &known.value),
                None => self.unknown_key(key, block),
            }
        }
        for key in block.keys.iter().filter(|key| key.required) {
            if !table.contains_key(key.name) {
                let only = match key.value {
                    Value::Integer(least, most) if least == most => format!(" = {least}"),
                    _ => String::new(),
                };
                let message = format!("{} needs `{}{only}`", block.name, key.name);
                self.error(Code::MissingKey, at.clone(), message);
            }
        }
    }

    fn unknown_key(&mut self, key: &Spanned<DeString<'_>>, block: &Block) {
        let names = block.keys.iter().map(|known| known.name);
        let hint = match did_you_mean(key.get_ref(), names.clone()) {
            hint if hint.is_empty() => {
                format!("; it has `{}`", names.collect::<Vec<_>>().join("`, `"))
            }
            hint => hint,
        };
        let message = format!("{} has no key `{}`{hint}", block.name, shown(key.get_ref()));
        self.error(Code::UnknownKey, key.span(), message);
    }

    pub(super) fn check_value(&mut self, value: &Spanned<DeValue<'_>>, wanted: &Value) {
        let span = value.span();
        match (wanted, value.get_ref()) {
            (Value::Integer(least, most), DeValue::Integer(number)) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                if !number.is_ok_and(|number| (*least..=*most).contains(&number)) {
                    let message = format!("expected a number from {least} to {most}");
                    self.error(Code::OutOfRange, span, message);
                }
            }
            (Value::Boolean, DeValue::Boolean(_)) => {}
            (Value::Text(format), DeValue::String(text)) => self.check_format(*format, text, span),
            (Value::Word(words), DeValue::String(text)) => {
                if !words.contains(&text.as_ref()) {
                    let hint = did_you_mean(text, words.iter().copied());
                    let words = words.join("\", \"");
                    let message =
                        format!("expected one of \"{words}\", got \"{}\"{hint}", shown(text));
                    self.error(Code::UnknownWord, span, message);
                }
            }
            (Value::List(least, of), DeValue::Array(items)) => {
                if items.len() < *least {
                    self.error(Code::Empty, span, "the list is empty");
                }
                for item in items.iter() {
                    self.check_value(item, of);
                }
            }
            (Value::Table(block), DeValue::Table(table)) => self.check(table, span, block),
            (Value::Named(names, block), DeValue::Table(tables)) => {
                for (key, value) in tables {
                    self.check_format(*names, key.get_ref(), key.span());
                    self.check_value(value, &Value::Table(block));
                }
            }
            (Value::Pins, DeValue::String(text)) => self.check_format(Format::Sha256, text, span),
            (Value::Pins, DeValue::Table(targets)) => {
                for pin in targets.values() {
                    self.check_value(pin, &Value::Text(Format::Sha256));
                }
            }
            (Value::Entries, DeValue::Table(_)) | (Value::Any, _) => {}
            (_, got) => {
                let message = format!("expected {}, got {}", kind_wanted(wanted), kind_of(got));
                self.error(Code::WrongType, span, message);
            }
        }
    }

    fn check_format(&mut self, format: Format, text: &str, span: Range<usize>) {
        if let Err(mistake) = check_text(format, text) {
            let at = mistake
                .at
                .map_or(span.clone(), |at| self.source.inside(span, text, at));
            self.error(mistake.code, at, mistake.message);
        }
    }

    pub(super) fn text<'t>(&self, table: &'t DeTable<'_>, key: &str) -> Option<Placed<&'t str>> {
        as_text(table.get(key)?)
    }

    /// A list of texts; those that are none are left out.
    pub(super) fn texts<'t>(&self, table: &'t DeTable<'_>, key: &str) -> Vec<Placed<&'t str>> {
        match table.get(key).map(Spanned::get_ref) {
            Some(DeValue::Array(items)) => items.iter().filter_map(as_text).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn integer<T: TryFrom<i64>>(&self, table: &DeTable<'_>, key: &str) -> Option<T> {
        let DeValue::Integer(number) = table.get(key)?.get_ref() else {
            return None;
        };
        let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
        T::try_from(number).ok()
    }

    pub(super) fn boolean(&self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        match table.get(key)?.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// The features that `needs` lists.
    pub(super) fn features(&self, table: &DeTable<'_>) -> Features {
        let names = self.texts(table, "needs").into_iter();
        names
            .filter_map(|(name, _)| Features::from_name(name))
            .fold(Features::NONE, Features::with)
    }

    /// What a word stands for.
    pub(super) fn word<T: Copy>(
        &self,
        table: &DeTable<'_>,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<Placed<T>> {
        let (word, span) = self.text(table, key)?;
        let found = words.iter().find(|(name, _)| *name == word)?;
        Some((found.1, span))
    }

    pub(super) fn table<'t, 'i>(
        &self,
        table: &'t DeTable<'i>,
        key: &str,
    ) -> Option<&'t DeTable<'i>> {
        as_table(table.get(key)?)
    }

    /// The entries of a table whose values are tables.
    pub(super) fn tables<'t, 'i>(
        &self,
        table: &'t DeTable<'i>,
    ) -> Vec<(&'t Spanned<DeString<'i>>, &'t DeTable<'i>)> {
        let entries = table.iter();
        entries
            .filter_map(|(key, value)| Some((key, as_table(value)?)))
            .collect()
    }

    /// The tables of a `[[key]]` list, each with the place of its header.
    pub(super) fn list_of_tables<'t, 'i>(
        &self,
        table: &'t DeTable<'i>,
        key: &str,
    ) -> Vec<(Range<usize>, &'t DeTable<'i>)> {
        match table.get(key).map(Spanned::get_ref) {
            Some(DeValue::Array(items)) => items
                .iter()
                .filter_map(|item| Some((item.span(), as_table(item)?)))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn as_text<'t>(value: &'t Spanned<DeValue<'_>>) -> Option<Placed<&'t str>> {
    match value.get_ref() {
        DeValue::String(text) => Some((text.as_ref(), value.span())),
        _ => None,
    }
}

fn as_table<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> Option<&'t DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn kind_wanted(wanted: &Value) -> &'static str {
    match wanted {
        Value::Integer(..) => "an integer",
        Value::Boolean => "a boolean",
        Value::Text(_) | Value::Word(_) => "a string",
        Value::List(_, Value::Table(_)) => "a list of tables",
        Value::List(_, Value::Any) => "a list",
        Value::List(..) => "a list of strings",
        Value::Table(_) | Value::Named(..) | Value::Entries => "a table",
        Value::Any => "a value",
        Value::Pins => "a string, or a table with one for each target",
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
