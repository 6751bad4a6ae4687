//! A request as kernels are asked for it: op, layouts and attributes. It does not know who answers.

use crate::{Attr, AttrValue, Kind, Result};
use nx_vulkan_abi as abi;
use nx_vulkan_abi::{DType, layout};
use nx_vulkan_ops::{kernels, show_shape};

/// A request with everything that a pack may know.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// Name of the op.
    pub op: &'a str,
    /// Layouts of the operands.
    pub inputs: Vec<Operand>,
    /// Type and shape of each result, which is contiguous.
    pub outputs: &'a [(DType, Vec<u64>)],
    /// Attributes, sorted by name.
    pub attrs: &'a [Attr],
}

/// Layout of one operand of an [`Ask`].
#[derive(Debug, Clone)]
pub struct Operand {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, for each axis.
    pub strides: Vec<i64>,
    /// Index of the first element, in elements.
    pub offset: u64,
    /// Bytes of the buffer it lies in.
    pub storage_len: u64,
}

impl Operand {
    /// An operand in row-major order in a buffer of its own.
    pub fn contiguous(dtype: DType, shape: &[u64]) -> Operand {
        Operand {
            dtype,
            shape: shape.to_vec(),
            strides: layout::contiguous_strides(shape),
            offset: 0,
            storage_len: dtype.size() * shape.iter().product::<u64>(),
        }
    }

    fn desc(&self) -> abi::TensorDesc<'_> {
        abi::TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: self.shape.as_slice().into(),
            strides: self.strides.as_slice().into(),
            offset: self.offset,
            storage_len: self.storage_len,
            reserved: [0; 2],
        }
    }
}

/// Type and shape of the inputs, and of the outputs.
pub type Shapes<'a> = (Vec<(DType, &'a [u64])>, Vec<(DType, &'a [u64])>);

impl Ask<'_> {
    /// Types and shapes alone.
    pub fn shapes(&self) -> Shapes<'_> {
        let inputs = self.inputs.iter().map(|o| (o.dtype, o.shape.as_slice()));
        let outputs = self.outputs.iter().map(|o| (o.0, o.1.as_slice()));
        (inputs.collect(), outputs.collect())
    }

    /// Number of axes of the tensor that has most.
    pub fn rank(&self) -> Option<usize> {
        let inputs = self.inputs.iter().map(|operand| operand.shape.len());
        inputs.chain(self.outputs.iter().map(|o| o.1.len())).max()
    }

    /// The op's contract. Ops that the host does not know are left to the packs that name them.
    pub fn check(&self) -> Result<()> {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|o| kernels::Desc {
                dtype: o.dtype,
                shape: &o.shape,
            })
            .collect();
        let outputs: Vec<_> = self
            .outputs
            .iter()
            .map(|o| kernels::Desc {
                dtype: o.0,
                shape: &o.1,
            })
            .collect();
        match kernels::check(self.op, &inputs, &outputs, self.attrs) {
            Err(error) if error.kind() == Kind::Unsupported => Ok(()),
            result => result,
        }
    }

    /// Gives `f` the request in the form of the ABI.
    pub fn with_request<T>(
        &self,
        device: &abi::DeviceInfo<'_>,
        f: impl FnOnce(&abi::Request<'_>) -> T,
    ) -> T {
        let inputs: Vec<_> = self.inputs.iter().map(Operand::desc).collect();
        let results: Vec<_> = self
            .outputs
            .iter()
            .map(|(d, s)| Operand::contiguous(*d, s))
            .collect();
        let outputs: Vec<_> = results.iter().map(Operand::desc).collect();
        let attrs: Vec<_> = self.attrs.iter().map(abi_attr).collect();
        f(&abi::Request {
            op: self.op.into(),
            inputs: inputs.as_slice().into(),
            outputs: outputs.as_slice().into(),
            attrs: attrs.as_slice().into(),
            device,
            spare: [0; 4],
        })
    }
}

fn abi_attr(attr: &Attr) -> abi::Attr<'_> {
    let (mut ints, mut floats, mut text): (&[i64], &[f64], &str) = (&[], &[], "");
    let kind = match &attr.value {
        AttrValue::Ints(value) => {
            ints = value;
            abi::AttrKind::INTS
        }
        AttrValue::Floats(value) => {
            floats = value;
            abi::AttrKind::FLOATS
        }
        AttrValue::Text(value) => {
            text = value;
            abi::AttrKind::TEXT
        }
    };
    abi::Attr {
        name: attr.name.as_str().into(),
        kind,
        spare: 0,
        ints: ints.into(),
        floats: floats.into(),
        text: text.into(),
    }
}

/// `add(f32[2,3], f32[3]) -> f32[2,3]`
pub fn show_request<'a>(
    op: &str,
    inputs: impl Iterator<Item = (DType, &'a [u64])>,
    outputs: impl Iterator<Item = (DType, &'a [u64])>,
) -> String {
    let show = |(dtype, shape): (DType, &[u64])| format!("{dtype}{}", show_shape(shape));
    let inputs: Vec<_> = inputs.map(show).collect();
    let outputs: Vec<_> = outputs.map(show).collect();
    format!("{op}({}) -> {}", inputs.join(", "), outputs.join(", "))
}
