//! The attribute `precision` of products, and of expressions: how exact they have to be. It permits, and asks for nothing: who does not
//! know it is right without.

use crate::Request;

/// Name of the attribute.
pub const ATTRIBUTE: &str = "precision";
/// Its values.
pub const WORDS: &[&str] = &["default", "high", "highest"];

/// How exact a product or an expression has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As sums in the type that it is summed in, unless the registry allows less.
    #[default]
    Default,
    /// Of each element of f32 the first 16 of 24 binary digits have to count, and errors of sums are as large as that makes them.
    /// Other types are as exact as ever. Functions of f32 in an expression may have an error of 2^-16 of the value, or of 1 where a value is
    /// of a bounded range; they keep that range.
    High,
    /// As sums in the type that it is summed in, whatever the registry allows.
    Highest,
}

impl Precision {
    /// That of a word, `None` for what is none of [`WORDS`].
    pub fn named(word: &str) -> Option<Precision> {
        let all = [Precision::Default, Precision::High, Precision::Highest];
        let place = WORDS.iter().position(|known| *known == word)?;
        Some(all[place])
    }

    /// That of a request. Hosts hand on [`Precision::High`] alone, to kernels that offer to use it.
    pub fn of(request: &Request<'_>) -> Precision {
        let word = request.text(ATTRIBUTE);
        word.and_then(Precision::named).unwrap_or_default()
    }
}
