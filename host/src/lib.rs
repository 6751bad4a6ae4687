//! The host runtime of nx_vulkan: it owns device, memory and queue, asks kernel packs for plans, and runs them.
//!
//! [`Runtime`] is the whole interface: upload, run ops by name, view, download. What no pack runs, the CPU
//! kernels in [`kernels`] do. It knows nothing of Elixir.

mod ask;
pub mod attrs;
mod bounds;
#[doc(hidden)]
pub mod builder;
mod cache;
mod checked;
mod child;
pub mod config;
pub mod device;
mod driver_cache;
pub mod error;
pub mod exit;
pub mod explain;
mod failures;
mod faults;
#[doc(hidden)]
pub mod fuzzing;
pub mod kernels;
pub mod live;
mod log;
pub mod measured;
mod memory;
pub mod module;
mod pipeline;
mod plan;
pub mod private;
mod queue;
pub mod registry;
mod route;
pub mod runtime;
mod shader;
mod spirv;
pub mod sweep;
pub mod tensor;
pub mod vet;

pub use attrs::{Attr, AttrValue};
pub use config::{Config, MemoryBudget};
pub use device::{Device, DeviceChoice};
pub use error::{Error, Kind, Result};
pub use explain::Explanation;
pub use memory::{BudgetStats, Stats};
pub use module::Module;
pub use nx_vulkan_abi::DType;
pub use route::Considered;
pub use runtime::{
    Chain, Forced, Layout as ChainLayout, Ran, Refusal, Rival, Runtime, RuntimeStats,
};
pub use tensor::Tensor;
