//! Families whose requests hold an expression.

mod closure;
mod fused;
