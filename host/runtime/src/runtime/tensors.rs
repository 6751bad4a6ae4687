//! New tensors: of given elements, of one value, and of the elements of others.

use super::{Ran, Runtime};
use crate::{
    Error, Kind, Request, Result, Spec,
    memory::{Patience, now},
    tensor::{Tensor, byte_len, checked_elements},
};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{kernels, show_shape};

/// Constants that are kept before that starts anew.
const MAX_CONSTANTS: usize = 4_096;

impl Runtime {
    /// A tensor with the given elements, row-major, native byte order.
    ///
    /// # Errors
    /// Bad input when `bytes` has the wrong size; [`Kind::OutOfMemory`].
    pub fn upload(&self, dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<Tensor> {
        self.upload_by(dtype, shape, bytes, Patience::Waits)
    }

    /// As [`Runtime::upload`], without ever waiting; `None` when that is needed.
    ///
    /// # Errors
    /// As [`Runtime::upload`].
    pub fn try_upload(&self, dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<Option<Tensor>> {
        now(self.upload_by(dtype, shape, bytes, Patience::Never))
    }

    fn upload_by(
        &self,
        dtype: DType,
        shape: &[u64],
        bytes: &[u8],
        patience: Patience,
    ) -> Result<Tensor> {
        let expected = byte_len(dtype, shape)?;
        if bytes.len() as u64 != expected {
            return Err(Error::bad_input(format!(
                "a tensor {dtype}{} has {expected} bytes, got: {}",
                show_shape(shape),
                bytes.len()
            )));
        }
        let buffer = self.write_new(bytes, patience)?;
        Ok(Tensor::contiguous(buffer, dtype, shape))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`].
    pub fn zeros(&self, dtype: DType, shape: &[u64]) -> Result<Tensor> {
        let buffer = self.alloc(byte_len(dtype, shape)?, None, Patience::Waits)?;
        if buffer.len() > 0 {
            self.stream.make_room()?;
            self.stream.zero(&buffer)?;
        }
        Ok(Tensor::contiguous(buffer, dtype, shape))
    }

    /// A tensor whose elements are all `element`; it takes the memory of one.
    ///
    /// # Errors
    /// Bad input when `element` is not one element of `dtype`; [`Kind::OutOfMemory`].
    pub fn constant(&self, dtype: DType, shape: &[u64], element: &[u8]) -> Result<Tensor> {
        self.constant_by(dtype, shape, element, Patience::Waits)
    }

    /// As [`Runtime::constant`], without ever waiting; `None` when that is needed.
    ///
    /// # Errors
    /// As [`Runtime::constant`].
    pub fn try_constant(
        &self,
        dtype: DType,
        shape: &[u64],
        element: &[u8],
    ) -> Result<Option<Tensor>> {
        now(self.constant_by(dtype, shape, element, Patience::Never))
    }

    /// What an elementwise op makes of constants, of which `elements` are the elements, and the result's element. `None` for
    /// other ops, and where that needs waiting.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn try_fold(
        &self,
        request: &Request<'_, Spec>,
        elements: &[&[u8]],
    ) -> Option<Result<(Tensor, Vec<u8>)>> {
        let element = match kernels::run_on_constants(request, elements)? {
            Ok(element) => element,
            Err(error) => return Some(Err(error)),
        };
        let (dtype, shape) = request.outputs.first()?;
        let made = self.try_constant(*dtype, shape, &element).transpose()?;
        Some(made.map(|tensor| (tensor, element)))
    }

    fn constant_by(
        &self,
        dtype: DType,
        shape: &[u64],
        element: &[u8],
        patience: Patience,
    ) -> Result<Tensor> {
        self.device.usable()?;
        checked_elements(shape)?;
        let key = (dtype, element.to_vec());
        let known = self.constants.lock().get(&key).cloned();
        let scalar = match known {
            Some(scalar) => scalar,
            None => {
                let scalar = self.write_literal(dtype, element, patience)?;
                let mut constants = self.constants.lock();
                if constants.len() >= MAX_CONSTANTS {
                    constants.clear();
                }
                constants.insert(key, scalar.clone());
                scalar
            }
        };
        scalar.broadcast(shape, &[])
    }

    /// The same elements in row-major order in a buffer of their own; the tensor itself if it is that already.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`], [`Kind::DeviceLost`].
    pub fn contiguous(&self, tensor: &Tensor) -> Result<Tensor> {
        if tensor.is_contiguous()
            && tensor.offset() == 0
            && tensor.byte_len() == tensor.storage_len()
        {
            return Ok(tensor.clone());
        }
        self.copy(tensor)
    }

    /// A copy of the elements in a buffer of their own.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`], [`Kind::DeviceLost`].
    pub fn copy(&self, tensor: &Tensor) -> Result<Tensor> {
        self.as_type(tensor, tensor.dtype())
    }

    pub(super) fn as_type(&self, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
        self.as_type_by(tensor, dtype, Patience::Waits)
    }

    fn as_type_by(&self, tensor: &Tensor, dtype: DType, patience: Patience) -> Result<Tensor> {
        cast(tensor, dtype, |request| self.run_by(request, patience))
    }

    /// The tensor with another shape; a view where the layout allows it, else a copy.
    ///
    /// # Errors
    /// Bad input when the number of elements differs; [`Kind::OutOfMemory`].
    pub fn reshape(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor> {
        self.reshape_by(tensor, shape, Patience::Waits)
    }

    /// As [`Runtime::reshape`], with [`Kind::WouldWait`] where that takes more patience.
    pub(super) fn reshape_by(
        &self,
        tensor: &Tensor,
        shape: &[u64],
        patience: Patience,
    ) -> Result<Tensor> {
        reshaped(tensor, shape, || {
            self.as_type_by(tensor, tensor.dtype(), patience)
        })
    }
}

/// The elements as another type in a buffer of their own, by what runs requests.
pub(super) fn cast(
    tensor: &Tensor,
    dtype: DType,
    run: impl FnOnce(&Request<'_, &Tensor>) -> Result<Ran>,
) -> Result<Tensor> {
    let output = [(dtype, tensor.shape().to_vec())];
    let inputs = [tensor];
    let mut ran = run(&Request::new("as_type", &inputs, &output, &[]))?;
    ran.outputs
        .pop()
        .ok_or_else(|| Error::new(Kind::Pack, "as_type gave no result"))
}

/// The tensor with another shape: a view where the layout allows it, else one of its copy.
pub(super) fn reshaped(
    tensor: &Tensor,
    shape: &[u64],
    copy: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    if let Some(view) = tensor.reshape(shape)? {
        return Ok(view);
    }
    copy()?
        .reshape(shape)?
        .ok_or_else(|| Error::bad_input("a contiguous tensor takes every shape"))
}
