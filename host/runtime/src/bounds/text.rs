//! A GLSL text as the preprocessor sees it: without comments, as tokens, with its macros apart.

use rustc_hash::FxHashMap;

/// The text without comments and continued lines, with one kind of line end.
pub(super) fn plain(text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let continues_comments = version(&text).is_some_and(|version| version >= 420);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['\\', '/', '"']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("\\\n") {
            rest = after;
        } else if let Some(comment) = lead(rest, ['/', '/']) {
            let mut comment = comment;
            rest = loop {
                let end = comment.find('\n').unwrap_or(comment.len());
                let continued = comment[..end].ends_with('\\');
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
            out.push(' ');
            rest = end_of_comment(comment);
        } else if let Some(string) = rest.strip_prefix('"') {
            let end = string.find(['"', '\n']).map_or(string.len(), |end| end + 1);
            if string[..end].contains('\\') {
                return Err("a string contains a backslash".to_owned());
            }
            out.push_str(&rest[..=end]);
            rest = &string[end..];
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
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
pub(super) enum Token<'a> {
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

pub(super) fn tokens<'a>(line: &'a str, out: &mut Vec<Token<'a>>) {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'0'..=b'9' => {
                while bytes.get(at).is_some_and(|&b| is_word(b) || b == b'.') {
                    at += 1;
                }
                out.push(Token::Number(&line[start..at]));
            }
            _ if is_word(byte) => {
                while bytes.get(at).is_some_and(|&b| is_word(b)) {
                    at += 1;
                }
                out.push(Token::Name(&line[start..at]));
            }
            b'(' => out.push(Token::Open),
            b')' => out.push(Token::Close),
            b',' => out.push(Token::Comma),
            b'#' if bytes.get(at) == Some(&b'#') => {
                at += 1;
                out.push(Token::Paste);
            }
            // The point of a number, not of a member.
            b'.' if bytes.get(at).is_some_and(u8::is_ascii_digit) => {}
            _ if byte.is_ascii_punctuation() => out.push(Token::Mark(byte)),
            _ => {}
        }
    }
}

/// The macro that a directive defines.
pub(super) fn definition(directive: &str) -> Option<(&str, Definition<'_>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = directive.trim_start().strip_prefix("define")?;
    let named = rest.trim_start();
    let end = named.find(|c| !is_word(c)).unwrap_or(named.len());
    if named.len() == rest.len() || end == 0 {
        return None;
    }
    let (name, rest) = named.split_at(end);
    let (parameters, rest) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (list, rest) = rest.split_once(')').unwrap_or((rest, ""));
            (Some(list.split(',').map(str::trim).collect()), rest)
        }
        None => (None, rest),
    };
    let mut body = Vec::new();
    tokens(rest, &mut body);
    Some((name, Definition { parameters, body }))
}
