//! Requests that an author names, so that kernels are looked at which none of the sweep's meets.

use nx_vulkan_ops::{Attr, Error, Request, Result, Spec, find, infer::infer};
use nx_vulkan_registry::{KernelEntry, request::Operand};

/// Types and shapes for one op, or for every op of a pack that takes them.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Name of the op; without one, any.
    pub op: Option<String>,
    /// Type and shape of each operand.
    pub operands: Vec<Spec>,
    /// Attributes, without those that have a default.
    pub attrs: Vec<Attr>,
    /// The results, where they are not those that Nx infers. The first says what the others of an op of the host are.
    pub results: Vec<Spec>,
    /// As it was written.
    pub text: String,
}

impl Named {
    /// The request for `op`.
    ///
    /// # Errors
    /// Bad input where operands, attributes or results do not fit the op, and where an op that the host does not know is
    /// given no result.
    pub fn request(&self, op: &str) -> Result<Request<'static, Spec>> {
        let mut attrs = self.attrs.clone();
        attrs.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = attrs.windows(2).find(|pair| pair[0].name == pair[1].name) {
            let name = &pair[0].name;
            return Err(Error::bad_input(format!(
                "{op}: attribute {name} is given twice"
            )));
        }
        let request = match find(op) {
            Some(op) => infer(op, &self.operands, self.results.first().cloned(), &attrs)?,
            None if self.results.is_empty() => {
                return Err(Error::bad_input(format!(
                    "the result of {op} does not follow from its operands, since the host knows no such op; name it"
                )));
            }
            None => Request::new(
                op.to_owned(),
                self.operands.clone(),
                self.results.clone(),
                attrs,
            ),
        };
        if self.results.len() > 1 && *request.outputs != *self.results {
            return Err(Error::bad_input(format!(
                "the results of {request} are others than were named"
            )));
        }
        request.check()?;
        Ok(request)
    }

    /// The request as `kernel` is asked for it, with operands in row-major order.
    ///
    /// # Errors
    /// Why it is not asked, where it is for another op or does not fit the kernel's.
    pub(super) fn of(
        &self,
        kernel: &KernelEntry,
    ) -> std::result::Result<Request<'static, Operand>, String> {
        if let Some(own) = self.op.as_ref().filter(|own| **own != kernel.op) {
            return Err(format!("it is for {own}"));
        }
        let request = self
            .request(&kernel.op)
            .map_err(|error| error.to_string())?;
        let (inputs, outputs) = request.types();
        let takes = inputs.iter().all(|dtype| kernel.inputs.has(*dtype))
            && outputs.iter().all(|dtype| kernel.outputs.has(*dtype));
        if !takes {
            return Err(format!(
                "no kernel of the pack lists the types of {request}"
            ));
        }
        let inputs = request.inputs.iter();
        let inputs = inputs.map(|(dtype, shape)| Operand::contiguous(*dtype, shape));
        let inputs: Vec<Operand> = inputs.collect();
        Ok(request.over(inputs).into_owned())
    }

    /// Why none of the kernels is asked, if so.
    pub(super) fn is_for_none(&self, kernels: &[KernelEntry]) -> Option<String> {
        let is_own = |kernel: &&KernelEntry| self.op.as_ref().is_none_or(|op| *op == kernel.op);
        let mut own = kernels.iter().filter(is_own).peekable();
        if own.peek().is_none() {
            let op = self.op.as_deref().unwrap_or("any op");
            return Some(format!("the pack has no kernel for {op}"));
        }
        let mut why = None;
        for kernel in own {
            why = Some(self.of(kernel).err()?);
        }
        why
    }
}
