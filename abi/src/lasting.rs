//! The attribute `lasting` of products: which operands hold the same in many calls, as weights do. It promises nothing: who does not
//! know it is right without.

use crate::Request;

/// Name of the attribute.
pub const ATTRIBUTE: &str = "lasting";

/// Whether a request says so of an operand. What a plan derives of it ([`crate::Plan::derive`]) is then kept from the second call on, if
/// the content is the same and memory suffices, and the steps which make it are left out. Hosts tell it to kernels that offer to use it.
pub fn of(request: &Request<'_>, operand: u32) -> bool {
    request.ints(ATTRIBUTE).contains(&i64::from(operand))
}
