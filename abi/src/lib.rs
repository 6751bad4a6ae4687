//! The contract between nx_vulkan's host runtime and its kernel packs; it holds no kernel and touches no device.
//!
//! A pack is a dylib that answers one question: *how would you run this op on this device?* The host asks
//! with a [`Request`] (op name, operand layouts, attributes, device limits) and the pack answers with a
//! [`Plan`]: a list of compute dispatches as plain data. The host validates the plan as it would validate
//! hostile input, compiles its shaders, caches it, and records it; a pack never sees Vulkan, memory or threads.
//!
//! A pack author needs this crate, the GLSL headers in [`glsl`], and the op table in `docs/ops.md`:
//!
//! ```ignore
//! nx_vulkan_abi::pack! { id: "my-pack", version: "0.1.0", describe: describe, plan: plan }
//! ```
//!
//! # Compatibility
//! **Version 1.0.0 is frozen**: a pack built against it loads in every host of ABI 1, and a pack of a later
//! 1.x loads in hosts that are older. Value structs (`#[repr(C)]`) never change; where they are to grow they carry
//! spare fields. Prefix types ([`Pack`], [`Kernel`], [`HostApi`]) grow at the end only. Enumerations are open
//! integers; a value that a reader does not know is refused, never guessed. A panic never crosses: the
//! [`pack!`] macro wraps every exported function.
//!
//! # Ownership and threads
//! A field or function says whose it is by a tag: `[borrowed]`, the host's until the function returns; `[moved]`, the
//! pack's gift, which the host copies and frees; `[static]`, valid for ever; `[thread-safe]`, callable from any
//! thread and from several at once; `[once, one thread]`, called once, before the others. What has no tag is a plain
//! value. `docs/abi.md` has the rules at length and the layout of every type.

pub mod author;
mod code;
pub mod dtype;
pub mod epilogue;
pub mod expression;
pub mod glsl;
pub mod lasting;
pub mod layout;
pub mod matrix;
pub mod meta;
pub mod pack;
pub mod plan;
pub mod precision;
pub mod request;

pub use author::{Description, Refusal, Row, explain, host, log};
pub use dtype::{DType, DTypeSet};
pub use epilogue::Epilogue;
pub use expression::Expression;
pub use matrix::{Matrix, MatrixScope};
pub use pack::{
    HostApi, HostApiRef, Kernel, KernelRef, Level, Numerics, Offers, Pack, PackRef, Source,
    SourceKind,
};
pub use plan::{
    Access, BufArg, Define, Dispatch, Fault, InputAs, Outcome, Plan, Reply, ShaderVariant, Slot,
    SpecConst, Status,
};
pub use precision::Precision;
pub use request::{Attr, AttrKind, DeviceInfo, DeviceKind, Features, Request, TensorDesc};

/// The containers that cross the ABI, re-exported so that packs need no dependency of their own.
pub use abi_stable::std_types::{RSlice, RStr, RString, RVec};

#[doc(hidden)]
pub use abi_stable as __abi_stable;

/// The version of this contract, as semver text.
pub const ABI_VERSION: &str = env!("CARGO_PKG_VERSION");
