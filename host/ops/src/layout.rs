//! How the operands of a test problem lie in memory; which views make them so is decided elsewhere.

/// How an operand lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Row-major, sizes that vectors do not divide.
    Contiguous,
    /// The axes in reverse order.
    Transposed,
    /// Some axes with stride 0, and operands that broadcast by their shape.
    Broadcast,
    /// At an offset, with steps.
    Sliced,
    /// Negative strides.
    Reversed,
    /// No elements.
    Empty,
    /// No axes.
    Scalar,
    /// More than four axes that do not merge.
    Deep,
    /// So many elements that packs choose other kernels.
    Large,
}

/// Every layout.
pub const LAYOUTS: [Layout; 9] = [
    Layout::Contiguous,
    Layout::Transposed,
    Layout::Broadcast,
    Layout::Sliced,
    Layout::Reversed,
    Layout::Empty,
    Layout::Scalar,
    Layout::Deep,
    Layout::Large,
];
