//! The NIF library behind `Nx.Vulkan.NativeV`: it decodes terms, calls the host, encodes the answer.

mod about;
mod binary;
mod buffer;
mod cache;
mod counters;
mod device;
mod entry;
mod exit;
mod held;
mod image;
mod info;
mod later;
mod live;
mod logger;
mod maps;
mod misfit;
mod module;
mod notes;
mod pin;
mod pointer;
mod profile;
mod program;
mod reply;
mod resource;
mod rows;
mod run;
mod tensor;
mod terms;
mod turn;
mod view;
mod weight;

/// The VM's allocator gives memory back to the system as soon as it is free, so that every large buffer of a kernel on the CPU
/// would be made of new pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
