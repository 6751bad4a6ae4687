//! Requests that an author names, so that kernels are looked at which none of the sweep's meets.

use nx_vulkan_ops::{Attr, Op, Request, Result, Spec, infer::infer};
use nx_vulkan_registry::request::Operand;

/// Types and shapes for one op, or for every op of a pack that takes them.
#[derive(Debug, Clone)]
pub struct Named {
    /// The op; without one, any.
    pub op: Option<&'static Op>,
    /// Type and shape of each operand.
    pub operands: Vec<Spec>,
    /// Attributes, without those that have a default.
    pub attrs: Vec<Attr>,
    /// The first result, where it is not the one that Nx infers.
    pub out: Option<Spec>,
}

impl Named {
    /// The request for `op`; nothing where it is for another.
    ///
    /// # Errors
    /// Bad input where the operands do not fit the op.
    pub(super) fn of(&self, op: &'static Op) -> Result<Option<Request<'static, Operand>>> {
        if self.op.is_some_and(|own| own.name != op.name) {
            return Ok(None);
        }
        let request = infer(op, &self.operands, self.out.clone(), &self.attrs)?;
        let inputs = request.inputs.iter();
        let inputs: Vec<Operand> = inputs
            .map(|(dtype, shape)| Operand::contiguous(*dtype, shape))
            .collect();
        let outputs = request.outputs.to_vec();
        let request = Request::new(op.name, inputs, outputs, request.attrs.to_vec());
        request.check()?;
        Ok(Some(request))
    }
}
