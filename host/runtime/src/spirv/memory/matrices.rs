//! Accesses of cooperative matrices: to memory in rows, and to tensors.

use super::{Known, Memory, options::operands_of};
use crate::spirv::types::Kind;

impl Memory {
    /// Layout and stride of a cooperative matrix in memory; a store has the matrix in front of them.
    pub(super) fn matrix(
        &self,
        known: &Known<'_>,
        pointer: u32,
        rest: &[u32],
    ) -> Result<(), String> {
        self.target(known, pointer)?;
        let mut values = rest.iter().take(2);
        values.try_for_each(|id| known.ids.value(*id).map(drop))
    }

    /// A matrix and the layout of a tensor that it is a part of; the memory operands of the access, then whether the tensor
    /// is seen through a view. Functions that decode elements take pointers to addresses, so there are none.
    pub(super) fn tensor(
        &self,
        known: &Known<'_>,
        values: [u32; 2],
        options: &[u32],
    ) -> Result<(), String> {
        const VIEW: u32 = 1;
        let [matrix, layout] = values.map(|id| known.ids.value(id));
        known.types.element(matrix?)?;
        let is_tensor = |kind: u32| Ok::<_, String>(*known.types.kind(kind)? == Kind::Tensor);
        if !is_tensor(layout?)? {
            return Err(format!("{} is no layout of a tensor", values[1]));
        }
        let count = options.first().map_or(0, |flags| 1 + operands_of(*flags));
        let (access, rest) = options
            .split_at_checked(count)
            .ok_or("an access to a tensor is cut off")?;
        self.options(known, access)?;
        match rest {
            [0] => Ok(()),
            [VIEW, view] if is_tensor(known.ids.value(*view)?)? => Ok(()),
            _ => Err(format!("an access to a tensor with the options {rest:?}")),
        }
    }
}
