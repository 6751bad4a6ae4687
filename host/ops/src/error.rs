//! The one error type of the host.

use std::fmt;

/// What callers tell errors apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The caller's request breaks an op's contract: wrong sizes, shapes that do not fit, unknown names.
    BadInput,
    /// An element has no result: an integer divided by 0, or raised to a negative power.
    Arithmetic,
    /// Neither a pack nor the host runs the op on these types.
    Unsupported,
    /// No pack runs the op and the registry forbids the host kernels.
    FallbackForbidden,
    /// Device memory is exhausted, or the size is beyond what the device allows.
    OutOfMemory,
    /// No Vulkan loader, driver or suitable device.
    NoDevice,
    /// The device stopped working. Every later call on it fails.
    DeviceLost,
    /// A file could not be read or written.
    Io,
    /// `registry.toml` is missing or wrong.
    Registry,
    /// A kernel pack was refused, or answered with something invalid.
    Pack,
    /// A shader does not compile.
    Shader,
    /// The call would have to wait, and was made where it must not.
    WouldWait,
    /// A Vulkan call failed in a way that none of the above covers.
    Vulkan,
}

/// An error: a kind and a sentence a user can act on.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    is_passing: bool,
}

/// Result of host calls.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of that kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
            is_passing: false,
        }
    }

    /// A [`Kind::BadInput`].
    pub fn bad_input(message: impl Into<String>) -> Error {
        Error::new(Kind::BadInput, message)
    }

    /// What kind of error it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The same error, said to be of the moment or not.
    #[must_use]
    pub fn passing(self, is_passing: bool) -> Error {
        Error { is_passing, ..self }
    }

    /// Whether the same call may succeed later though nothing was changed: the machine was busy or short of something.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }

    /// The same message as an error of another kind.
    #[must_use]
    pub(crate) fn of_kind(self, kind: Kind) -> Error {
        Error { kind, ..self }
    }

    /// The same error with `context` in front of its message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Error {
        Error {
            message: format!("{context}: {}", self.message),
            ..self
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
