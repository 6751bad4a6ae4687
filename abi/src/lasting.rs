//! The attribute `lasting` of products: which operands hold the same in many calls, as weights do. It promises nothing: who does not
//! know it is right without.

use crate::Request;

/// Name of the attribute.
pub const ATTRIBUTE: &str = "lasting";

/// Whether a request says so of an operand. What a plan derives of it is then likely kept ([`crate::Plan::derive`]), so that the
/// steps which make that cost nothing. Hosts tell it to kernels that offer to use it.
pub fn of(request: &Request<'_>, operand: u32) -> bool {
    request.ints(ATTRIBUTE).contains(&i64::from(operand))
}
