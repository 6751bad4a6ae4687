//! What the ops are: contract, inference, tolerance, test problems, and the CPU kernel that is every pack's oracle.
//!
//! It knows no device, no registry and no pack.

pub mod attention;
pub mod attrs;
mod check;
mod contracts;
pub mod element;
pub mod epilogue;
pub mod error;
mod expression;
mod f8;
mod fits;
pub mod fusion;
pub mod infer;
pub mod kernels;
pub mod layout;
mod made;
pub mod memory;
pub mod op;
pub mod partial;
pub mod precision;
pub mod problems;
pub mod program;
pub mod request;
pub mod split;
pub mod tolerance;
pub mod values;
pub mod view;

pub use attrs::{Attr, AttrValue};
pub use contracts::{find, ops};
pub use error::{Error, Kind, Result};
pub use made::{Made, made};
pub use nx_vulkan_abi::DType;
pub use op::Op;
pub use program::{Program, Step, Value, View};
pub use request::{Request, Spec, Typed};

/// `[2,3]`
pub fn show_shape(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", extents.join(","))
}
