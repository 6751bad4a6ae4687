//! Messages about a text file, each with its place and the source line; and what to suggest for a misspelt name.

use super::codes::Code;
use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};
use strsim::osa_distance;

/// Characters of a source line that a message shows.
const EXCERPT: usize = 120;

/// Names longer than this are not compared with others.
const COMPARED: usize = 64;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// What kind of thing.
    pub code: Code,
    /// Whether the file can be used all the same.
    pub severity: Severity,
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what to do where that is known.
    pub message: String,
    /// The source line with carets under the place; empty where there is none.
    pub excerpt: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is used.
    Warning,
}

impl Diagnostic {
    /// A file of which not even the text is known.
    pub(super) fn unreadable(path: &Path, message: String) -> Diagnostic {
        Diagnostic {
            code: Code::Unreadable,
            severity: Severity::Error,
            file: path.to_owned(),
            line: 0,
            column: 0,
            message,
            excerpt: String::new(),
        }
    }

    /// `registry.toml:27: NXR028: ...`, in one line.
    pub fn line(&self) -> String {
        let name = Path::new(self.file.file_name().unwrap_or_default());
        format!(
            "{}:{}: {}: {}",
            name.display(),
            self.line,
            self.code,
            self.message
        )
    }
}

/// `path:line:column: error NXR004: message`, the source line, and carets under the place.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Diagnostic {
            code,
            line,
            column,
            message,
            ..
        } = self;
        if self.line == 0 {
            return write!(f, "{severity} {code}: {message}");
        }
        let file = self.file.display();
        write!(
            f,
            "{file}:{line}:{column}: {severity} {code}: {message}\n{}",
            self.excerpt
        )
    }
}

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

    /// The place of a part of a string, where the file spells the string as it is, else that of the string.
    pub(super) fn inside(
        &self,
        string: Range<usize>,
        text: &str,
        part: Range<usize>,
    ) -> Range<usize> {
        let quoted = self.text.get(string.clone()).unwrap_or_default();
        match quoted.find(text) {
            Some(start) if !text.is_empty() => {
                let start = string.start + start;
                start + part.start..start + part.end
            }
            _ => string,
        }
    }

    /// A message about the text at `span`.
    pub(super) fn diagnostic(
        &self,
        code: Code,
        severity: Severity,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Diagnostic {
        let (line, column, _) = self.place(span.start);
        Diagnostic {
            code,
            severity,
            file: self.path.clone(),
            line,
            column,
            message: printed(&message.into()),
            excerpt: self.excerpt(span),
        }
    }

    /// `path:line:column: message` and the excerpt, for what is not wrong with the file itself.
    pub(super) fn report(&self, span: Range<usize>, message: &str) -> String {
        let (line, column, _) = self.place(span.start);
        let path = self.path.display();
        let message = printed(message);
        format!("{path}:{line}:{column}: {message}\n{}", self.excerpt(span))
    }

    /// The line at `span`, or the part of it around `span` where it is long, and carets below.
    fn excerpt(&self, span: Range<usize>) -> String {
        let (line, column, start) = self.place(span.start);
        let source = self.text[start..].lines().next().unwrap_or_default();
        let from = self.floor(span.start).min(start + source.len());
        let to = self.floor(span.end).clamp(from, start + source.len());
        let first = (column - 1).saturating_sub(EXCERPT / 2);
        let first = if source.chars().nth(EXCERPT).is_none() {
            0
        } else {
            first
        };
        let shown: Vec<char> = source.chars().skip(first).take(EXCERPT).collect();
        let indent = (column - 1 - first).min(shown.len());
        let width = self.text[from..to].chars().count().min(EXCERPT - indent);
        let indent: String = shown[..indent]
            .iter()
            .map(|&c| if c == '\t' { c } else { ' ' })
            .collect();
        let shown: String = shown.into_iter().map(visible).collect();
        let carets = "^".repeat(width.max(1));
        let margin = " ".repeat(line.to_string().len());
        format!(" {line} | {shown}\n {margin} | {indent}{carets}")
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

/// `; did you mean ...?` when one of `known` is close to `name`, else nothing. Two neighbours swapped are one mistake.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let length = name.chars().count();
    if length > COMPARED {
        return String::new();
    }
    let comparable = |known: &&str| known.len() <= 4 * COMPARED;
    let known = known.into_iter().filter(comparable);
    let near = known.map(|k| (osa_distance(name, k), k)).min();
    match near {
        Some((steps, known)) if steps <= length.max(3) / 3 && steps < length => {
            format!("; did you mean `{known}`?")
        }
        _ => String::new(),
    }
}

/// Text from outside, fit for a log: control characters replaced, cut after `max` characters.
pub fn clean(text: &str, max: usize) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut clean: String = text.chars().take(max).map(plain).collect();
    if text.chars().nth(max).is_some() {
        clean.push('…');
    }
    clean
}

/// What a pack says, of a few lines with `apart` between them: all but the first are indented, so that none looks like a message
/// of its own.
pub(super) fn clean_lines(text: &str, apart: &str, max: usize) -> String {
    const LINES: usize = 8;
    let lines = text.trim_end().split(apart).take(LINES);
    let lines: Vec<String> = lines.map(|line| clean(line, max)).collect();
    lines.join(NEXT_LINE)
}

/// Between the lines of a message of several.
pub(super) const NEXT_LINE: &str = "\n    ";

/// A message of lines, fit for a terminal: other control characters replaced.
pub fn printed(message: &str) -> String {
    let visible = |c| if c == '\n' { c } else { visible(c) };
    message.chars().map(visible).collect()
}

/// A character of a source line, which keeps its tabs.
fn visible(c: char) -> char {
    if c.is_control() && c != '\t' {
        '\u{fffd}'
    } else {
        c
    }
}

/// Text of the file as a message repeats it.
pub(super) fn shown(text: &str) -> String {
    clean(text, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_points_at_characters_not_bytes() {
        let source = SourceText::new(Path::new("a/r.toml"), "x = 1\nä\t= \"ö\" # é\n".to_owned());
        let at = source.text.find("\"ö\"").unwrap();
        let report = source.diagnostic(Code::Syntax, Severity::Error, at..at + 4, "wrong");
        assert_eq!(
            report.to_string(),
            "a/r.toml:2:5: error NXR002: wrong\n 2 | ä\t= \"ö\" # é\n   |  \t  ^^^"
        );
        assert_eq!(report.line(), "r.toml:2: NXR002: wrong");
    }

    #[test]
    fn any_span_is_reported_without_a_panic() {
        let source = SourceText::new(Path::new("r"), "é\r\n\u{1b}[31m\n".to_owned());
        for start in 0..14 {
            for end in 0..14 {
                let report = source.diagnostic(Code::Use, Severity::Warning, start..end, "\u{1b}x");
                assert!(!report.to_string().contains('\u{1b}'));
                let report = source.report(start..end, "\u{1b}[0m");
                assert!(!report.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let source = SourceText::new(Path::new("r"), text);
        let excerpt = source.excerpt(1000..1900);
        let [line, carets] = excerpt.lines().collect::<Vec<_>>()[..] else {
            panic!("{excerpt}");
        };
        assert_eq!(line.len(), 5 + EXCERPT);
        assert_eq!(line.find('X'), carets.find('^'));
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
        assert_eq!(did_you_mean(&"x".repeat(65), ["x"]), "");
        // Others may have given names of any length, and each mistake is compared with all of them.
        assert_eq!(did_you_mean(&"x".repeat(64), [&*"x".repeat(257)]), "");
    }

    #[test]
    fn text_from_outside_is_clipped_and_cleaned() {
        assert_eq!(clean("a\u{1b}[0m\nb", 4), "a\u{fffd}[0…");
        assert_eq!(clean("a\tb", 4), "a\u{fffd}b");
    }

    /// What is wrong with a library's `pack.toml` came as one line, with U+FFFD where the next ones began.
    #[test]
    fn lines_from_outside_stay_lines() {
        let text = clean_lines("at line 1\n  |\n1 | [p\u{1b}\n", "\n", 80);
        assert_eq!(text, "at line 1\n      |\n    1 | [p\u{fffd}");
        assert_eq!(clean_lines(&text, NEXT_LINE, 80), text);
        assert_eq!(clean_lines("a\nb", NEXT_LINE, 80), "a\u{fffd}b");
        assert_eq!(clean_lines(&"x\n".repeat(50), "\n", 80).lines().count(), 8);
    }
}
