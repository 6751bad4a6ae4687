//! The registry: which kernel packs are loaded and in which order their kernels are asked; it runs nothing.
//!
//! [`load()`] reads `registry.toml`, loads the packs and answers with an immutable [`Table`].
//! [`Table::candidates`] gives the kernels for one request, each to be asked or skipped with its reason.

mod admission;
mod asked;
pub mod cache;
mod check;
pub mod child;
mod codes;
mod condition;
mod config;
mod diagnostic;
mod discover;
mod document;
mod driver;
mod expression;
pub mod folder;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod image;
mod json_schema;
mod kernel;
mod layout;
mod library;
mod load;
mod loaded;
mod loader;
mod mapping;
mod marker;
mod names;
mod options;
mod origin;
pub mod private;
pub mod probe;
pub mod quarantine;
mod reader;
mod reload;
pub mod request;
mod rules;
mod schema;
mod select;
mod selftest;
mod signature;
mod spelling;
mod stamp;
mod store;
mod suspects;
mod table;
mod target;
mod vet;

pub use asked::{Asked, CandidateKernel};
pub use check::{Checked, check};
pub use codes::Code;
pub use config::{Dev, Fallback, Measure, OnError, Order, Require, Trust, TrustedKey};
pub use diagnostic::{Diagnostic, Severity, clean, did_you_mean, printed};
pub use discover::{PACKS_VARIABLE, Rejected};
pub use image::{NEWER, SourceContent, SourceFile};
pub use json_schema::json_schema;
pub use kernel::KernelEntry;
pub use load::{load, store};
pub use loaded::{EditedSource, Glsl, LoadedPack};
pub use marker::end;
pub use nx_vulkan_ops::{Attr, AttrValue, DType, Error, Kind, Result};
pub use options::{FromEnvironment, Options, REGISTRY_VARIABLE};
pub use origin::Origin;
pub use reload::{Change, reload};
pub use select::{Candidate, CandidateOutcome, RuleVerdict};
pub use signature::comment as signed_comment;
pub use spelling::hex;
pub use stamp::Stamp;
pub use table::{Places, Table};
pub use target::target;
pub use vet::{Described, FileFacts, describe_twice, facts, sha256_of};
