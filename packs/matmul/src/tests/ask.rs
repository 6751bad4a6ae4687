//! Requests for products.

use crate::{describe, plan};
use nx_vulkan_abi::{DType, DeviceInfo};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor};

pub(super) const PACK: Pack = Pack { describe, plan };

/// One operand with its batch and contracted axes.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) tensor: Tensor,
    pub(super) batch: Vec<i64>,
    pub(super) contract: Vec<i64>,
}

impl Side {
    pub(super) fn new(shape: &[u64], batch: &[i64], contract: &[i64]) -> Side {
        Side {
            tensor: Tensor::new(DType::F32, shape),
            batch: batch.to_vec(),
            contract: contract.to_vec(),
        }
    }

    pub(super) fn strided(mut self, strides: &[i64], offset: u64) -> Side {
        self.tensor = self.tensor.strided(strides, offset);
        self
    }

    pub(super) fn within(mut self, bytes: u64) -> Side {
        self.tensor = self.tensor.within(bytes);
        self
    }

    pub(super) fn of(mut self, dtype: DType) -> Side {
        self.tensor.dtype = dtype;
        self
    }

    /// Four elements further on in its buffer: loads of eight are no longer aligned, so that it is packed.
    pub(super) fn aside(mut self) -> Side {
        self.tensor.offset += 4;
        let bytes = (self.tensor.shape.iter().product::<u64>() + 4) * self.tensor.dtype.size();
        self.within(bytes)
    }

    /// Extents of the axes that `wanted` names.
    fn extents(&self, wanted: impl Fn(&i64) -> bool) -> Vec<u64> {
        let axes = self.tensor.shape.iter().zip(0..);
        let axes = axes.filter(|(_, axis)| wanted(axis));
        axes.map(|(extent, _)| *extent).collect()
    }

    fn free(&self) -> Vec<u64> {
        self.extents(|axis| !self.batch.contains(axis) && !self.contract.contains(axis))
    }
}

pub(super) fn ask(kernel: &str, device: DeviceInfo<'static>, a: &Side, b: &Side) -> Ask {
    let batch = a.extents(|axis| a.batch.contains(axis));
    let shape = [batch, a.free(), b.free()].concat();
    let result = Tensor::new(a.tensor.dtype, &shape);
    PACK.ask(kernel, &[a.tensor.clone(), b.tensor.clone()], &[result])
        .on(device)
        .ints("batch_a", &a.batch)
        .ints("batch_b", &b.batch)
        .ints("contract_a", &a.contract)
        .ints("contract_b", &b.contract)
}

/// A product of matrices in row-major order.
pub(super) fn matrices(
    kernel: &str,
    device: DeviceInfo<'static>,
    [m, n, k]: [u64; 3],
    dtype: DType,
) -> Ask {
    let (a, b) = (Side::new(&[m, k], &[], &[1]), Side::new(&[k, n], &[], &[0]));
    ask(kernel, device, &a.of(dtype), &b.of(dtype))
}
