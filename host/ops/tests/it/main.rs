//! The ops from outside: against this one library, so that its kernels are compiled once for all their tests.

mod contracts;
mod fusion;
mod infer;
mod kernels;
mod leapfrog;
mod request;
mod tolerance;
