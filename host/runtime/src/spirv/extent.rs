//! How many bytes of push constants a block covers, by the offsets and strides that the module gives its members.

use super::{
    allowed::{ARRAY_STRIDE, MATRIX_STRIDE, OFFSET},
    constants::Constants,
    decorations::{Decorations, ROW_MAJOR},
    types::{Kind, Types},
};
use std::collections::HashMap;

/// How the matrices of a member lie: bytes between columns, or between rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Matrices {
    stride: Option<u32>,
    by_row: bool,
}

pub(super) struct Extents<'a> {
    types: &'a Types,
    decorations: &'a Decorations,
    constants: &'a Constants,
    /// Each type is measured once for each way in which its matrices lie.
    known: HashMap<(u32, Matrices), u64>,
}

impl<'a> Extents<'a> {
    pub(super) fn new(
        types: &'a Types,
        decorations: &'a Decorations,
        constants: &'a Constants,
    ) -> Extents<'a> {
        Extents {
            types,
            decorations,
            constants,
            known: HashMap::new(),
        }
    }

    /// Bytes up to the end of the last element.
    pub(super) fn of(&mut self, id: u32) -> u64 {
        self.extent(id, Matrices::default())
    }

    /// Recurses as deep as types nest, which is bounded where they are added.
    fn extent(&mut self, id: u32, matrices: Matrices) -> u64 {
        if let Some(known) = self.known.get(&(id, matrices)) {
            return *known;
        }
        let types = self.types;
        let Ok(kind) = types.kind(id) else { return 0 };
        let bytes = match kind {
            Kind::Int { bits } | Kind::Float { bits } => u64::from(bits / 8),
            Kind::Bool => 4,
            Kind::Vector { of, count } => spaced(None, *count, self.extent(*of, matrices)),
            Kind::Matrix { of, count } => match (types.kind(*of), matrices) {
                (Ok(Kind::Vector { of, count: rows }), Matrices { by_row: true, .. }) => {
                    let row = spaced(None, *count, self.extent(*of, matrices));
                    spaced(matrices.stride, *rows, row)
                }
                _ => spaced(matrices.stride, *count, self.extent(*of, matrices)),
            },
            Kind::Array { of, length } => {
                // One that specialization may lengthen is as long as can be.
                let count = self.constants.literal(*length);
                let stride = self.decorations.of(id, ARRAY_STRIDE);
                spaced(
                    stride,
                    count.unwrap_or(u32::MAX),
                    self.extent(*of, matrices),
                )
            }
            Kind::Struct(members) => {
                let ends = (0..).zip(members).map(|(member, kind)| {
                    let matrices = Matrices {
                        stride: self.decorations.of_member(id, member, MATRIX_STRIDE),
                        by_row: self.decorations.of_member(id, member, ROW_MAJOR).is_some(),
                    };
                    let offset = self.decorations.of_member(id, member, OFFSET).unwrap_or(0);
                    self.extent(*kind, matrices).saturating_add(offset.into())
                });
                ends.max().unwrap_or(0)
            }
            Kind::RuntimeArray { .. } | Kind::CooperativeMatrix { .. } | Kind::Tensor => u64::MAX,
            Kind::Void | Kind::Pointer { .. } | Kind::Function { .. } => 0,
        };
        self.known.insert((id, matrices), bytes);
        bytes
    }
}

fn spaced(stride: Option<u32>, count: u32, last: u64) -> u64 {
    let stride = stride.map_or(last, u64::from);
    let before = stride.saturating_mul(u64::from(count.saturating_sub(1)));
    before.saturating_add(last)
}
