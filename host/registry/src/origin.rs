//! Who a shader comes from. What follows from it is decided where shaders are read.

/// Who a SPIR-V module, or the GLSL that it is made of, comes from.
/// What is made of several texts comes from the greatest of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// This host itself, or a pack's library, which runs code in this process anyway: its modules are checked and run as
    /// they are.
    Library,
    /// A pack without code that the registry pins, or knows the signer of. Indices that the driver would have to trust
    /// are bounded.
    Vouched,
    /// Anybody else. Indices are bounded, and compiler and driver see the module in another process first.
    Stranger,
}

impl Origin {
    /// Whether indices are bounded.
    pub fn is_bounded(self) -> bool {
        self != Origin::Library
    }
}
