//! Leapfrog chains of Hamiltonian Monte Carlo, run by modules of callers. It stands on the runtime, which knows nothing of
//! chains.

mod chain;
mod lag;

pub use chain::{Chain, Layout, Refusal, run};
pub use lag::run_foreign;
