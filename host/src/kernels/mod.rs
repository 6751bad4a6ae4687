//! The CPU kernels: fallback for what no pack runs, and the oracle every pack is tested against.
