//! The host runtime of nx_vulkan: it owns device, memory and queue, asks kernel packs for plans, and runs them.
//!
//! [`Runtime`] is the whole interface: upload, run ops by name, view, download. What no pack runs, the CPU
//! kernels of `nx-vulkan-ops` do. It knows nothing of Elixir.

mod bounds;
#[doc(hidden)]
pub mod builder;
mod checked;
pub mod config;
pub mod device;
mod driver_cache;
pub mod exit;
pub mod explain;
mod failures;
mod faults;
pub mod fragments;
#[doc(hidden)]
pub mod fuzzing;
mod host_memory;
mod inspect;
pub mod live;
pub mod measured;
mod memory;
pub mod module;
mod pipeline;
mod plan;
pub mod profile;
mod queue;
mod reach;
mod route;
pub mod runtime;
mod shader;
#[cfg_attr(not(unix), path = "no_shared_memory.rs")]
pub mod shared_memory;
mod spirv;
pub mod stderr;
pub mod tensor;

pub use config::{Config, DeviceChoice, MemoryBudget, Times};
pub use device::Device;
pub use explain::Explanation;
pub use host_memory::Sink;
pub use inspect::{Compiler, Shader};
pub use memory::{BudgetStats, KeptStats, Stats};
pub use module::Module;
pub use nx_vulkan_ops::{
    Attr, AttrValue, DType, Error, Kind, Program, Request, Result, Spec, fusion,
    program::{Step, Value, View},
};
pub use nx_vulkan_registry::RuleVerdict;
pub use pipeline::statistics::{Compiled, Figure};
pub use profile::{Profile, ProfileRow};
pub use route::Considered;
pub use runtime::{
    Forced, Lazy, Operand, Profiling, Progress, Ran, RanProgram, ReplayStats, Rival, Routine,
    Runtime, RuntimeStats,
};
pub use tensor::Tensor;
