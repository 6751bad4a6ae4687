//! What kernel packs have in common, whatever they compute: reading their tables, putting plans together, and counting
//! workgroups. It touches no device.

pub mod epilogue;
pub mod grid;
pub mod lines;
pub mod matrix;
pub mod operand;
pub mod span;
pub mod steps;
pub mod table;
pub mod testing;
