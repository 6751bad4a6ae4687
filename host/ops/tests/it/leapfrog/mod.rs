//! Leapfrog steps: what they give, and what is refused.

mod contract;
mod steps;
