//! Whether packs are right: the sweep of every op against the CPU kernels, and the vetting of one pack.

pub mod session;
pub mod sweep;
pub mod vet;
