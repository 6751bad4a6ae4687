//! What is wrong with an argument, as an `ArgumentError` of Elixir with a message.

use rustler::{Encoder, Env, Error, Term, sys::ErlNifTerm};

mod atoms {
    rustler::atoms! {
        exception = "__exception__",
        structure = "__struct__",
        argument_error = "Elixir.ArgumentError",
        message,
    }
}

/// Characters of a term that are shown.
const MAX_SHOWN: usize = 200;

/// The error for a term of the call under way, which has to be encoded in no other environment; `expected` says what it should
/// have been. The message is only made for whoever raises it.
pub(crate) fn misfit(term: Term<'_>, expected: &'static str) -> Error {
    Error::RaiseTerm(Box::new(Misfit {
        expected,
        term: term.as_c_arg(),
    }))
}

struct Misfit {
    expected: &'static str,
    /// An argument of the call under way.
    term: ErlNifTerm,
}

impl Encoder for Misfit {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        // SAFETY: errors of a call are encoded in its own environment, where its arguments are.
        let term = unsafe { Term::new(env, self.term) };
        let shown: String = format!("{term:?}").chars().take(MAX_SHOWN).collect();
        let message = format!("expected {}, got: {shown}", self.expected);
        let keys = [atoms::structure(), atoms::exception(), atoms::message()];
        let values = [
            atoms::argument_error().encode(env),
            true.encode(env),
            message.encode(env),
        ];
        let keys = keys.map(|key| key.encode(env));
        Term::map_from_term_arrays(env, &keys, &values)
            .unwrap_or_else(|_| atoms::argument_error().encode(env))
    }
}
