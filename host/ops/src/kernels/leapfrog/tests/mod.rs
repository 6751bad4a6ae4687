//! Densities, apart from the ops that take steps by them.

mod density;
mod reference;
