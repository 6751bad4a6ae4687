//! The NIF library behind `Nx.Vulkan.NativeV`: it decodes terms, calls the host, encodes the answer.

mod buffer;
mod cache;
mod counters;
mod device;
mod exit;
mod info;
mod live;
mod module;
mod pin;
mod reply;
mod run;
mod tensor;
mod terms;
mod view;

use rustler::{Env, Term};

rustler::init!("Elixir.Nx.Vulkan.NativeV", load = load);

fn load(env: Env, _info: Term) -> bool {
    pin::keep_mapped();
    exit::prepare_halt(env);
    true
}
