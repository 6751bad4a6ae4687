//! The host runtime of nx_vulkan: it owns device, memory and queue, asks kernel packs for plans, and runs them.
//!
//! [`Runtime`] is the whole interface: upload, run ops by name, view, download. What no pack runs, the CPU
//! kernels in [`kernels`] do. It knows nothing of Elixir.

pub mod attrs;
pub mod error;
pub mod kernels;

pub use attrs::{Attr, AttrValue};
pub use error::{Error, Kind, Result};
pub use nx_vulkan_abi::DType;
