//! How much a GLSL text makes the compiler do: what its macros grow to and how deep it nests, found without running it.
//!
//! It errs on the high side. Conditions are not evaluated, so everything counts that stands in any branch, and of several
//! definitions of a macro the largest.

mod growth;
#[cfg(test)]
mod tests;
mod text;

use growth::Expansion;
use rustc_hash::FxHashMap;
use text::{Macros, Token, definition, plain, tokens};

/// Checks a text whose includes are in place.
///
/// # Errors
/// Which bound it breaks, as a sentence.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let text = plain(text)?;
    let mut macros: Macros<'_> = FxHashMap::default();
    let mut code = Vec::new();
    for line in text.split('\n') {
        match line.trim_start().strip_prefix('#') {
            None => tokens(line, &mut code),
            Some(directive) => match definition(directive) {
                Some((name, definition)) => macros.entry(name).or_default().push(definition),
                None => {
                    // A statement of its own.
                    code.push(Token::Mark(b';'));
                    tokens(directive, &mut code);
                    code.push(Token::Mark(b';'));
                }
            },
        }
    }
    Expansion::new(&macros).text(&code)
}
