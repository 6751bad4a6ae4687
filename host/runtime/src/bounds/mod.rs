//! How much a GLSL text makes the compiler do: what its macros grow to and how deep it nests, found without running it.
//!
//! It errs on the high side. Conditions are not evaluated, so everything counts that stands in any branch, and of several
//! definitions of a macro the largest.

mod growth;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use growth::Expansion;
use rustc_hash::FxHashMap;
use text::{Definition, Macros, Token, definition, plain, tokens};

/// Checks a text whose includes are in place.
///
/// # Errors
/// Which bound it breaks, as a sentence.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let text = plain(text)?.text;
    let mut macros: Macros<'_> = FxHashMap::default();
    let mut code = Vec::new();
    for line in text.split('\n') {
        match line.trim_start().strip_prefix('#') {
            None => code.extend(words(line)),
            Some(directive) => match definition(directive) {
                Some(define) => macros.entry(define.name).or_default().push(Definition {
                    parameters: define.parameters,
                    body: words(define.body).collect(),
                }),
                None => {
                    // A statement of its own.
                    code.push(Token::Mark(b';'));
                    code.extend(words(directive));
                    code.push(Token::Mark(b';'));
                }
            },
        }
    }
    Expansion::new(&macros).text(&code)
}

fn words(line: &str) -> impl Iterator<Item = Token<'_>> {
    tokens(line).map(|(_, token)| token)
}
