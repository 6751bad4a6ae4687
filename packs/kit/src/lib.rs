//! What kernel packs have in common, whatever they compute: reading their tables, putting plans together, and counting
//! workgroups. It touches no device.

pub mod axes;
pub mod epilogue;
pub mod expression;
pub mod grid;
pub mod lines;
pub mod matrix;
mod mixed;
pub mod operand;
pub mod rows;
pub mod span;
pub mod steps;
pub mod table;
pub mod testing;
pub mod vendor;
