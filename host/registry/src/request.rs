//! A request as kernels are asked for it: layouts, and the form of the ABI. It does not know who answers.

use nx_vulkan_abi as abi;
use nx_vulkan_abi::{DType, layout};
use nx_vulkan_ops::{Attr, AttrValue, Request, Typed};

/// Layout of one operand of a [`Request`].
#[derive(Debug, Clone, PartialEq)]
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

impl Typed for Operand {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }
}

/// Gives `f` the request in the form of the ABI.
pub fn with_abi<T>(
    request: &Request<'_, Operand>,
    device: &abi::DeviceInfo<'_>,
    f: impl FnOnce(&abi::Request<'_>) -> T,
) -> T {
    let inputs: Vec<_> = request.inputs.iter().map(Operand::desc).collect();
    let results: Vec<_> = request
        .outputs
        .iter()
        .map(|(d, s)| Operand::contiguous(*d, s))
        .collect();
    let outputs: Vec<_> = results.iter().map(Operand::desc).collect();
    let attrs: Vec<_> = request.attrs.iter().map(abi_attr).collect();
    f(&abi::Request {
        op: (&*request.op).into(),
        inputs: inputs.as_slice().into(),
        outputs: outputs.as_slice().into(),
        attrs: attrs.as_slice().into(),
        device,
        spare: [0; 4],
    })
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
