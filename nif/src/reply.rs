//! Answers to Elixir: `{:ok, value}`, `{:error, kind, message}`.

use nx_vulkan_host::{Error, Kind, Result};
use rustler::{Atom, Encoder, Env, Term};

mod atoms {
    rustler::atoms! {
        ok, error, bad_input, arithmetic, deallocated, unsupported, fallback_forbidden, out_of_memory, no_device, device_lost,
        io, registry, pack, shader, vulkan,
    }
}

/// Why a call failed: something the host says, or a tensor that was freed before.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The host's error.
    Host(Error),
    /// The reference was deallocated.
    Deallocated,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Host(error)
    }
}

impl Failure {
    /// Misuse by the caller.
    pub(crate) fn bad_input(message: impl Into<String>) -> Failure {
        Failure::Host(Error::bad_input(message))
    }

    fn kind(&self) -> Atom {
        match self {
            Failure::Deallocated => atoms::deallocated(),
            Failure::Host(error) => match error.kind() {
                Kind::BadInput => atoms::bad_input(),
                Kind::Arithmetic => atoms::arithmetic(),
                Kind::Unsupported => atoms::unsupported(),
                Kind::FallbackForbidden => atoms::fallback_forbidden(),
                Kind::OutOfMemory => atoms::out_of_memory(),
                Kind::NoDevice => atoms::no_device(),
                Kind::DeviceLost => atoms::device_lost(),
                Kind::Io => atoms::io(),
                Kind::Registry => atoms::registry(),
                Kind::Pack => atoms::pack(),
                Kind::Shader => atoms::shader(),
                _ => atoms::vulkan(),
            },
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Host(error) => error.fmt(f),
            Failure::Deallocated => {
                f.write_str("expected a live tensor, got: one that was deallocated")
            }
        }
    }
}

/// `{:ok, value}` or `{:error, kind, message}`.
pub(crate) fn encode<'a, T: Encoder>(
    env: Env<'a>,
    result: std::result::Result<T, Failure>,
) -> Term<'a> {
    match result {
        Ok(value) => (atoms::ok(), value).encode(env),
        Err(failure) => encode_error(env, &failure),
    }
}

/// `{:error, kind, message}`.
pub(crate) fn encode_error<'a>(env: Env<'a>, failure: &Failure) -> Term<'a> {
    (atoms::error(), failure.kind(), failure.to_string()).encode(env)
}

/// `:ok` or `{:error, kind, message}`.
pub(crate) fn encode_unit<'a>(env: Env<'a>, result: Result<()>) -> Term<'a> {
    match result {
        Ok(()) => atoms::ok().encode(env),
        Err(error) => encode_error(env, &Failure::Host(error)),
    }
}
