//! One operand of a product, seen as a batch of matrices with one stride per direction.

use nx_vulkan_abi::{BufArg, DType, DeviceInfo, Refusal, TensorDesc, layout};
use nx_vulkan_pack_kit::span::{ALIGN, Span};

/// Elements are at `offset + batch * strides[0] + free * strides[1] + contracted * strides[2]` of `arg`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) arg: BufArg,
    /// Of an element in memory.
    pub(crate) dtype: DType,
    pub(crate) offset: i64,
    pub(crate) strides: [i64; 3],
    /// Batches, free and contracted elements.
    pub(crate) extents: [u64; 3],
}

/// The axes of an operand, by what they do: batch, free, contracted.
pub(crate) type Roles = [Vec<usize>; 3];

impl Operand {
    /// The operand as it lies in memory, or `None` when the axes of one role have no common stride.
    pub(crate) fn in_place(index: u32, tensor: &TensorDesc<'_>, roles: &Roles) -> Option<Operand> {
        let mut operand = Operand {
            arg: BufArg::input(index),
            dtype: tensor.dtype,
            offset: tensor.offset as i64,
            strides: [0; 3],
            extents: [1; 3],
        };
        for (role, axes) in roles.iter().enumerate() {
            let (shape, strides) = select(tensor, axes);
            let space = layout::collapse(&shape, &[strides]);
            let &[extent] = space.shape.as_slice() else {
                return None;
            };
            operand.extents[role] = extent;
            operand.strides[role] = if extent == 1 { 0 } else { space.strides[0][0] };
        }
        Some(operand)
    }

    /// The operand after its elements were written to `arg` in the order of its roles.
    pub(crate) fn gathered(arg: BufArg, dtype: DType, extents: [u64; 3]) -> Operand {
        let steps = [extents[1] * extents[2], extents[2], 1];
        let strides = std::array::from_fn(|i| if extents[i] == 1 { 0 } else { steps[i] as i64 });
        Operand {
            arg,
            dtype,
            offset: 0,
            strides,
            extents,
        }
    }

    /// Binds only the bytes the operand covers, where its buffer is larger than a binding may be.
    pub(crate) fn windowed(
        mut self,
        storage: u64,
        device: &DeviceInfo<'_>,
    ) -> Result<Operand, Refusal> {
        let size = self.dtype.size();
        if self.extents.contains(&0) {
            return Ok(Operand {
                offset: 0,
                strides: [0; 3],
                ..self
            });
        }
        let Span { low, high } = Span::of(self.offset, self.extents.into_iter().zip(self.strides));
        if low < 0 || (high as u64 + 1).saturating_mul(size) > storage {
            return Err(Refusal::BadRequest(format!(
                "an operand reaches outside its buffer of {storage} bytes"
            )));
        }
        if storage > device.max_buffer_range {
            let start = low as u64 * size / ALIGN * ALIGN;
            let end = ((high as u64 + 1) * size).next_multiple_of(16).min(storage);
            if end - start > device.max_buffer_range {
                return Err(Refusal::decline(format!(
                    "an operand covers {} bytes and the device binds at most {}",
                    end - start,
                    device.max_buffer_range
                )));
            }
            self.arg = self.arg.range(start, end - start);
            self.offset -= (start / size) as i64;
        }
        let index_limit = 1i64 << 32;
        if high - low >= index_limit || self.offset >= index_limit {
            return Err(Refusal::decline("an operand has more than 2^32 elements"));
        }
        Ok(self)
    }

    /// Batches that differ from each other.
    pub(crate) fn batches(&self) -> u64 {
        match self.strides[0] {
            0 => 1,
            _ => self.extents[0],
        }
    }

    /// Whether neighbours in memory are neighbours along the contracted axis rather than the free one.
    pub(crate) fn is_along_k(&self) -> bool {
        let [_, free, contracted] = self.strides.map(i64::unsigned_abs);
        match (self.extents[1], self.extents[2]) {
            (1, _) => true,
            (_, 1) => false,
            _ => contracted != 0 && (contracted <= free || free == 0),
        }
    }

    /// Whether packs of `width` elements can be read along the fast axis, all of them whole and aligned.
    pub(crate) fn is_wide(&self, width: u32) -> bool {
        let (fast, slow) = if self.is_along_k() { (2, 1) } else { (1, 2) };
        let width = i64::from(width);
        self.strides[fast] == 1
            && self.extents[fast].is_multiple_of(width as u64)
            && [self.offset, self.strides[slow], self.strides[0]]
                .iter()
                .all(|x| x % width == 0)
    }

    /// Offset and strides as the shaders take them: modulo 2^32, so that negative strides work.
    pub(crate) fn words(&self) -> [u32; 4] {
        [
            self.offset,
            self.strides[0],
            self.strides[1],
            self.strides[2],
        ]
        .map(|x| x as u32)
    }
}

/// Extents and strides of the named axes.
pub(crate) fn select(tensor: &TensorDesc<'_>, axes: &[usize]) -> (Vec<u64>, Vec<i64>) {
    axes.iter()
        .map(|&axis| (tensor.shape[axis], tensor.strides[axis]))
        .unzip()
}
