//! The host as its users meet it: devices, packs, registries and `nxv`, all in one binary, since each links the shader
//! compiler. What has to be a process of its own runs this binary again.

mod checked;
mod code_free_packs;
mod compat;
mod environment;
mod exposure;
mod faults;
mod folder;
mod gamma;
mod golden;
mod hostile;
mod leapfrog;
mod live;
mod loader;
mod loader_processes;
mod lost;
mod measuring;
mod memory;
mod nxv;
mod nxv_pack;
mod oracle;
mod packs;
mod pointers;
mod programs;
mod quarantine;
mod registry;
mod repeat;
mod shaders;
mod strangers;
mod support;
mod template;
mod tensor_cores;
mod trust;
mod tune;
mod undefined;
mod writing_a_pack;
