//! How far a sweep goes.

/// How much of the sweep is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything.
    Full,
    /// All of it for f32 and one other type of each op, but for large problems, of which it is two; of each other kind of type for
    /// one of them one contiguous problem, and one in some other layout. Where every shader is compiled for a CPU, that is what
    /// the time goes to.
    Sample,
    /// One problem per op, type and layout, and no mixed types.
    Quick,
}
