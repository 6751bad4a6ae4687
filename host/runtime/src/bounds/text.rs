//! A GLSL text as the preprocessor sees it: without comments, as tokens, with its macros apart.

use rustc_hash::FxHashMap;

/// The text without comments and continued lines, with one kind of line end. A line that had more than one line end is
/// followed by as many empty lines, so that the next one keeps its number.
pub(crate) fn plain(text: &str) -> Result<Plain, String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let continues_comments = version(&text).is_some_and(|version| version >= 420);
    let mut out = Plain {
        text: String::with_capacity(text.len()),
        moves_code: false,
        owed: 0,
        is_directive: None,
    };
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['\\', '/', '"']) {
        out.push(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("\\\n") {
            out.owed += 1;
            rest = after;
        } else if let Some(comment) = lead(rest, ['/', '/']) {
            let mut comment = comment;
            rest = loop {
                let end = comment.find('\n').unwrap_or(comment.len());
                let continued = comment[..end].ends_with('\\');
                out.owed += usize::from(continued && end < comment.len());
                match (continued, comment.get(end + 1..)) {
                    (true, _) if !continues_comments => {
                        // Whether the comment goes on depends on the compiler's mood towards old versions.
                        return Err(
                            "a comment ends in a backslash, which needs #version 420".to_owned()
                        );
                    }
                    (true, Some(next)) => comment = next,
                    _ => break &comment[end..],
                }
            };
        } else if let Some(comment) = lead(rest, ['/', '*']) {
            out.push(" ");
            let after = end_of_comment(comment);
            out.owed += line_ends(&rest[..rest.len() - after.len()]);
            rest = after;
        } else if let Some(string) = rest.strip_prefix('"') {
            let end = string.find(['"', '\n']).map_or(string.len(), |end| end + 1);
            if string[..end].contains('\\') {
                return Err("a string contains a backslash".to_owned());
            }
            out.push(&rest[..=end]);
            rest = &string[end..];
        } else {
            out.push(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push(rest);
    Ok(out)
}

#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) text: String,
    /// Whether anything but a directive stands in another line than it did.
    pub(crate) moves_code: bool,
    /// Line ends that were left out of the line.
    owed: usize,
    /// Whether the line is a directive, once that was asked.
    is_directive: Option<bool>,
}

impl Plain {
    fn push(&mut self, piece: &str) {
        let Some(end) = piece.find('\n') else {
            self.push_within(piece);
            return;
        };
        self.push_within(&piece[..end]);
        self.text.extend(std::iter::repeat_n('\n', self.owed));
        (self.owed, self.is_directive) = (0, None);
        self.text.push_str(&piece[end..]);
    }

    fn push_within(&mut self, piece: &str) {
        if self.owed > 0 && !self.moves_code && !piece.trim_start().is_empty() {
            let line = self.text.rsplit('\n').next().unwrap_or("");
            let of_line = || line.trim_start().starts_with('#');
            self.moves_code = !*self.is_directive.get_or_insert_with(of_line);
        }
        self.text.push_str(piece);
    }
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// What follows these two characters, between which a line may be continued.
fn lead(text: &str, [first, second]: [char; 2]) -> Option<&str> {
    let mut rest = text.strip_prefix(first)?;
    while let Some(after) = rest.strip_prefix("\\\n") {
        rest = after;
    }
    rest.strip_prefix(second)
}

fn end_of_comment(comment: &str) -> &str {
    let mut rest = comment;
    while let Some(at) = rest.find('*') {
        if let Some(after) = lead(&rest[at..], ['*', '/']) {
            return after;
        }
        rest = &rest[at + 1..];
    }
    ""
}

/// The number behind `#version`.
fn version(text: &str) -> Option<u32> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("#version"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Name(&'a str),
    Number(&'a str),
    Open,
    Close,
    Comma,
    /// `##`
    Paste,
    /// Any other punctuation.
    Mark(u8),
}

/// Definitions of each macro.
pub(super) type Macros<'a> = FxHashMap<&'a str, Vec<Definition<'a>>>;

#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) parameters: Option<Vec<&'a str>>,
    pub(super) body: Vec<Token<'a>>,
}

/// The tokens of a line, each with its place there.
#[derive(Debug, Clone)]
pub(crate) struct Tokens<'a> {
    line: &'a str,
    at: usize,
}

pub(crate) fn tokens(line: &str) -> Tokens<'_> {
    Tokens { line, at: 0 }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<(usize, Token<'a>)> {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let (line, bytes) = (self.line, self.line.as_bytes());
        while let Some(&byte) = bytes.get(self.at) {
            let start = self.at;
            let rest = &bytes[start..];
            let word = |more: fn(u8) -> bool| {
                let end = rest.iter().position(|&b| !(is_word(b) || more(b)));
                start + end.unwrap_or(rest.len())
            };
            self.at += 1;
            let token = match byte {
                b'0'..=b'9' => {
                    self.at = word(|b| b == b'.');
                    Token::Number(&line[start..self.at])
                }
                _ if is_word(byte) => {
                    self.at = word(|_| false);
                    Token::Name(&line[start..self.at])
                }
                b'(' => Token::Open,
                b')' => Token::Close,
                b',' => Token::Comma,
                b'#' if rest.get(1) == Some(&b'#') => {
                    self.at += 1;
                    Token::Paste
                }
                // The point of a number, not of a member.
                b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => continue,
                _ if byte.is_ascii_punctuation() => Token::Mark(byte),
                _ => continue,
            };
            return Some((start, token));
        }
        None
    }
}

/// What a directive defines.
#[derive(Debug)]
pub(crate) struct Define<'a> {
    pub(crate) name: &'a str,
    pub(crate) parameters: Option<Vec<&'a str>>,
    pub(crate) body: &'a str,
}

/// The macro that a directive defines.
pub(crate) fn definition(directive: &str) -> Option<Define<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = directive.trim_start().strip_prefix("define")?;
    let named = rest.trim_start();
    let end = named.find(|c| !is_word(c)).unwrap_or(named.len());
    if named.len() == rest.len() || end == 0 {
        return None;
    }
    let (name, rest) = named.split_at(end);
    let (parameters, body) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (list, rest) = rest.split_once(')').unwrap_or((rest, ""));
            (Some(list.split(',').map(str::trim).collect()), rest)
        }
        None => (None, rest),
    };
    Some(Define {
        name,
        parameters,
        body,
    })
}
