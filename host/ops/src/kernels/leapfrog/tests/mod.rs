//! Tests of the leapfrog kernels.

mod contract;
mod density;
mod reference;
mod steps;
