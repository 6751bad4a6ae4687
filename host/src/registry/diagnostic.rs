//! Messages about a text file, each with its place and the source line; and what to suggest for a misspelt name.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

/// A configuration file as it was read.
#[derive(Debug, Clone)]
pub(super) struct SourceText {
    path: PathBuf,
    text: String,
}

impl SourceText {
    pub(super) fn new(path: &Path, text: String) -> SourceText {
        SourceText {
            path: path.to_owned(),
            text,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The folder that relative paths in the file start from.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// `registry.toml:27`, for messages that point at a line in passing.
    pub(super) fn line(&self, at: usize) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("{}:{}", Path::new(name).display(), self.place(at).0)
    }

    /// `path:line:column: message`, the source line, and carets under `span`.
    pub(super) fn report(&self, span: Range<usize>, message: &str) -> String {
        let (line, column, start) = self.place(span.start);
        let source = self.text[start..].lines().next().unwrap_or_default();
        let from = self.floor(span.start).min(start + source.len());
        let to = self.floor(span.end).clamp(from, start + source.len());
        let carets = "^".repeat(self.text[from..to].chars().count().max(1));
        let indent: String = source
            .chars()
            .map(|c| if c == '\t' { c } else { ' ' })
            .collect();
        let indent: String = indent.chars().take(column - 1).collect();
        let source: String = source.chars().map(visible).collect();
        let margin = " ".repeat(line.to_string().len());
        format!(
            "{}:{line}:{column}: {message}\n {line} | {source}\n {margin} | {indent}{carets}",
            self.path.display()
        )
    }

    /// Line and column, both from 1 and the column in characters, and the byte at which the line starts.
    fn place(&self, at: usize) -> (usize, usize, usize) {
        let before = &self.text[..self.floor(at)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (
            before.matches('\n').count() + 1,
            before[start..].chars().count() + 1,
            start,
        )
    }

    fn floor(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        (0..=at)
            .rev()
            .find(|&at| self.text.is_char_boundary(at))
            .unwrap_or(0)
    }
}

/// `; did you mean ...?` when one of `known` is close to `name`, else nothing.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let length = name.chars().count();
    let near = known.into_iter().map(|k| (distance(name, k), k)).min();
    match near {
        Some((steps, known)) if steps <= length.max(3) / 3 && steps < length => {
            format!("; did you mean `{known}`?")
        }
        _ => String::new(),
    }
}

/// Text from outside, fit for a log: control characters replaced, cut after `max` characters.
pub(super) fn clean(text: &str, max: usize) -> String {
    let mut clean: String = text.chars().take(max).map(visible).collect();
    if text.chars().nth(max).is_some() {
        clean.push('…');
    }
    clean
}

fn visible(c: char) -> char {
    if c.is_control() && c != '\t' {
        '\u{fffd}'
    } else {
        c
    }
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_points_at_characters_not_bytes() {
        let source = SourceText::new(Path::new("a/r.toml"), "x = 1\nä\t= \"ö\" # é\n".to_owned());
        let at = source.text.find("\"ö\"").unwrap();
        assert_eq!(
            source.report(at..at + 4, "wrong"),
            "a/r.toml:2:5: wrong\n 2 | ä\t= \"ö\" # é\n   |  \t  ^^^"
        );
    }

    #[test]
    fn any_span_is_reported_without_a_panic() {
        let source = SourceText::new(Path::new("r"), "é\r\n\u{1b}[31m\n".to_owned());
        for start in 0..14 {
            for end in 0..14 {
                assert!(!source.report(start..end, "x").contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["fallback", "numerics"];
        assert_eq!(
            did_you_mean("fallbakc", known),
            "; did you mean `fallback`?"
        );
        assert_eq!(did_you_mean("colour", known), "");
        assert_eq!(did_you_mean("x", []), "");
    }

    #[test]
    fn text_from_outside_is_clipped_and_cleaned() {
        assert_eq!(clean("a\u{1b}[0m\nb", 4), "a\u{fffd}[0…");
    }
}
