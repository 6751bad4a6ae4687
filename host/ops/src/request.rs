//! Requests: an op on operands, as a value that is checked, planned and run. It holds no data.

use crate::{attrs::Attr, show_shape};
use nx_vulkan_abi::DType;
use std::{borrow::Cow, fmt};

/// Element type and shape.
pub type Spec = (DType, Vec<u64>);

/// Types and shapes of the operands, and of the results.
pub type Shapes<'a> = (Vec<(DType, &'a [u64])>, Vec<(DType, &'a [u64])>);

/// An operand that says what it is.
pub trait Typed {
    /// Element type.
    fn dtype(&self) -> DType;
    /// Extent of each axis.
    fn shape(&self) -> &[u64];
}

/// An op on operands `I`: types and shapes, layouts, tensors, or numbers of a [program](crate::Program)'s values.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a, I: Clone> {
    /// Name of the op.
    pub op: Cow<'a, str>,
    /// Operands.
    pub inputs: Cow<'a, [I]>,
    /// Type and shape of each result, which is contiguous.
    pub outputs: Cow<'a, [Spec]>,
    /// Attributes, sorted by name.
    pub attrs: Cow<'a, [Attr]>,
}

impl<'a, I: Clone> Request<'a, I> {
    /// A request of parts that it borrows or owns.
    pub fn new(
        op: impl Into<Cow<'a, str>>,
        inputs: impl Into<Cow<'a, [I]>>,
        outputs: impl Into<Cow<'a, [Spec]>>,
        attrs: impl Into<Cow<'a, [Attr]>>,
    ) -> Request<'a, I> {
        Request {
            op: op.into(),
            inputs: inputs.into(),
            outputs: outputs.into(),
            attrs: attrs.into(),
        }
    }

    /// The same request of other operands.
    pub fn over<'b, J: Clone>(&'b self, inputs: impl Into<Cow<'b, [J]>>) -> Request<'b, J> {
        Request::new(&*self.op, inputs, &*self.outputs, &*self.attrs)
    }

    /// The same request, which borrows nothing.
    pub fn into_owned(self) -> Request<'static, I> {
        Request {
            op: Cow::Owned(self.op.into_owned()),
            inputs: Cow::Owned(self.inputs.into_owned()),
            outputs: Cow::Owned(self.outputs.into_owned()),
            attrs: Cow::Owned(self.attrs.into_owned()),
        }
    }
}

impl<I: Typed + Clone> Request<'_, I> {
    /// Types and shapes alone.
    pub fn shapes(&self) -> Shapes<'_> {
        let inputs = self.inputs.iter().map(|i| (i.dtype(), i.shape()));
        let outputs = self.outputs.iter().map(|o| (o.0, o.1.as_slice()));
        (inputs.collect(), outputs.collect())
    }

    /// Types alone, of the operands and of the results.
    pub fn types(&self) -> (Vec<DType>, Vec<DType>) {
        let inputs = self.inputs.iter().map(Typed::dtype);
        let outputs = self.outputs.iter().map(|output| output.0);
        (inputs.collect(), outputs.collect())
    }

    /// Number of axes of the tensor that has most.
    pub fn rank(&self) -> Option<usize> {
        let inputs = self.inputs.iter().map(|input| input.shape().len());
        inputs.chain(self.outputs.iter().map(|o| o.1.len())).max()
    }
}

/// `add(f32[2,3], f32[3]) -> f32[2,3]`
impl<I: Typed + Clone> fmt::Display for Request<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |list: Vec<(DType, &[u64])>| {
            let each = list.into_iter();
            let each = each.map(|(dtype, shape)| format!("{dtype}{}", show_shape(shape)));
            each.collect::<Vec<_>>().join(", ")
        };
        let (inputs, outputs) = self.shapes();
        write!(f, "{}({}) -> {}", self.op, show(inputs), show(outputs))
    }
}

impl Typed for Spec {
    fn dtype(&self) -> DType {
        self.0
    }

    fn shape(&self) -> &[u64] {
        &self.1
    }
}
